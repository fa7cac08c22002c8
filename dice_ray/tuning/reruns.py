"""The best configurations of a sweep, run again with other seeds and ranked by their mean."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from dice_ray.tuning.ledger import Begun, History
from dice_ray.tuning.plan import SweepPlan

FIRST_SEED = 1001
"""Beyond those of studies, which would else compare on seeds that a search chose by."""


@dataclass(frozen=True)
class Ranked:
    """A configuration that was searched.

    Attributes:
        trial: That found it.
        score: Of that trial, by which it was chosen.
        others: The scores of its reruns, one for each seed.
    """

    trial: Begun
    score: float
    others: tuple[float, ...] = ()

    @property
    def mean(self) -> float:
        """Over the reruns alone: the trial's own score was chosen for being high."""
        return statistics.fmean(self.others) if self.others else self.score


def cells(plan: SweepPlan, history: History) -> list[Begun]:
    """The reruns of the best trials of a search, all of one seed before the next seed."""
    return [
        Begun(id=f"{best.id}-{seed}", params=best.params, seed=seed, rerun_of=best.id)
        for seed in seeds(plan)
        for best in top(plan, history)
    ]


def top(plan: SweepPlan, history: History) -> list[Begun]:
    """The best trials of a search so far, of different configurations: those that would run again."""
    best: list[Begun] = []
    for one in _by_score(history):
        if len(best) < plan.top and one.trial.params not in [other.params for other in best]:
            best.append(one.trial)
    return best


def expected(plan: SweepPlan) -> list[str]:
    """What stands for the ids of the reruns before the search has ended."""
    return [f"best {rank} seed {seed}" for seed in seeds(plan) for rank in range(min(plan.top, plan.trials))]


def seeds(plan: SweepPlan) -> range:
    """The seeds of the reruns."""
    return range(FIRST_SEED + plan.seed, FIRST_SEED + plan.seed + plan.seeds)


def ranking(history: History) -> list[Ranked]:
    """The trials with a score: first those that were run again, then by the score.

    Those go by their mean, but behind any with more reruns that have a score: one that failed is no seed to leave out.
    """
    others: dict[str, list[float]] = {}
    for begun, score in _scored(history):
        if begun.rerun_of is not None:
            others.setdefault(begun.rerun_of, []).append(score)
    found = [Ranked(one.trial, one.score, tuple(others.get(one.trial.id, ()))) for one in _by_score(history)]
    return sorted(found, key=lambda one: (-len(one.others), -one.mean))


def _by_score(history: History) -> list[Ranked]:
    """Each trial that was searched and has a score, the best first; of equals the first."""
    found = [Ranked(begun, score) for begun, score in _scored(history) if begun.rerun_of is None]
    return sorted(found, key=lambda one: -one.score)


def _scored(history: History) -> list[tuple[Begun, float]]:
    """What did not fail, in the order of beginning, with its score."""
    ended = [(begun, history.ended[id_]) for id_, begun in history.begun.items() if id_ in history.ended]
    return [(begun, end.score) for begun, end in ended if end.score is not None and end.state != "failed"]
