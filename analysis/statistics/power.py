"""What a number of seeds can show: the seeds to plan for, the smallest visible difference, the chance to collapse."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

import numpy as np

from analysis.statistics.intervals import ALPHA, FEW_SEEDS, NO_SPREAD, StandardError

_POWER: Final = 0.8
"""The probability that a real difference of the planned size becomes significant."""
MOST_SEEDS: Final = 1000
"""More seeds are not planned: the difference is too small for any study."""


def seeds_needed(differences: Sequence[float], num_tests: int = 1, test_per_train: float = 0.0) -> int | None:
    """How many seeds in all show a difference as large as the seen one, with the power `_POWER`.

    The paired t test at `ALPHA` / `num_tests`, the level at which Holm's correction tests the smallest p value, with
    the seen mean and standard deviation as the true ones. The seen mean of a few seeds is uncertain, and so is this
    number.

    Args:
        differences: One for each shared seed.
        num_tests: The number of p values that are corrected together.
        test_per_train: As in `t_interval`. Seeds that draw splits from the same records never show a difference that
            is small beside its spread, however many they are.

    Returns:
        At least `FEW_SEEDS`; None for fewer than two differences, differences without spread or with the mean 0, and
        for more than `MOST_SEEDS` seeds.

    >>> seeds_needed([0.03, -0.01, 0.02])
    22
    """
    if len(differences) < 2 or np.ptp(differences) < NO_SPREAD:
        return None
    mean, spread = abs(float(np.mean(differences))), float(np.std(differences, ddof=1))
    # The smallest visible difference falls with the number of seeds; `bisect` needs values that rise.
    planned = range(FEW_SEEDS, MOST_SEEDS + 1)
    place = bisect_left(planned, -mean, key=lambda num: -_visible(num, spread, num_tests, test_per_train))
    return planned[place] if place < len(planned) else None


def smallest_visible(differences: Sequence[float], num_tests: int = 1, test_per_train: float = 0.0) -> float:
    """The smallest true difference that as many seeds with this spread show with the power `_POWER`.

    NaN for fewer than two differences or differences without spread. The arguments are those of `seeds_needed`.
    """
    if len(differences) < 2 or np.ptp(differences) < NO_SPREAD:
        return math.nan
    return _visible(len(differences), float(np.std(differences, ddof=1)), num_tests, test_per_train)


def _visible(num: int, spread: float, num_tests: int, test_per_train: float) -> float:
    return visible_with(StandardError(spread * math.sqrt(1 / num + test_per_train), num - 1), num_tests)


def visible_with(error: StandardError, num_tests: int) -> float:
    """The smallest true difference that a t test with this standard error shows with the power `_POWER`."""
    from scipy import special

    critical = special.stdtrit(error.freedom, 1 - ALPHA / num_tests / 2)
    # The noncentrality at which |t| exceeds the critical value with the power `_POWER`; the other tail is negligible.
    return float(special.nctdtrinc(error.freedom, 1 - _POWER, critical)) * error.size


def collapse_bound(num_collapsed: int, num_runs: int) -> float:
    """The upper bound of the chance to collapse: one-sided, exact (Clopper and Pearson 1934), at the level 1 - `ALPHA`.

    1 without a run, or if all collapsed.

    >>> round(collapse_bound(0, 10), 3)
    0.259
    """
    if num_collapsed == num_runs:
        return 1.0
    from scipy import special

    return float(special.betaincinv(num_collapsed + 1, num_runs - num_collapsed, 1 - ALPHA))
