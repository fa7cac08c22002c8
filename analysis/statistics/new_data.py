"""Uncertainty of a difference beyond this test set: over seeds and test items."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from analysis.statistics import NO_SPREAD, Difference, Interval, StandardError

NUM_RESAMPLES: Final = 1000


def ratio(parts: NDArray[np.floating]) -> NDArray[np.floating]:
    """The score of `parts_...2` (numerator, denominator) summed over items; 0/0 is 0."""
    numerator, denominator = parts[..., 0], parts[..., 1]
    return np.asarray(np.where(denominator > 0, numerator / np.where(denominator > 0, denominator, 1), 0.0))


def over_seeds_and_items(parts: NDArray[np.floating], baseline: NDArray[np.floating], *, seed: int = 0) -> Difference:
    """The mean difference with two sources of variance: other seeds, and other test items of the same kind.

    SE^2 = s_d^2/n + the variance of the mean difference over resampled items, the same items for both arms and all
    seeds (the idea of Sellam et al. 2022, "The MultiBERTs"); degrees of freedom by Satterthwaite. The interval is
    slightly too wide, since the interaction of seeds and items is in both terms. It is never narrower, and p never
    smaller, than on the test set itself; Satterthwaite's degrees of freedom alone would allow that with few seeds.

    Args:
        parts: `parts_SI2` of the arm: what each item adds to numerator and denominator of the score. Seeds and items
            are in the order of the baseline's. Items must be independent: items of one document are one item here.
        baseline: `parts_SI2` of the baseline.
        seed: The seed of the resampling.

    Returns:
        A difference with NaN bounds and p for fewer than two seeds or items, or where it is the same with all seeds,
        which is not tested on this test set either.
    """
    assert parts.shape == baseline.shape, "the same seeds and items"
    num_seeds, num_items, _ = parts.shape
    differences_S = ratio(parts.sum(1)) - ratio(baseline.sum(1))
    mean = float(differences_S.mean())
    if num_seeds < 2 or num_items < 2 or np.ptp(differences_S) < NO_SPREAD:
        return Difference(Interval(mean, math.nan, math.nan, num_seeds), math.nan)
    of_seeds = float(differences_S.var(ddof=1)) / num_seeds
    # The bootstrap's variance of a mean over n items is (n - 1)/n of the unbiased one.
    of_items = num_items / (num_items - 1) * float(np.var(_resampled(np.stack([parts, baseline]), seed), ddof=1))
    variance = of_seeds + of_items
    # Satterthwaite: one degree of freedom fewer than there are seeds, and than there are items.
    freedom = of_seeds**2 / (num_seeds - 1) + of_items**2 / (num_items - 1)
    both = StandardError(math.sqrt(variance), variance**2 / freedom if freedom else math.inf)
    # More variance can come with more degrees of freedom, and so with a narrower interval: hence the test over seeds
    # alone as well.
    return Difference.tested(mean, num_seeds, (both, StandardError(math.sqrt(of_seeds), num_seeds - 1)), 1.0)


def _resampled(parts_2SI2: NDArray[np.floating], seed: int) -> NDArray[np.floating]:
    """The mean difference over seeds, for each of `NUM_RESAMPLES` bootstrap samples of the items.

    Items with the same parts in both arms and all seeds are counted together and drawn by a multinomial. Most items are
    right everywhere, so that this is many times as fast as drawing single items.
    """
    _, num_seeds, num_items, _ = parts_2SI2.shape
    # One row an item: its numerator and denominator in both arms and all seeds.
    unique, num_U = np.unique(parts_2SI2.transpose(2, 0, 1, 3).reshape(num_items, -1), axis=0, return_counts=True)
    weights_BU = np.random.default_rng(seed).multinomial(num_items, num_U / num_items, NUM_RESAMPLES)
    sums = (weights_BU @ unique).reshape(NUM_RESAMPLES, 2, num_seeds, 2)
    scores_B2S = ratio(sums)
    return np.asarray((scores_B2S[:, 0] - scores_B2S[:, 1]).mean(-1))
