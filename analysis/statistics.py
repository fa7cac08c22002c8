"""How sure a mean over seeds is: t intervals, paired differences, Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy import stats

LEVEL: Final = 0.95
"""Of every interval."""
ALPHA: Final = 0.05
"""Below it a corrected p tells two arms apart."""
FEW_SEEDS: Final = 5
"""With fewer shared seeds no two arms are said to be told apart, and none to win."""
NO_SPREAD: Final = 1e-12
"""Values closer than this are one value: their spread is that of rounding."""


@dataclass(frozen=True)
class Interval:
    """A mean and its interval; bounds are NaN where one value has none."""

    mean: float
    low: float
    high: float
    num: int


@dataclass(frozen=True)
class Difference:
    """A mean difference over shared seeds; `p` is NaN where there is nothing to test."""

    interval: Interval
    p: float

    @property
    def tells_apart(self) -> bool:
        """Whether it is more than chance, and over enough seeds to say so; its p is to be a corrected one."""
        return self.p <= ALPHA and self.interval.num >= FEW_SEEDS

    @property
    def is_ahead(self) -> bool:
        """Whether it is told apart, above 0."""
        return self.tells_apart and self.interval.mean > 0


def t_interval(values: Sequence[float], test_per_train: float = 0.0) -> Interval:
    """Student's interval of the mean.

    Args:
        values: One a seed.
        test_per_train: Where each seed drew splits of its own: n_test/n_train. The training sets of such seeds overlap,
            so that their mean varies more than s^2/n says: by (1/n + n_test/n_train) s^2 (Nadeau and Bengio 2003).

    >>> t_interval([1.0, 2.0, 3.0])
    Interval(mean=2.0, low=-0.48413771175033027, high=4.48413771175033, num=3)
    """
    num = len(values)
    if num < 2:
        return Interval(float(values[0]) if num else math.nan, math.nan, math.nan, num)
    mean = float(np.mean(values))
    half = float(stats.t.ppf((1 + LEVEL) / 2, num - 1)) * _standard_error(values, test_per_train)
    return Interval(mean, mean - half, mean + half, num)


def paired_difference(
    values: Mapping[int, float], baseline: Mapping[int, float], test_per_train: float = 0.0
) -> Difference:
    """Student's paired test of the mean difference over the seeds that both have, on the same splits each.

    Differences without any spread (two arms that collapse to the same score) are shown and not tested.
    """
    shared = sorted(values.keys() & baseline.keys())
    differences = [values[seed] - baseline[seed] for seed in shared]
    interval = t_interval(differences, test_per_train)
    if len(shared) < 2 or np.ptp(differences) < NO_SPREAD:
        return Difference(interval, math.nan)
    t = interval.mean / _standard_error(differences, test_per_train)
    return Difference(interval, float(2 * stats.t.sf(abs(t), len(shared) - 1)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction (Holm 1979) of the p values that are not NaN.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    tested = sorted((p, index) for index, p in enumerate(p_values) if not math.isnan(p))
    adjusted, highest = [math.nan] * len(p_values), 0.0
    for rank, (p, index) in enumerate(tested):
        highest = max(highest, min(1.0, (len(tested) - rank) * p))
        adjusted[index] = highest
    return adjusted


def holm_of(differences: Sequence[Difference]) -> list[Difference]:
    """The same differences with their p corrected by Holm."""
    adjusted = holm([difference.p for difference in differences])
    return [replace(difference, p=p) for difference, p in zip(differences, adjusted, strict=True)]


def what_seeds_allow(num: int) -> str:
    """What may be said from this many seeds."""
    if num >= 10:
        return "enough for a claim"
    return "enough to show large effects only" if num >= FEW_SEEDS else "a description, no ground for a claim"


def _standard_error(values: Sequence[float], test_per_train: float) -> float:
    return float(np.std(values, ddof=1)) * math.sqrt(1 / len(values) + test_per_train)
