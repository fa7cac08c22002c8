"""The searchers without a cluster: the plan minus the ledger, and what Optuna is told."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from optuna.trial import TrialState
from ray.tune.experiment import Trial
from ray.tune.schedulers import TrialScheduler

from dice_ray.config.load import Layer
from dice_ray.tuning.ledger import Begun, Ended, Ledger
from dice_ray.tuning.plan import SweepPlan
from dice_ray.tuning.searchers import CellSearcher, SweepSearcher, asha

SPACE = f"{Path(__file__).with_name('spaces.py')}:rate"


@pytest.fixture
def plan(layers: tuple[Layer, ...]) -> SweepPlan:
    return SweepPlan(name="sweep", layers=layers, space=SPACE, trials=8)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    for number in (1, 2, 3, 5, 6):
        ledger.append(Begun(id=f"000{number}", params={"training.lr": number * 1e-3}, seed=0))
    metrics = ({"dev/f1": 0.5},) * 3
    ledger.append(Ended(id="0001", state="done", curve=((5, 0.4), (10, 0.6), (15, 0.5)), metrics=metrics))
    ledger.append(Ended(id="0002", state="pruned", curve=((5, 0.3),), metrics=metrics[:1]))
    ledger.append(Ended(id="0003", state="failed", failure="not finite"))
    return ledger


def told(step: int, score: float, **more: Any) -> dict[str, Any]:
    return {"step": step, "score": score, "training_iteration": step // 5, **more}


def test_a_resumed_search_knows_what_ended_and_begins_with_what_was_open(plan: SweepPlan, ledger: Ledger) -> None:
    searcher = SweepSearcher(plan, ledger)
    ended = searcher._study.trials[:3]
    assert [trial.state for trial in ended] == [TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL]
    assert ended[0].value == 0.6
    assert ended[0].intermediate_values == {5: 0.4, 10: 0.6, 15: 0.5}
    handed = [searcher.suggest(f"ray{number}") for number in range(5)]
    assert handed[:2] == [begun.model_dump() for begun in ledger.open]
    assert [trial.params for trial in searcher._study.trials[3:5]] == [begun.params for begun in ledger.open]
    assert [trial["id"] for trial in handed] == ["0005", "0006", "0004", "0007", "0008"]
    assert len({trial["params"]["training.lr"] for trial in handed}) == 5


def test_sampling_goes_on_where_it_was(plan: SweepPlan, ledger: Ledger, tmp_path: Path) -> None:
    first = SweepSearcher(plan, Ledger(tmp_path / "none.jsonl")).suggest("ray0")["params"]
    assert SweepSearcher(plan, Ledger(tmp_path / "none.jsonl")).suggest("ray0")["params"] == first
    resumed = SweepSearcher(plan, ledger)
    assert first not in [resumed.suggest(f"ray{number}")["params"] for number in range(5)]


@pytest.mark.filterwarnings("error:The reported value is ignored")
def test_optuna_is_told_what_became_of_a_trial(plan: SweepPlan, tmp_path: Path) -> None:
    searcher = SweepSearcher(plan, Ledger(tmp_path / "none.jsonl"))
    for name in ("done", "stopped", "failed", "lost"):
        searcher.suggest(name)
        for step, score in ((5, 0.7), (10, 0.6), (5, 0.7), (10, 0.6)):  # Ray tried it again
            searcher.on_trial_result(name, told(step, score))
    searcher.on_trial_complete("done", told(15, 0.5, finished=True))
    searcher.on_trial_complete("stopped", told(15, 0.2, finished=False))
    searcher.on_trial_complete("failed", {"score": math.nan, "failure": "not finite"})
    searcher.on_trial_complete("lost", error=True)
    done, stopped, failed, lost = searcher._study.trials
    assert (done.state, done.value, done.last_step) == (TrialState.COMPLETE, 0.7, 15)
    assert (stopped.state, stopped.intermediate_values) == (TrialState.PRUNED, {5: 0.7, 10: 0.6, 15: 0.2})
    assert failed.state == lost.state == TrialState.FAIL


def test_the_searcher_is_pickled_as_ray_does(plan: SweepPlan, ledger: Ledger, tmp_path: Path) -> None:
    searcher = SweepSearcher(plan, ledger)
    searcher.suggest("ray0")
    searcher.save(str(tmp_path / "searcher.pkl"))


def test_halving_knows_the_curves_of_earlier_trials(ledger: Ledger, tmp_path: Path) -> None:
    trial = cast(Trial, SimpleNamespace(trial_id="ray0"))
    for known, decision in ((Ledger(tmp_path / "none.jsonl"), TrialScheduler.CONTINUE), (ledger, TrialScheduler.STOP)):
        scheduler = asha(known)
        scheduler.on_trial_add(None, trial)  # type: ignore[arg-type]  # it asks the controller nothing
        assert scheduler.on_trial_result(None, trial, told(5, 0.1)) == decision  # type: ignore[arg-type]


def test_cells_are_handed_out_once() -> None:
    cells = [Begun(id=id_, params={"loss": "dice"}, seed=1, arm="dice") for id_ in "ab"]
    searcher = CellSearcher(cells)
    assert [searcher.suggest(str(number)) for number in range(3)] == [*(cell.model_dump() for cell in cells), None]
