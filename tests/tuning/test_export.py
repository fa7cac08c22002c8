"""The best configuration of a sweep as a preset, and its trials as an Optuna study."""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

from dice_ray import api
from dice_ray.config.load import Layer, read_layer, resolve, values_layer
from dice_ray.errors import InputError, RunError, UnknownNameError
from dice_ray.files import runs_folder
from dice_ray.tuning.export import preset
from dice_ray.tuning.ledger import Ledger, TrialOutcome, TrialSpec
from dice_ray.tuning.plan import AUTOMATIC
from dice_ray.tuning.plan_file import store
from dice_ray.tuning.study import StudyPlan
from dice_ray.tuning.sweep import SweepPlan
from tests.tuning.trials import note


@pytest.fixture
def folder(tmp_path: Path, layers: tuple[Layer, ...]) -> Path:
    folder = tmp_path / "sweep"
    above = values_layer("--set", {})
    machine = values_layer(AUTOMATIC, {"training.precision": "fp32"})
    store(
        SweepPlan(name="sweep", layers=(*layers, above, machine), space="a:b", trials=4, seed=3, digest="2ee5"), folder
    )
    ledger = Ledger(folder / "ledger.jsonl")
    for id_, params, score in (
        ("0001", {"loss": "focal", "loss.focal.gamma": 1.5}, 0.6),
        ("0002", {"loss": "dice", "training.lr": 5e-3}, 0.5),
    ):
        note(ledger, id_, score, params=params, seed=3)
    return folder


def as_run(text: str, tmp_path: Path) -> Layer:
    (tmp_path / "best.yaml").write_text(text)
    return read_layer(tmp_path / "best.yaml")


def test_the_preset_holds_what_was_written_alone(folder: Path, tmp_path: Path) -> None:
    text = preset(folder)
    layer = as_run(text, tmp_path)
    assert layer.values["loss"] == {"focal": {"gamma": 1.5}}
    assert layer.values["training"] == {"epochs": 3, "lr": 1e-3, "batch_size": 32, "seed": 3}
    assert layer.values.keys() == {"task", "data", "training", "loss"}
    assert text.startswith(
        "# Trial 0001 of the sweep sweep: run it by `dice-ray train`.\n# From preset, searched in a:b"
    )
    assert ", 2 trials.\n" in text, "of the 4 that are planned, those that have ended"
    assert "\n# Ranked by this score, which is optimistic since the trial was selected by it.\n" in text
    assert "\n# dev/f1 0.6000 with seed 3.\n" in text
    assert "\n# Data digest: 2ee5.\n" in text


