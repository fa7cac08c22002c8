"""Early stopping by Optuna's pruners, without a cluster: rungs, resumed sweeps, users' pruners."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import optuna
import pytest
from ray.tune.experiment import Trial
from ray.tune.schedulers import TrialScheduler

from dice_ray.config.load import Layer
from dice_ray.errors import InputError, UnknownNameError
from dice_ray.tracking.schema import State
from dice_ray.tuning.ledger import Ledger, TrialOutcome, TrialSpec
from dice_ray.tuning.samplers import pruner
from dice_ray.tuning.search import PruningScheduler, SweepSearcher
from dice_ray.tuning.sweep import SweepPlan

SPACES = Path(__file__).with_name("spaces.py")


class NamedTrial:
    def __init__(self, trial_id: str) -> None:
        self.trial_id = trial_id


def decisions(searcher: SweepSearcher, name: str, scores: list[float]) -> list[str]:
    """The decision after each evaluation of a trial, until it is stopped; Ray Tune does not ask about the last one."""
    scheduler, made = PruningScheduler(searcher), list[str]()
    searcher.suggest(name)
    for number, score in enumerate(scores, start=1):
        result = {"step": 10 * number, "score": score, "metrics": {"dev/f1": score}}
        is_last = number == len(scores)
        made.append(
            TrialScheduler.CONTINUE
            if is_last
            else scheduler.on_trial_result(None, cast(Trial, NamedTrial(name)), result)
        )
        if made[-1] == TrialScheduler.STOP:
            break
    searcher.on_trial_complete(name, result | {"finished": made[-1] == TrialScheduler.CONTINUE})
    return made


@pytest.fixture
def plan(layers: tuple[Layer, ...]) -> SweepPlan:
    return SweepPlan(name="sweep", layers=layers, space=f"{SPACES}:rate", trials=12)


def test_asha_compares_after_1_3_9_evaluations(plan: SweepPlan, tmp_path: Path) -> None:
    searcher = SweepSearcher(plan, Ledger(tmp_path / "ledger.jsonl"))
    for number in range(3):  # each better than the one before, at every rung
        assert decisions(searcher, f"good{number}", [0.5 + number / 10] * 9) == [TrialScheduler.CONTINUE] * 9
    assert decisions(searcher, "bad at once", [0.1] * 9) == [TrialScheduler.STOP]
    assert decisions(searcher, "bad at 3", [0.9, 0.1, 0.1, 0.1]) == [
        *[TrialScheduler.CONTINUE] * 2,
        TrialScheduler.STOP,
    ]
    late = decisions(searcher, "bad at 9", [0.95] * 8 + [0.1] * 2)
    assert late == [*[TrialScheduler.CONTINUE] * 8, TrialScheduler.STOP]


@pytest.mark.parametrize("scheduler", ["asha", "median"])
def test_a_resumed_sweep_stops_what_the_whole_one_would_stop(scheduler: str, plan: SweepPlan, tmp_path: Path) -> None:
    plan = plan.model_copy(update={"scheduler": scheduler})
    whole = SweepSearcher(plan, Ledger(tmp_path / "none.jsonl"))
    ledger = Ledger(tmp_path / "ledger.jsonl")
    for number in range(1, 6):
        curve = [0.4 + number / 100, 0.6, 0.5]
        made = decisions(whole, f"ray{number}", curve)
        ledger.append(TrialSpec(id=f"000{number}", params={"training.lr": number * 1e-3}, seed=0))
        reached = tuple((10 * step, score) for step, score in enumerate(curve[: len(made)], start=1))
        state: State = "done" if made[-1] == TrialScheduler.CONTINUE else "pruned"
        ledger.append(TrialOutcome(id=f"000{number}", state=state, curve=reached, metrics=({},) * len(reached)))
    resumed = SweepSearcher(plan, ledger)
    rungs, states = (
        [[of(trial) for trial in searcher._study.trials] for searcher in (whole, resumed)]
        for of in (
            lambda trial: {name: value for name, value in trial.system_attrs.items() if "rung" in name},
            lambda trial: trial.state,
        )
    )
    assert rungs[0] == rungs[1]
    assert states[0] == states[1]
    for searcher in (whole, resumed):
        assert decisions(searcher, "bad", [0.1, 0.1, 0.1]) == [TrialScheduler.STOP]
        assert decisions(searcher, "good", [0.9, 0.9, 0.9]) == [TrialScheduler.CONTINUE] * 3


def test_a_resumed_trial_is_not_stopped_for_evaluations_that_it_has_passed(plan: SweepPlan, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    slow = [{"step": 10 * number, "score": 0.4 + number / 10, "is_past": True} for number in range(1, 5)]
    ledger.append(TrialSpec(id="0001", params={"training.lr": 1e-3}, seed=0))  # was first, so that it went on
    for number in range(2, 6):  # better at first, and worse in the end
        ledger.append(TrialSpec(id=f"000{number}", params={"training.lr": number * 1e-3}, seed=0))
        ledger.append(TrialOutcome(id=f"000{number}", state="done", curve=((10, 0.6), (20, 0.61)), metrics=({}, {})))
    searcher = SweepSearcher(plan, ledger)
    assert searcher.suggest("resumed")["id"] == "0001"
    assert [searcher.report("resumed", result) for result in slow] == [False] * 4
    assert decisions(searcher, "new", [0.5, 0.6]) == [TrialScheduler.STOP]


def test_none_stops_nothing(plan: SweepPlan, tmp_path: Path) -> None:
    plan = plan.model_copy(update={"scheduler": "none"})
    searcher = SweepSearcher(plan, Ledger(tmp_path / "ledger.jsonl"))
    decisions(searcher, "good", [0.9, 0.9])
    assert decisions(searcher, "bad", [0.1, 0.1]) == [TrialScheduler.CONTINUE] * 2


def test_a_pruner_of_the_users_own() -> None:
    assert isinstance(pruner(f"{SPACES}:patient"), optuna.pruners.PatientPruner)


@pytest.mark.parametrize(
    ("name", "message"),
    [("ashaa", "did you mean 'asha'"), (f"{SPACES}:two_rates", "must make a pruner, and raised TypeError")],
)
def test_a_pruner_that_is_none(name: str, message: str) -> None:
    with pytest.raises((UnknownNameError, InputError), match=message):
        pruner(name)
