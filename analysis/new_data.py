"""How sure a difference is beyond this test set: over seeds and items, over splits, and over data sets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analysis.statistics import ALPHA, LEVEL, NO_SPREAD, Difference, Interval

NUM_RESAMPLES: Final = 1000

Score = Callable[[NDArray[np.floating]], NDArray[np.floating]]
"""Of `counts_...3`, added up over items (true positives, false positives, false negatives), the score."""


def f1(counts: NDArray[np.floating]) -> NDArray[np.floating]:
    """The micro F1 of `counts_...3`; 0 where there is nothing to find and nothing found."""
    tp, wrong = counts[..., 0], counts[..., 1] + counts[..., 2]
    return np.asarray(np.where(tp > 0, 2 * tp / np.maximum(2 * tp + wrong, 1), 0.0))


def over_seeds_and_items(
    counts: NDArray[np.integer], baseline: NDArray[np.integer], score: Score = f1, *, seed: int = 0
) -> Difference:
    """The mean difference with both sources of chance: other seeds, and other items of the same kind.

    SE^2 = s_d^2/n + the variance of the mean difference over resampled items, the same items for both arms and all
    seeds (the idea of Sellam et al. 2022, "The MultiBERTs"); degrees of freedom by Satterthwaite. Slightly wide: how
    much seeds differ on single items is in both parts.

    Args:
        counts: `counts_SI3` of the arm, the seeds and items in the order of the baseline's.
        baseline: `counts_SI3` of the baseline.
        score: Of counts that were added up.
        seed: Of the resampling.
    """
    assert counts.shape == baseline.shape, "the same seeds and items"
    num_seeds, num_items, _ = counts.shape
    differences_S = score(counts.sum(1)) - score(baseline.sum(1))
    mean = float(differences_S.mean())
    if num_seeds < 2 or num_items < 2:
        return Difference(Interval(mean, math.nan, math.nan, num_seeds), math.nan)
    weights_BI = np.random.default_rng(seed).multinomial(num_items, [1 / num_items] * num_items, NUM_RESAMPLES)
    sums_SB3, sums_of_baseline_SB3 = (weights_BI.astype(float) @ of.astype(float) for of in (counts, baseline))
    of_seeds = float(differences_S.var(ddof=1)) / num_seeds
    of_items = float((score(sums_SB3) - score(sums_of_baseline_SB3)).mean(0).var(ddof=1))
    error = math.sqrt(of_seeds + of_items)
    if error < NO_SPREAD:
        return Difference(Interval(mean, mean, mean, num_seeds), math.nan)
    freedom = (of_seeds + of_items) ** 2 / (of_seeds**2 / (num_seeds - 1) + of_items**2 / (num_items - 1))
    return _tested(mean, error, freedom, num_seeds)


def over_splits(differences: Sequence[float], test_share: float) -> Difference:
    """The mean difference where each seed has a split of its own: the training sets overlap, so the variance is wider.

    (1/n + test_share/(1 - test_share)) s^2, the corrected test of Nadeau and Bengio (2003).

    Args:
        differences: One a split.
        test_share: The share of the data that each split tests on.
    """
    num, mean = len(differences), float(np.mean(differences))
    if num < 2 or np.ptp(differences) < NO_SPREAD:
        return Difference(Interval(mean, math.nan, math.nan, num), math.nan)
    variance = (1 / num + test_share / (1 - test_share)) * float(np.var(differences, ddof=1))
    return _tested(mean, math.sqrt(variance), num - 1, num)


@dataclass(frozen=True)
class AcrossDataSets:
    """Whether an arm beats the baseline over data sets.

    Attributes:
        p: Of Wilcoxon's signed-rank test; NaN where it is impossible.
        num: Data sets.
        least: How many it takes before any result could be told apart.
    """

    p: float
    num: int
    least: int


def over_data_sets(differences: Sequence[float], num_arms: int) -> AcrossDataSets:
    """Wilcoxon's signed-rank test over data sets (Demsar 2006), one mean difference each.

    With n data sets the least p is 2^(1-n): where that is above .05 over the number of arms compared, it is not run.
    """
    num, least = len(differences), math.ceil(1 + math.log2(num_arms / ALPHA))
    if num < least or np.allclose(differences, 0):
        return AcrossDataSets(math.nan, num, least)
    return AcrossDataSets(float(stats.wilcoxon(differences).pvalue), num, least)


def _tested(mean: float, error: float, freedom: float, num: int) -> Difference:
    half = float(stats.t.ppf((1 + LEVEL) / 2, freedom)) * error
    return Difference(Interval(mean, mean - half, mean + half, num), float(2 * stats.t.sf(abs(mean) / error, freedom)))
