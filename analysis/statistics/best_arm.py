"""The scores of arms by seed, and which arm is best of all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.intervals import UNIT_INTERVAL, Difference, Interval, holm_of, paired_difference, t_interval
from analysis.statistics.looks import Looks
from analysis.statistics.new_data import over_items, over_seeds_and_items

TUNED: Final = (" (tuned threshold)", " (tuned decision)")
"""Suffixes of an arm's name for the scores of its runs with the decision that is fitted on dev."""


def arm_of(row: str) -> str:
    """The name of the arm whose scores are in a row.

    >>> arm_of("dice (tuned threshold)"), arm_of("dice")
    ('dice', 'dice')
    """
    return next((row.removesuffix(suffix) for suffix in TUNED if row.endswith(suffix)), row)


@dataclass(frozen=True)
class BestArm:
    """The row that is ahead of the rows of all other arms, and whether it is shown to be.

    Attributes:
        name: The name of the row.
        runner_up: The row of another arm that is closest to it.
        lead: Over the runner-up, on new data where that is known; its p is Holm-corrected over the best row against
            each other one.
        wins: Whether it is significantly better than every other row.
    """

    name: str
    runner_up: str
    lead: Difference
    wins: bool


@dataclass(frozen=True)
class ArmScores:
    """The scores of an arm by seed, plain or tuned, and the contributions of test items if known.

    Attributes:
        looks: The declared numbers of seeds; empty for a study that declared none.
        ended: The seeds of its cells that have ended, with a score or without one.
        is_fixed: Whether it is one run without a seed, such as predictions of another program: it has its score and its
            items with each seed of the other arms, so that differences vary with their seeds and the test items alone.
    """

    name: str
    scores: Mapping[int, float]
    parts: Mapping[int, NDArray[np.floating]]
    test_per_train: float = 0.0
    limits: tuple[float, float] = UNIT_INTERVAL
    lower_is_better: bool = False
    looks: tuple[int, ...] = ()
    ended: Set[int] = frozenset()
    is_fixed: bool = False

    @property
    def arm(self) -> str:
        return arm_of(self.name)

    @property
    def interval(self) -> Interval:
        """The mean score with its interval over seeds, or of a fixed run over test items, where those are known."""
        if not self.is_fixed:
            return t_interval(list(self.scores.values()), self.test_per_train, self.limits)
        score = next(iter(self.scores.values()), math.nan)
        parts = next(iter(self.parts.values()), None)
        if parts is None:
            return Interval(score, num=1 if self.scores else 0)
        return over_items(parts, self.limits)

    def minus(self, other: ArmScores) -> Difference:
        """The difference over the seeds that both have, at the last look that both have reached."""
        looks, seeds = self.looks_with(other), set(self.shared_with(other))
        mine, others = (
            {seed: score for seed, score in row.scores.items() if seed in seeds or not seeds} for row in (self, other)
        )
        difference = paired_difference(mine, others, self.test_per_train, self.limits, looks)
        return replace(difference, lower_is_better=self.lower_is_better)

    def on_new_data(self, other: ArmScores) -> Difference | None:
        """The same difference on new data; None if a seed that both have lacks its items."""
        seeds = self.shared_with(other)
        if not seeds or not set(seeds) <= self.parts.keys() & other.parts.keys():
            return None
        mine, its = (np.stack([row.parts[seed] for seed in seeds]) for row in (self, other))
        low, high = self.limits
        difference = over_seeds_and_items(mine, its, self.looks_with(other), bound=high - low)
        return replace(difference, lower_is_better=self.lower_is_better)

    def shared_with(self, other: ArmScores) -> list[int]:
        """The seeds with a score of both, up to the last look that both have reached."""
        shared, looks = sorted(self.scores.keys() & other.scores.keys()), self.looks_with(other)
        return [seed for seed in shared if looks is None or seed <= looks.reached or looks.is_beyond]

    def differences_to(self, other: ArmScores) -> tuple[float, ...]:
        return tuple(self.scores[seed] - other.scores[seed] for seed in self.shared_with(other))

    def looks_with(self, other: ArmScores) -> Looks | None:
        """The last look that both have reached; None where the number of seeds was chosen before the first run."""
        both = self.ended & other.ended
        if len(self.looks) <= 1 and len(both) <= max(self.looks, default=len(both)):
            return None
        reached = max((num for num in self.looks if both >= {*range(1, num + 1)}), default=self.looks[0] - 1)
        return Looks(self.looks, len(both) if reached == self.looks[-1] else reached)


def best_arm(rows: Sequence[ArmScores]) -> BestArm | None:
    """The best row, and whether it is significantly better than every row of another arm; None without two to compare.

    The best row has the largest smallest lead over the others. Each pair is compared on the seeds that both have, so
    that no arm is best because it ran on the easy seeds only.

    Holm's correction multiplies the smallest p by the number of tests and the largest by 1. The runner-up usually has
    the largest, so that of two arms that are equally good and best, one wins by chance in 5 % of studies.
    """
    rows = [row for row in rows if row.scores]
    if len(rows) < 2:
        return None
    # Where the shared seeds differ, three arms can each be ahead of the next in a circle: the smallest lead decides.
    leads = {row.name: {other.name: row.minus(other).gain.mean for other in rows if other is not row} for row in rows}
    first = max(rows, key=lambda row: min(leads[row.name].values()))
    others = sorted((row for row in rows if row is not first), key=lambda row: leads[first.name][row.name])
    # On new data where that is known.
    differences = holm_of([first.on_new_data(other) or first.minus(other) for other in others])
    wins = all(each.is_ahead for each in differences)
    return BestArm(first.name, others[0].name, differences[0], wins)
