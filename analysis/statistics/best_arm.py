"""The scores of arms by seed, and which arm is best of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.intervals import UNIT_INTERVAL, Difference, holm_of, paired_difference
from analysis.statistics.new_data import over_seeds_and_items

TUNED: Final = " (tuned threshold)"
"""Suffix of an arm's name for the scores of its runs at the threshold tuned on dev."""


@dataclass(frozen=True)
class BestArm:
    """The row that is ahead of the rows of all other arms on the seeds that they share, and whether it wins.

    Attributes:
        name: The name of the row.
        runner_up: The row of another arm that is closest to it.
        difference: To the runner-up over seeds; its p is Holm-corrected over the best row against each such row.
        new_data: The same on new data; None if that is not known.
        wins: Whether it is significantly better over seeds than every row of another arm, or ahead by the same with
            each seed, which cannot be tested.
        wins_on_new_data: Whether it is significantly better than each on new data.
        untested: The rows that it is ahead of by the same with each seed.
        open: The rows over which its lead is not significant, with the differences to each, in the order of the seeds.
    """

    name: str
    runner_up: str
    difference: Difference
    new_data: Difference | None
    wins: bool
    wins_on_new_data: bool
    untested: tuple[str, ...]
    open: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class ArmScores:
    """The scores of an arm by seed, plain or at the tuned threshold, and the contributions of test items if known."""

    name: str
    scores: Mapping[int, float]
    parts: Mapping[int, NDArray[np.floating]]
    test_per_train: float = 0.0
    limits: tuple[float, float] = UNIT_INTERVAL

    @property
    def arm(self) -> str:
        return self.name.removesuffix(TUNED)

    def minus(self, other: ArmScores) -> Difference:
        return paired_difference(self.scores, other.scores, self.test_per_train, self.limits)

    def shared_with(self, other: ArmScores) -> list[int]:
        return sorted(self.scores.keys() & other.scores.keys())

    def lead_over(self, other: ArmScores) -> float:
        """The mean difference over the seeds that both have."""
        return float(np.mean(self.differences_to(other)))

    def differences_to(self, other: ArmScores) -> tuple[float, ...]:
        return tuple(self.scores[seed] - other.scores[seed] for seed in self.shared_with(other))

    def minus_on_new_data(self, other: ArmScores) -> Difference | None:
        """The difference on new data; None if a seed that both have lacks its items."""
        seeds = self.shared_with(other)
        if not seeds or not set(seeds) <= self.parts.keys() & other.parts.keys():
            return None
        return over_seeds_and_items(*(np.stack([row.parts[seed] for seed in seeds]) for row in (self, other)))


def best_arm(rows: Sequence[ArmScores]) -> BestArm | None:
    """The best row, and whether it is significantly better than every row of another arm; None without two to compare.

    The best row has the largest smallest lead over the rows of other arms (its rivals). Each pair is compared on the
    seeds that both have, so that no arm is best because it ran on the easy seeds only; with the same seeds for all
    arms, it is the row with the best mean. The two rows of one arm, plain and at the tuned threshold, are not rivals:
    the question is which arm is best.

    Holm's correction multiplies the smallest p by the number of tests and the largest by 1. The runner-up usually has
    the largest, so that of two arms that are equally good and best, one wins by chance in 5 % of studies.
    """
    # The leads form no order if the shared seeds differ (three arms can each be ahead of the next in a circle), so the
    # smallest lead decides, not a sort.
    others_of = {row.name: [other for other in rows if other.scores and other.arm != row.arm] for row in rows}
    rivals = {row.name: [other for other in others_of[row.name] if row.shared_with(other)] for row in rows}
    # A row could lead by sharing no seed with a strong rival: only the rows that miss the fewest rivals compete, and
    # none wins that misses one.
    fewest = min((len(others_of[name]) - len(rivals[name]) for name in rivals if rivals[name]), default=0)
    compared = [row for row in rows if rivals[row.name] and len(others_of[row.name]) - len(rivals[row.name]) == fewest]
    if not compared:
        return None
    first = max(compared, key=lambda row: min(row.lead_over(other) for other in rivals[row.name]))
    others = sorted(rivals[first.name], key=first.lead_over)
    differences = holm_of([first.minus(other) for other in others])
    on_new_data = [first.minus_on_new_data(other) for other in others]
    known = holm_of([difference for difference in on_new_data if difference])
    behind = [each.is_ahead or (each.is_constant and each.interval.mean > 0) for each in differences]
    return BestArm(
        first.name,
        others[0].name,
        differences[0],
        known[0] if on_new_data[0] else None,
        wins=not fewest and all(behind),
        wins_on_new_data=not fewest and len(known) == len(others) and all(difference.is_ahead for difference in known),
        untested=tuple(other.name for other, each in zip(others, differences, strict=True) if each.is_constant),
        open={
            other.name: first.differences_to(other)
            for other, is_behind in zip(others, behind, strict=True)
            if not is_behind
        },
    )
