"""Uncertainty of means over seeds: t intervals, paired differences, Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy import special

LEVEL: Final = 0.95
"""The confidence level of every interval."""
ALPHA: Final = 0.05
"""Two arms are significantly different if the Holm-corrected p is at most this."""
FEW_SEEDS: Final = 5
"""With fewer shared seeds no difference is called significant, and no arm the winner."""
NO_SPREAD: Final = 1e-12
"""A smaller spread is rounding error, and the values count as equal."""


@dataclass(frozen=True)
class Interval:
    """A mean and its interval over `num` values; the bounds are NaN with fewer than two."""

    mean: float
    low: float
    high: float
    num: int


@dataclass(frozen=True)
class Difference:
    """A mean difference over shared seeds; `p` is NaN if it cannot be tested."""

    interval: Interval
    p: float

    @property
    def is_significant(self) -> bool:
        """Whether the p, which must be the corrected one, is at most `ALPHA`, over at least `FEW_SEEDS` seeds."""
        return self.p <= ALPHA and self.interval.num >= FEW_SEEDS

    @property
    def is_ahead(self) -> bool:
        """Whether it is significant and above 0."""
        return self.is_significant and self.interval.mean > 0


def t_interval(values: Sequence[float], test_per_train: float = 0.0) -> Interval:
    """Student's t interval of the mean; NaN bounds for one value, and a NaN mean for none.

    Args:
        values: One for each seed.
        test_per_train: n_test/n_train if each seed drew its own splits, else 0. The training sets of such seeds
            overlap, so that the variance of their mean is not s^2/n but (1/n + n_test/n_train) s^2 (Nadeau and Bengio
            2003).

    >>> t_interval([1.0, 2.0, 3.0])
    Interval(mean=2.0, low=-0.4841377117503298, high=4.48413771175033, num=3)
    """
    num = len(values)
    if num < 2:
        return Interval(float(values[0]) if num else math.nan, math.nan, math.nan, num)
    mean = float(np.mean(values))
    # Both tails share 1 - LEVEL, hence the quantile at (1 + LEVEL) / 2.
    half = float(special.stdtrit(num - 1, (1 + LEVEL) / 2)) * _standard_error(values, test_per_train)
    return Interval(mean, mean - half, mean + half, num)


def paired_difference(
    values: Mapping[int, float], baseline: Mapping[int, float], test_per_train: float = 0.0
) -> Difference:
    """Student's paired t test of the mean difference over the seeds that both have.

    Differences without spread (two arms that collapse to the same score) are not tested: their p is NaN.
    """
    shared = sorted(values.keys() & baseline.keys())
    differences = [values[seed] - baseline[seed] for seed in shared]
    interval = t_interval(differences, test_per_train)
    if len(shared) < 2 or np.ptp(differences) < NO_SPREAD:
        return Difference(interval, math.nan)
    t = interval.mean / _standard_error(differences, test_per_train)
    return Difference(interval, float(2 * special.stdtr(len(shared) - 1, -abs(t))))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction (Holm 1979) of the p values; NaN values stay NaN and do not count.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    tested = sorted((p, index) for index, p in enumerate(p_values) if not math.isnan(p))
    adjusted, highest = [math.nan] * len(p_values), 0.0
    for rank, (p, index) in enumerate(tested):
        # The running maximum: a larger p must not get a smaller corrected p.
        highest = max(highest, min(1.0, (len(tested) - rank) * p))
        adjusted[index] = highest
    return adjusted


def holm_of(differences: Sequence[Difference]) -> list[Difference]:
    """The same differences with Holm-corrected p values."""
    adjusted = holm([difference.p for difference in differences])
    return [replace(difference, p=p) for difference, p in zip(differences, adjusted, strict=True)]


def what_seeds_allow(num: int) -> str:
    """Which conclusions this many seeds support; completes a sentence."""
    if num >= 10:
        return "enough for a claim"
    return "enough to show large effects only" if num >= FEW_SEEDS else "too few for a claim"


def _standard_error(values: Sequence[float], test_per_train: float) -> float:
    return float(np.std(values, ddof=1)) * math.sqrt(1 / len(values) + test_per_train)
