"""The progress of a sweep or study for its screen: the best arm so far, the trials that run, and the time left."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Collection, Sequence

from dice_ray.run.driver import RunningTrial
from dice_ray.tuning.ledger import Ledger, TrialSpec


def best_arm(ledger: Ledger, ids: Collection[str], controls: Collection[str] = ()) -> tuple[float, str, int] | None:
    """The highest mean of an arm over its ended cells, the arm, and their number; None on several variants.

    Controls are no arms to choose from, so none of them is best.
    """
    scores = defaultdict[str, list[float]](list)
    variants = set()
    for id_ in ids:
        if id_ in ledger.outcomes and (score := ledger.outcomes[id_].score) is not None:
            cell = ledger.specs[id_]
            assert cell.arm is not None, "a study has cells"
            if cell.arm in controls:
                continue
            scores[cell.arm].append(score)
            variants.add(cell.variant)
    if len(variants) != 1:  # scores on different data are not compared
        return None
    return max((statistics.fmean(of_arm), arm, len(of_arm)) for arm, of_arm in scores.items())


def name_while_running(trial: TrialSpec) -> str:
    """The name of a trial for users, with the loss that a search chose."""
    return trial.name if trial.arm is not None else f"{trial.name} {trial.params.get('loss', '')}".strip()


def running_trial(
    name: str, evaluations: Sequence[tuple[int, float, dict[str, float]]], seconds: float
) -> RunningTrial:
    """A trial that runs, by its evaluations: step, score and metrics of each."""
    if not evaluations:
        return RunningTrial(name, seconds)
    step, score, metrics = evaluations[-1]
    return RunningTrial(name, seconds, step, metrics.get("train/loss"), score)


def seconds_left(num_ended: int, num_left: int, elapsed: float) -> float | None:
    """The time for the trials that are left, if they end as often as the ones that have ended.

    >>> seconds_left(num_ended=2, num_left=6, elapsed=10.0)
    30.0
    """
    return elapsed * num_left / num_ended if num_ended else None
