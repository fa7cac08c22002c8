"""How sure a difference is beyond this test set: over seeds and items, and over data sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analysis.statistics import ALPHA, LEVEL, NO_SPREAD, Difference, Interval, paired_difference

NUM_RESAMPLES: Final = 1000


def ratio(parts: NDArray[np.floating]) -> NDArray[np.floating]:
    """The score of `parts_...2` that were added up over items: what is above over what is below; 0/0 is 0."""
    above, below = parts[..., 0], parts[..., 1]
    return np.asarray(np.where(below > 0, above / np.where(below > 0, below, 1), 0.0))


def over_seeds_and_items(parts: NDArray[np.floating], baseline: NDArray[np.floating], *, seed: int = 0) -> Difference:
    """The mean difference with both sources of chance: other seeds, and other items of the same kind.

    SE^2 = s_d^2/n + the variance of the mean difference over resampled items, the same items for both arms and all
    seeds (the idea of Sellam et al. 2022, "The MultiBERTs"); degrees of freedom by Satterthwaite. Slightly wide: how
    much seeds differ on single items is in both parts. Never surer than on the test set itself, which Satterthwaite's
    degrees of freedom would be with few seeds.

    Args:
        parts: `parts_SI2` of the arm, what each item adds to both sides of the score; the seeds and items in the order
            of the baseline's.
        baseline: `parts_SI2` of the baseline.
        seed: Of the resampling.
    """
    assert parts.shape == baseline.shape, "the same seeds and items"
    num_seeds, num_items, _ = parts.shape
    differences_S = ratio(parts.sum(1)) - ratio(baseline.sum(1))
    mean = float(differences_S.mean())
    if num_seeds < 2 or num_items < 2:
        return Difference(Interval(mean, math.nan, math.nan, num_seeds), math.nan)
    of_seeds = float(differences_S.var(ddof=1)) / num_seeds
    of_items = float(np.var(_resampled(np.stack([parts, baseline]), seed), ddof=1))
    error = math.sqrt(of_seeds + of_items)
    if error < NO_SPREAD:
        return Difference(Interval(mean, mean, mean, num_seeds), math.nan)
    freedom = (of_seeds + of_items) ** 2 / (of_seeds**2 / (num_seeds - 1) + of_items**2 / (num_items - 1))
    here = paired_difference(dict(enumerate(differences_S)), dict.fromkeys(range(num_seeds), 0.0))
    half = max(float(stats.t.ppf((1 + LEVEL) / 2, freedom)) * error, here.interval.high - mean)
    p = max(float(2 * stats.t.sf(abs(mean) / error, freedom)), 0.0 if math.isnan(here.p) else here.p)
    return Difference(Interval(mean, mean - half, mean + half, num_seeds), p)


def _resampled(parts_2SI2: NDArray[np.floating], seed: int) -> NDArray[np.floating]:
    """The mean difference over seeds, each time with as many items drawn again.

    Items that add the same for both arms and all seeds are drawn as one, by how many they are: most are right
    everywhere, so that this is many times as quick.
    """
    _, num_seeds, num_items, _ = parts_2SI2.shape
    alike, num_U = np.unique(parts_2SI2.transpose(2, 0, 1, 3).reshape(num_items, -1), axis=0, return_counts=True)
    weights_BU = np.random.default_rng(seed).multinomial(num_items, num_U / num_items, NUM_RESAMPLES)
    sums = (weights_BU @ alike).reshape(NUM_RESAMPLES, 2, num_seeds, 2)
    scores_B2S = ratio(sums)
    return np.asarray((scores_B2S[:, 0] - scores_B2S[:, 1]).mean(-1))


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
