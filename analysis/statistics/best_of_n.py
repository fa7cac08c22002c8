"""The best of n settings by dev: its expected test score, and the uncertainty over drawn settings and seeds.

Arrays have the axes N (settings drawn from a search space) and R (seeds). The expected score of the best of n settings
is a U-statistic: its mean over all subsets of n of the N settings, without replacement, which is unbiased. (With
replacement, as in Dodge et al. 2019, "Show Your Work", the estimate is too low: a subset may have one setting twice.)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.intervals import StandardError


def best_of(dev_NR: NDArray[np.floating], test_NR: NDArray[np.floating], budget: int) -> NDArray[np.floating]:
    """The expected test score of the setting with the best dev score of `budget` settings, for each seed.

    Settings with equal dev scores are equally likely to be chosen; -inf for a run that failed.

    >>> best_of(np.array([[1.0], [2.0], [3.0]]), np.array([[0.4], [0.6], [0.5]]), 2)
    array([0.53333333])
    """
    upto_NR, below_NR = (compare(dev_NR[:, None], dev_NR).sum(1) for compare in (np.greater_equal, np.greater))
    return np.asarray((_chances_of(upto_NR, below_NR, len(dev_NR), budget) * test_NR).sum(0))


def _chances_of(upto: NDArray[np.integer], below: NDArray[np.integer], num: int, budget: int) -> NDArray[np.floating]:
    """The chance to be chosen, by the number of settings with at most the same and with a lower dev score.

    >>> _chances_of(np.array([1, 2, 3, 4]), np.array([0, 1, 2, 3]), 4, 2)
    array([0.        , 0.16666667, 0.33333333, 0.5       ])
    """
    from scipy import special

    ways = special.comb(np.arange(num + 1), budget)
    return np.asarray((ways[upto] - ways[below]) / np.maximum(upto - below, 1) / ways[-1])


def pseudo_values(dev_NR: NDArray[np.floating], test_NR: NDArray[np.floating], budget: int) -> NDArray[np.floating]:
    """What each setting and seed adds to the estimate (Tukey's jackknife): their mean over settings is `best_of`.

    For a budget of 1 these are the test scores themselves. The budget must be less than the number of settings.
    """
    num = len(dev_NR)
    # [i, j]: setting j has at most the dev score of setting i, or a lower one.
    upto_NNR, below_NNR = (compare(dev_NR[:, None], dev_NR) for compare in (np.greater_equal, np.greater))
    # The same counts after setting j is left out.
    upto_left_NNR = upto_NNR.sum(1)[:, None] - upto_NNR
    below_left_NNR = below_NNR.sum(1)[:, None] - below_NNR
    chances_NNR = _chances_of(upto_left_NNR, below_left_NNR, num - 1, budget)
    chances_NNR[np.arange(num), np.arange(num)] = 0
    left_out_NR = (chances_NNR * test_NR[:, None]).sum(0)
    return np.asarray(num * best_of(dev_NR, test_NR, budget) - (num - 1) * left_out_NR)


def crossed_errors(
    values_NR: NDArray[np.floating], budget: int, test_per_train: float = 0.0
) -> tuple[StandardError, ...]:
    """The standard errors of the mean of pseudo-values, whose settings and seeds are both drawn at random.

    SE^2 = MS_settings/(N R) + the variance component of seeds times (1/R + `test_per_train`), with Satterthwaite's
    degrees of freedom, and never less than over seeds alone, as in `new_data.over_seeds_and_items`.

    The settings have fewer degrees of freedom than N - 1: the best of a third of them rests on few settings, as many
    as have equal chances with the same sum of squares (Kish's effective size). With N - 1, 7 % of studies of five equal
    losses find a difference for the best of 4 of 12 settings, where settings suit each loss differently; percentiles of
    a bootstrap are narrower still (`tests/benchmarks/equal_budget.py`).

    Args:
        values_NR: Of one arm, or the differences of two arms with the same settings and seeds.
        budget: The number of settings of which the best is taken.
        test_per_train: As in `statistics.t_interval`.

    Returns:
        Nothing for fewer than two settings or seeds.
    """
    num, num_seeds = values_NR.shape
    if num < 2 or num_seeds < 2:
        return ()
    of_settings_N, of_seeds_R = values_NR.mean(1), values_NR.mean(0)
    rest_NR = values_NR - of_settings_N[:, None] - of_seeds_R + values_NR.mean()
    rest = float((rest_NR**2).sum()) / ((num - 1) * (num_seeds - 1))
    settings = float(of_settings_N.var(ddof=1)) / num
    between_seeds = float(of_seeds_R.var(ddof=1))
    share = 1 / num_seeds + test_per_train
    seeds = max(between_seeds - rest / num, 0.0) * share
    both = StandardError.of_sum((settings, _effective(num, budget)), (seeds, num_seeds - 1))
    return both, StandardError(math.sqrt(between_seeds * share), num_seeds - 1)


def one_seed_errors(
    values_NR: NDArray[np.floating], budget: int, test_per_train: float = 0.0
) -> tuple[StandardError, ...]:
    """The standard error of the mean of pseudo-values of settings that were each run with one seed, another for each.

    Their spread is then that over settings and seeds. The arguments are those of `crossed_errors`, and so are the
    degrees of freedom of the settings. With `test_per_train` all of the spread counts as that of the splits, so that
    the error is rather too large.

    Returns:
        Nothing for fewer than two settings.
    """
    if (num := len(values_NR)) < 2:
        return ()
    size = float(values_NR.std(ddof=1)) * math.sqrt(1 / num + test_per_train)
    return (StandardError(size, _effective(num, budget)),)


def _effective(num: int, budget: int) -> float:
    """The degrees of freedom of the best of `budget` of `num` settings: Kish's effective size of their chances."""
    ranks = np.arange(num)
    return min(1 / float((_chances_of(ranks + 1, ranks, num, budget) ** 2).sum()), num - 1)
