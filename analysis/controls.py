"""The controls of a study: what should not differ from its baseline."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import pandas as pd

from analysis.frames import by_seed
from analysis.statistics.best_arm import ArmScores
from analysis.statistics.intervals import FEW_SEEDS, Difference, paired_difference


@dataclass(frozen=True)
class Control:
    """What should not differ from the baseline, and shows how large differences are that no loss makes.

    In a tuned study it has the baseline's loss with the other settings of a tuned arm: the search alone differs. With
    shared settings it has equal class weights. An A/A control is the baseline with other seeds.

    Attributes:
        arm: The arm whose settings it has, except those of the loss; the name of the baseline for the other two.
        difference: To the baseline; its p is not corrected: better that a control fails too often than too seldom.
    """

    arm: str
    difference: Difference
    has_own_seeds: bool = False

    @classmethod
    def of(cls, arm: str, baseline: ArmScores, seeds: pd.Series[int], values: pd.Series[float]) -> Self:
        """The control for an arm from its scores by seed."""
        scored = by_seed(values, seeds)
        difference = paired_difference(scored, baseline.scores, baseline.test_per_train, baseline.limits)
        return cls(arm, difference, has_own_seeds=not {*seeds} & baseline.ended)

    @property
    def is_passed(self) -> bool | None:
        """Whether it cannot be told apart from the baseline; None if that cannot be tested.

        Fewer than `FEW_SEEDS` seeds cannot be tested, nor the same difference with all seeds, as of runs that collapse.
        """
        mean, num = self.difference.interval.mean, self.difference.interval.num
        is_tested = num >= FEW_SEEDS and (mean == 0 or not math.isnan(self.difference.p))
        return not self.difference.is_significant if is_tested else None