def test_the_preset_is_the_run_of_its_trial(folder: Path, tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    plan = SweepPlan(name="sweep", layers=layers, space="a:b", trials=2, seed=3)
    trial = Ledger(folder / "ledger.jsonl").specs["0002"]
    assert resolve([as_run(preset(folder, "0002"), tmp_path)]) == plan.config(trial)


def test_other_seeds_decide_where_there_are_some(folder: Path) -> None:
    ledger = Ledger(folder / "ledger.jsonl")
    for trial, score in (("0001", 0.2), ("0002", 0.4)):
        again = ledger.specs[trial].model_copy(update={"id": f"{trial}-1004", "seed": 1004, "rerun_of": trial})
        note(ledger, again, score)
    text = preset(folder)
    assert "Trial 0002 of" in text
    assert "\n# Ranked by the mean over 1 other seeds: 0.4000.\n" in text


def test_what_cannot_be_exported_is_told(folder: Path, tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    with pytest.raises(UnknownNameError, match="no trial of sweep with a score named '0009'"):
        preset(folder, "0009")
    with pytest.raises(UnknownNameError, match="no sweep or study named 'swep'; did you mean 'sweep'"):
        preset(folder.parent / "swep")
    empty = SweepPlan(name="empty", layers=layers, space="a:b", trials=2)
    store(empty, tmp_path / "empty")
    with pytest.raises(RunError, match="must hold a trial with a score, and holds none"):
        preset(tmp_path / "empty")
    store(StudyPlan(name="study", layers=layers, arms={"a": {}}, baseline="a", seeds=(1,)), tmp_path / "study")
    with pytest.raises(RunError, match="it holds a study"):
        preset(tmp_path / "study")
    several = empty.model_copy(update={"objectives": ("precision", "recall"), "scheduler": "none"})
    (folder / "plan.yaml").unlink()
    store(several, folder)
    with pytest.raises(InputError, match="name a trial of its Pareto front"):
        preset(folder)
    assert "Trial 0002" in preset(folder, "0002")


SPACE = """
def space(trial):
    loss = trial.suggest_categorical("loss", ["focal", "dice"])
    if loss == "focal":
        trial.suggest_float("loss.focal.gamma", 0.5, 8, log=True)
"""
FOCAL = {"loss": "focal", "loss.focal.gamma": 1.5}
CURVE = ((5, 0.25), (10, 0.75), (15, 0.5))


def swept(tmp_path: Path, layers: tuple[Layer, ...], objectives: tuple[str, ...] = ()) -> Ledger:
    """A sweep with a trial of each state, one that has not ended, and a rerun."""
    (tmp_path / "mine.py").write_text(SPACE)
    plan = SweepPlan(name="s", layers=layers, space=f"{tmp_path}/mine.py:space", trials=5, objectives=objectives)
    store(plan, runs_folder() / "s")
    ledger = Ledger(runs_folder() / "s/ledger.jsonl")
    metrics = tuple({"dev/f1": score, "dev/precision": 0.5, "dev/recall": score / 2} for _, score in CURVE)
    for id_, state, length in (("0001", "done", 3), ("0002", "pruned", 1), ("0003", "failed", 0)):
        ledger.append(TrialSpec(id=id_, params=FOCAL if id_ == "0001" else {"loss": "dice"}, seed=0))
        why = "it broke" if state == "failed" else None
        outcome = {"id": id_, "state": state, "curve": CURVE[:length], "metrics": metrics[:length], "failure": why}
        ledger.append(TrialOutcome.model_validate(outcome))
    ledger.append(TrialSpec(id="0001-1001", params=FOCAL, seed=1001, rerun_of="0001"))
    ledger.append(TrialOutcome(id="0001-1001", state="done", curve=CURVE, metrics=metrics))
    ledger.append(TrialSpec(id="0004", params={"loss": "dice"}, seed=0))
    return ledger


def loaded() -> optuna.Study:
    return optuna.load_study(study_name=None, storage="sqlite:///study.db")


def test_optuna_reads_settings_states_and_curves(tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    swept(tmp_path, layers)
    assert api.export_optuna("s", "study.db") == 3
    study = loaded()
    assert (study.study_name, study.direction.name, study.metric_names) == ("s", "MAXIMIZE", ["dev/f1"])
    done, pruned, failed = study.trials
    assert (done.params, done.value, done.intermediate_values) == (FOCAL, 0.75, dict(CURVE))
    assert done.distributions["loss.focal.gamma"] == optuna.distributions.FloatDistribution(0.5, 8, log=True)
    assert (pruned.state, pruned.intermediate_values) == (TrialState.PRUNED, {5: 0.25})
    assert (failed.state, failed.user_attrs) == (TrialState.FAIL, {"trial": "0003", "failure": "it broke"})
    assert study.best_trial.user_attrs == {"trial": "0001"}
    with pytest.raises(InputError, match="must be written to a new file"):
        api.export_optuna("s", "study.db")


def test_several_objectives_have_their_directions(tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    swept(tmp_path, layers, ("precision", "recall"))
    api.export_optuna("s", "study.db")
    study = loaded()
    assert [each.name for each in study.directions] == ["MAXIMIZE", "MAXIMIZE"]
    assert study.metric_names == ["precision", "recall"]
    assert study.trials[0].values == [0.5, 0.375]


def test_a_sweep_that_does_not_exist_or_has_no_trial_is_named(tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    swept(tmp_path, layers).path.unlink()
    with pytest.raises(InputError, match="s must have a trial that has ended"):
        api.export_optuna("s", "study.db")
    with pytest.raises(UnknownNameError, match="did you mean 's'"):
        api.export_optuna("ss", "study.db")
    assert not Path("study.db").exists()
