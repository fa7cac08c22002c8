"""The schedulers without a cluster: they stop at once what earlier trials surpassed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from ray.tune.experiment import Trial
from ray.tune.schedulers import TrialScheduler

from dice_ray.tuning.ledger import TrialSpec, TrialOutcome, Ledger
from dice_ray.tuning.schedulers import asha, median


@dataclass(frozen=True)
class Named:
    trial_id: str


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    for number in range(1, 6):
        ledger.append(TrialSpec(id=f"000{number}", params={}, seed=0))
        curve = ((5, 0.4 + number / 100), (10, 0.6), (15, 0.5))
        ledger.append(TrialOutcome(id=f"000{number}", state="done", curve=curve, metrics=({},) * 3))
    return ledger


@pytest.mark.parametrize("scheduler", [asha, median])
def test_a_scheduler_knows_the_curves_of_earlier_trials(
    scheduler: Callable[[Ledger], TrialScheduler], ledger: Ledger, tmp_path: Path
) -> None:
    trial = cast(Trial, Named("ray0"))
    for known, decision in ((Ledger(tmp_path / "none.jsonl"), TrialScheduler.CONTINUE), (ledger, TrialScheduler.STOP)):
        one = scheduler(known)
        one.on_trial_add(None, trial)  # type: ignore[arg-type]  # it asks the controller nothing
        assert one.on_trial_result(None, trial, {"step": 5, "score": 0.1, "training_iteration": 1}) == decision  # type: ignore[arg-type]
