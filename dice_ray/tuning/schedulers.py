"""What stops a trial early; it knows the curves of the trials that ended."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from ray.tune.experiment import Trial
from ray.tune.schedulers import ASHAScheduler, MedianStoppingRule, TrialScheduler

from dice_ray.tuning.ledger import History
from dice_ray.tuning.trial import SCORE


def asha(ledger: History) -> ASHAScheduler:
    """Successive halving: at a third of the evaluations, and each third of those, the better third goes on."""
    scheduler = ASHAScheduler(
        metric=SCORE, mode="max", max_t=10_000, grace_period=1, reduction_factor=3, stop_last_trials=False
    )
    for ended in ledger.ended.values():
        for evaluation, (_, score) in enumerate(ended.curve, start=1):
            # An internal of Ray 2.60; of the trial it reads the id alone.
            scheduler._brackets[0].on_result(cast(Trial, SimpleNamespace(trial_id=ended.id)), evaluation, score)
    return scheduler


def median(ledger: History) -> MedianStoppingRule:
    """Stops a trial whose best score is below the median of what others had on average by then."""
    scheduler = _Median(
        metric=SCORE, mode="max", time_attr="training_iteration", grace_period=1, min_samples_required=3
    )
    for ended in ledger.ended.values():
        if ended.curve:
            # An internal of Ray 2.60: results by trial, of which it asks nothing.
            scheduler._results[ended.id] = [
                {SCORE: score, "training_iteration": number} for number, (_, score) in enumerate(ended.curve, start=1)
            ]
    return scheduler


class _Median(MedianStoppingRule):
    """Where too few trials are known, Ray's own would pause a trial, and lose its warm actor."""

    def _on_insufficient_samples(self, *about: Any) -> str:
        return TrialScheduler.CONTINUE
