"""What of ended trials stays on the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from dice_ray.config.load import Layer
from dice_ray.tracking.schema import State
from dice_ray.tuning import ranking, recorder
from dice_ray.tuning.ledger import Ledger, TrialOutcome, TrialSpec
from dice_ray.tuning.study import StudyPlan
from dice_ray.tuning.sweep import SweepPlan

SCORES: dict[str, tuple[State, float | None]] = {
    "0001": ("done", 0.5),
    "0002": ("failed", 0.9),
    "0003": ("pruned", 0.7),
    "0004": ("done", 0.7),
    "0005": ("failed", None),
}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    for id_, (state, score) in SCORES.items():
        ledger.append(TrialSpec(id=id_, params={"lr": score}, seed=1))
        curve = () if score is None else ((5, score),)
        ledger.append(TrialOutcome(id=id_, state=state, curve=curve, metrics=({},) * len(curve)))
        folder = tmp_path / "trials" / id_
        (folder / "encoder").mkdir(parents=True)
        (folder / "test").mkdir()
        for name in ("best.pt", "last.pt", "before.pt", "config.yaml", "encoder/config.json", "test/items.csv"):
            (folder / name).write_text("x")
    return ledger


def left(tmp_path: Path) -> dict[str, set[str]]:
    return {folder.name: {path.name for path in folder.iterdir()} for folder in sorted((tmp_path / "trials").iterdir())}


def test_a_sweep_keeps_the_checkpoints_of_its_best_alone(
    tmp_path: Path, ledger: Ledger, layers: tuple[Layer, ...]
) -> None:
    assert ranking.best_in(ledger) == "0003"
    plan = SweepPlan(name="sweep", layers=layers, space="a:b", trials=5)
    # More seeds may be asked for later; of equal configurations one is kept.
    assert plan.retained(ledger) == {"0003", "0001"}
    plan = plan.model_copy(update={"top": 1})
    for _ in range(2):
        recorder._clean_up(plan, ledger, tmp_path / "trials", ledger.outcomes)
        others = {id_: {"config.yaml", "test"} for id_ in SCORES if id_ != "0003"}
        assert left(tmp_path) == others | {"0003": {"best.pt", "config.yaml", "encoder", "test"}}


def test_nothing_is_deleted_behind_a_link(tmp_path: Path, ledger: Ledger, layers: tuple[Layer, ...]) -> None:
    """A trial's folder may have been moved to another disk, or a link put in its place by someone else."""
    elsewhere = (tmp_path / "trials/0001").rename(tmp_path / "elsewhere")
    (tmp_path / "trials/0001").symlink_to(elsewhere)
    plan = SweepPlan(name="sweep", layers=layers, space="a:b", trials=5, top=1)
    recorder._clean_up(plan, ledger, tmp_path / "trials", ledger.outcomes)
    assert {"best.pt", "last.pt", "encoder"} < {path.name for path in elsewhere.iterdir()}


def test_those_that_may_run_again_are_kept(tmp_path: Path, ledger: Ledger, layers: tuple[Layer, ...]) -> None:
    """More seeds made another trial the best, whose checkpoint was gone, and deleted that of the one before."""
    plan = SweepPlan(name="sweep", layers=layers, space="a:b", trials=5, seeds=1, top=2)
    # Equal configurations run again once: the third best stands in.
    assert plan.retained(ledger) == {"0003", "0001"}
    for cell, score in zip(plan.reruns(ledger), (0.25, 0.5), strict=True):
        recorder._clean_up(plan, ledger, tmp_path / "trials", ledger.outcomes)
        assert {id_ for id_, names in left(tmp_path).items() if "best.pt" in names} == {"0001", "0003"}
        ledger.append(cell)
        ledger.append(TrialOutcome(id=cell.id, state="done", curve=((5, score),), metrics=({},)))
    assert ranking.best_in(ledger) == "0001"
    recorder._clean_up(plan, ledger, tmp_path / "trials", ledger.outcomes)
    more = plan.model_copy(update={"seeds": 2})
    for cell, score in zip(more.reruns(ledger)[2:], (0.75, 0.25), strict=True):
        ledger.append(cell)
        ledger.append(TrialOutcome(id=cell.id, state="done", curve=((5, score),), metrics=({},)))
    assert ranking.best_in(ledger) == "0003"
    recorder._clean_up(more, ledger, tmp_path / "trials", ledger.outcomes)
    assert {id_ for id_, names in left(tmp_path).items() if "best.pt" in names} == {"0001", "0003"}
    for id_, score in (("0006", 0.8), ("0007", 0.9)):  # more trials, better ones, that are still to run again
        ledger.append(TrialSpec(id=id_, params={"lr": score}, seed=1))
        ledger.append(TrialOutcome(id=id_, state="done", curve=((5, score),), metrics=({},)))
    assert more.retained(ledger) == {"0003", "0006", "0007"}


def test_of_several_objectives_no_trial_is_the_loser(tmp_path: Path, ledger: Ledger, layers: tuple[Layer, ...]) -> None:
    plan = SweepPlan(name="sweep", layers=layers, space="a:b", trials=5, objectives=("precision", "recall"))
    recorder._clean_up(plan, ledger, tmp_path / "trials", ledger.outcomes)
    assert all({"best.pt", "encoder"} <= names for names in left(tmp_path).values())


def test_a_study_keeps_what_scores_each_cell_and_failed_ones_whole(
    tmp_path: Path, ledger: Ledger, layers: tuple[Layer, ...]
) -> None:
    plan = StudyPlan(name="study", layers=layers, arms={"a": {}}, baseline="a", seeds=(1,))
    recorder._clean_up(plan, ledger, tmp_path / "trials", ledger.outcomes)
    scored = {"best.pt", "config.yaml", "encoder", "test"}
    whole = scored | {"last.pt", "before.pt"}
    assert left(tmp_path) == {"0001": scored, "0002": whole, "0003": scored, "0004": scored, "0005": whole}


def test_nothing_is_best_where_nothing_was_scored(tmp_path: Path) -> None:
    assert ranking.best_in(Ledger(tmp_path / "none.jsonl")) is None


def test_a_sweep_keeps_the_weights_of_those_that_may_be_its_best(layers: tuple[Layer, ...]) -> None:
    def num_kept(plan: SweepPlan | StudyPlan, num_runs: int) -> int:
        return plan.num_kept(num_runs)

    sweep = SweepPlan(name="sweep", layers=layers, space="a:b", trials=4)
    assert num_kept(sweep, 4) == 5, "seeds may be asked for later"
    assert num_kept(sweep.model_copy(update={"top": 1}), 4) == 2
    assert num_kept(sweep.model_copy(update={"seeds": 10, "top": 2}), 24) == 3
    assert num_kept(sweep.model_copy(update={"seeds": 1, "top": 9}), 8) == 5
    assert num_kept(sweep.model_copy(update={"objectives": ("precision", "recall")}), 4) == 4
    arms = {"ce": {"loss": "cross_entropy"}, "dice": {"loss": "dice"}}
    assert num_kept(StudyPlan(name="study", layers=layers, arms=arms, baseline="ce", seeds=(1,)), 2) == 2
