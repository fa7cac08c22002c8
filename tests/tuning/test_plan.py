"""Plans: stored and read again, cells by their identity, the demand of a trial."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dice_ray.config.load import Layer, values_layer
from dice_ray.errors import ConfigError, RunError
from dice_ray.tuning.plan import Demand, StudyPlan, SweepPlan, demand, read, store

LAYERS = (values_layer("preset", {"task": "sentence_pair", "data.source": "synthetic", "training.epochs": 1}),)
SWEEP = SweepPlan(name="sweep", layers=LAYERS, space="search_spaces.loss_tuning:loss_tuning", trials=4)


def study(**changes: Any) -> StudyPlan:
    arms = {"ce": {"loss": "cross_entropy"}, "focal": {"loss": "focal", "loss.focal.gamma": 1}}
    return StudyPlan(**({"name": "study", "layers": LAYERS, "arms": arms, "baseline": "ce", "seeds": (1, 2)} | changes))


@pytest.mark.parametrize("plan", [SWEEP, study()])
def test_a_plan_is_read_as_it_was_stored(tmp_path: Path, plan: SweepPlan | StudyPlan) -> None:
    store(plan, tmp_path)
    store(plan, tmp_path)
    assert read(tmp_path) == plan


def test_a_sweep_is_written_once(tmp_path: Path) -> None:
    store(SWEEP, tmp_path)
    for other in (SWEEP.model_copy(update={"trials": 5}), study()):
        with pytest.raises(RunError, match="holds another sweep of that name"):
            store(other, tmp_path)


def test_a_study_grows_by_arms_and_seeds_alone(tmp_path: Path) -> None:
    store(study(), tmp_path)
    store(study(seeds=(1, 2, 3), arms=study().arms | {"dice": {"loss": "dice"}}), tmp_path)
    assert isinstance(there := read(tmp_path), StudyPlan)
    assert (len(there.seeds), list(there.arms)) == (3, ["ce", "focal", "dice"])
    for changes in (
        {"arms": study().arms | {"focal": {"loss": "focal"}}},
        {"layers": (*LAYERS, Layer("--set", {"training": {"lr": 1}}))},
        {"digest": "other data"},
    ):
        with pytest.raises(RunError, match="holds another study"):
            store(study(**changes), tmp_path)


def test_what_is_not_a_plan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="must hold the plan"):
        read(tmp_path)
    (tmp_path / "plan.yaml").write_text("kind: sweep\nname: x\n")
    with pytest.raises(RunError, match="must be a plan that dice_ray wrote"):
        read(tmp_path)


def test_a_trial_runs_the_layers_and_then_its_own(tmp_path: Path) -> None:
    cell = study().cells()[1]
    config = study().config(cell)
    assert (cell.arm, config.loss.name, config.training.seed, config.training.epochs) == ("focal", "focal", 1, 1)


def test_a_cell_is_what_was_written_not_its_name_nor_where_it_runs() -> None:
    ids = [cell.id for cell in study().cells()]
    assert len(set(ids)) == 4
    renamed = {"base": {"loss": "cross_entropy"}, "f": {"loss": "focal", "loss.focal.gamma": 1}}
    elsewhere = (*LAYERS, values_layer("--set", {"launch.threads": 2}))
    assert [cell.id for cell in study(arms=renamed, baseline="base", layers=elsewhere).cells()] == ids
    assert not set(ids) & {cell.id for cell in study(digest="other data").cells()}


def test_arms_that_write_the_same_or_cannot_run_are_all_named() -> None:
    arms = study().arms | {"same": {"loss": "cross_entropy"}, "wrong": {"loss.focal.gama": 1}}
    with pytest.raises(ConfigError) as error:
        study(arms=arms, baseline="none").cells()
    said = str(error.value)
    for part in ("arms.same: must differ from arm ce", "loss.focal.gama", "from arm wrong", "baseline: must be an arm"):
        assert part in said


def test_trials_fit_by_their_demand() -> None:
    config = SWEEP.config(study().cells()[0])
    assert demand(config).slots(2) == 2
    assert Demand(1, 4).slots(10) == 2
    with pytest.raises(RunError, match="must find its 5 CPUs"):
        Demand(1, 4).slots(4)
