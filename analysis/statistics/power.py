"""What a number of seeds can show: the smallest visible difference, and the seeds to plan for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from analysis.statistics.intervals import ALPHA, FEW_SEEDS, Difference
from analysis.statistics.looks import Looks

_POWER: Final = 0.8
"""The probability that a real difference of the planned size becomes significant."""
_FUTILE: Final = 0.1
"""With a lower chance to become significant at the last look, an arm runs no more seeds."""
_MOST_SEEDS: Final = 1000
"""More seeds are not planned: the difference is too small for any study."""


def smallest_visible(difference: Difference, num_tests: int = 1) -> float:
    """The smallest true difference that as many seeds with this spread show with the power `_POWER`.

    Args:
        difference: It says nothing but how large the spread is, over seeds and over test items if they are known.
        num_tests: The number of p values that are corrected together: the smallest is tested at `ALPHA` / `num_tests`.

    Returns:
        NaN for a difference that cannot be tested.
    """
    level = difference.looks.level(ALPHA / num_tests) if difference.looks else ALPHA / num_tests
    return max((_noncentrality(error.freedom, level) * error.size for error in difference.errors), default=math.nan)


def visible_on_items(difference: Difference, num_tests: int = 1) -> float:
    """The same with any number of seeds: what these test items can show at all; 0 if they are not known."""
    return _noncentrality(1e6, ALPHA / num_tests) * math.sqrt(difference.item_variance)


def seeds_needed(
    difference: Difference,
    effect: float,
    num_tests: int = 1,
    test_per_train: float = 0.0,
    looks: tuple[int, ...] = (),
) -> int | None:
    """How many seeds in all show a true difference of this size with the power `_POWER`.

    Args:
        difference: Of which the spread is taken, as in `smallest_visible`.
        effect: The difference to plan for. That of few seeds is no plan: the largest of several is mostly chance.
        num_tests: As in `smallest_visible`.
        test_per_train: As in `t_interval`.
        looks: The declared numbers of seeds: more are judged by e-values, which need larger differences.

    Returns:
        At least `FEW_SEEDS`; None for a difference that cannot be tested, and for more than `_MOST_SEEDS` seeds.
    """
    if not difference.errors:
        return None
    variance = difference.errors[-1].size ** 2 / (1 / difference.interval.num + test_per_train)

    def visible(num: int) -> float:
        error = math.sqrt(variance * (1 / num + test_per_train) + difference.item_variance)
        level = ALPHA / num_tests
        if looks and num > looks[-1]:
            level = Looks(looks, num).level(level)
        return _noncentrality(num - 1, level) * error

    # No bisection: it rises where e-values begin.
    return next((num for num in range(FEW_SEEDS, _MOST_SEEDS + 1) if visible(num) <= effect), None)


def is_futile(difference: Difference, num_tests: int = 1) -> bool:
    """Whether further looks will hardly find a difference: its chance at the last one, were the seen difference true.

    Stopping for this reason can only lower the share of false claims.
    """
    from scipy import special

    looks = difference.looks
    if looks is None or looks.reached >= looks.seeds[-1] or looks.reached < looks.seeds[0] or not difference.errors:
        return False
    num, most = difference.interval.num, looks.seeds[-1]
    variance = difference.errors[-1].size ** 2 * num
    level = Looks(looks.seeds, most).level(ALPHA / num_tests)
    needed = -float(special.ndtri(level / 2)) * math.sqrt(variance / most + difference.item_variance)
    # Given the mean so far, the mean at the end varies by the seeds that are left.
    rest = math.sqrt(variance * max(most - num, 1)) / most
    return float(special.ndtr((abs(difference.interval.mean) - needed) / max(rest, 1e-300))) < _FUTILE


def _noncentrality(freedom: float, level: float) -> float:
    """That at which |t| exceeds its critical value with the power `_POWER`; the other tail is negligible."""
    from scipy import special

    return float(special.nctdtrinc(freedom, 1 - _POWER, special.stdtrit(freedom, 1 - level / 2)))


def expected_runs(looks: Sequence[int], num_arms: int, lead: float) -> float:
    """The mean number of runs of a study in looks, its baseline's among them, by simulation of 500 studies.

    Args:
        looks: The declared numbers of seeds.
        num_arms: Besides the baseline.
        lead: Of one of them, in standard deviations of its differences to the baseline; the others are equal to it.
    """
    from scipy import special

    noise = np.random.default_rng(0).normal(size=(500, num_arms + 1, looks[-1]))
    found_DAS = (noise[:, 1:] - noise[:, :1]) / math.sqrt(2)
    found_DAS[:, 0] += lead
    is_open_DA, num_claimed_D, runs = np.ones(found_DAS.shape[:2], bool), np.zeros(500, int), 0.0
    last = special.ndtri(1 - Looks(tuple(looks), looks[-1]).level(ALPHA / num_arms) / 2)
    for before, num in pairwise((0, *looks)):
        runs += (num - before) * float((is_open_DA.sum(1) + is_open_DA.any(1)).mean())
        t_DA = np.abs(found_DAS[..., :num].mean(-1)) / found_DAS[..., :num].std(-1, ddof=1) * math.sqrt(num)
        levels = [Looks(tuple(looks), num).level(ALPHA / left) for left in range(num_arms, 0, -1)]
        bounds = special.stdtrit(num - 1, 1 - np.array([*levels, 0.0]) / 2)
        for _ in range(num_arms):
            claimed_DA = is_open_DA & (t_DA >= bounds[num_claimed_D, None])
            is_open_DA &= ~claimed_DA
            num_claimed_D = num_claimed_D + claimed_DA.sum(1)
        share = num / looks[-1]
        if share < 1:
            is_open_DA &= special.ndtr((t_DA / math.sqrt(share) - last) / math.sqrt(1 - share)) >= _FUTILE
    return runs
