"""A sweep in Optuna's own storage: Optuna reads the trials, their states and their curves."""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

from dice_ray import api
from dice_ray.api.places import runs_folder
from dice_ray.config.load import Layer
from dice_ray.errors import InputError, UnknownNameError
from dice_ray.tuning.ledger import Ledger, TrialOutcome, TrialSpec
from dice_ray.tuning.plan_file import store
from dice_ray.tuning.sweep import SweepPlan

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
