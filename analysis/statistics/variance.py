"""Variance components of scores by arm, setting and seed: which of them decides the test score."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.intervals import ALPHA, NO_SPREAD, Interval

LOSS, SETTINGS, SEED, BOTH, RESIDUAL = "loss", "settings", "seed", "loss x settings", "residual"


def deviations(scores_ANR: NDArray[np.floating]) -> dict[str, Interval]:
    """The standard deviations of arms (A), settings (N), seeds (R), arms x settings, and the residual, by name.

    The model is score = mean + arm + setting + seed + arm x setting + residual, all effects random. The variances are
    those of the analysis of variance (Searle, Casella and McCulloch 1992, chapter 4): each mean square is equal to
    its expectation, and a negative component is 0. For a table without gaps this is REML wherever no component is
    negative; a table with gaps is not accepted.

    Those of arms and settings have 95 % intervals. An interval is that of the spread of these very arms or settings,
    taken as fixed: how far others would differ, it does not say. It is the noncentrality of the F test against the
    interaction, inverted, with the mean square of the interaction as estimated. A share of the variance would depend on
    which settings were drawn, and is not given.

    Returns:
        With one seed the interaction is not told apart from the residual and is absent, as is the seed. Empty for fewer
        than two arms or settings, and for equal scores.
    """
    num_arms, num, num_seeds = scores_ANR.shape
    if num_arms < 2 or num < 2 or np.ptp(scores_ANR) < NO_SPREAD:
        return {}
    means_AN, mean = scores_ANR.mean(2), float(scores_ANR.mean())
    means_A, means_N = means_AN.mean(1), means_AN.mean(0)
    variance_A, variance_N = float(means_A.var(ddof=1)), float(means_N.var(ddof=1))
    interaction_AN = means_AN - means_A[:, None] - means_N + mean
    squares = num_seeds * float((interaction_AN**2).sum()) / ((num_arms - 1) * (num - 1))
    variances = {
        LOSS: variance_A - squares / (num * num_seeds),
        SETTINGS: variance_N - squares / (num_arms * num_seeds),
    }
    if num_seeds == 1:
        variances[RESIDUAL] = squares
    else:
        means_R = scores_ANR.mean((0, 1))
        rest_ANR = scores_ANR - means_AN[:, :, None] - means_R + mean
        residual = float((rest_ANR**2).sum()) / ((num_arms * num - 1) * (num_seeds - 1))
        variances[SEED] = float(means_R.var(ddof=1)) - residual / (num_arms * num)
        variances[BOTH] = (squares - residual) / num_seeds
        variances[RESIDUAL] = residual
    found = {name: Interval(math.sqrt(max(each, 0.0))) for name, each in variances.items()}
    for name, variance, size, repeated in (
        (LOSS, variance_A, num_arms, num * num_seeds),
        (SETTINGS, variance_N, num, num_arms * num_seeds),
    ):
        if variance * repeated >= 1e6 * squares:  # the interaction is rounding error, and scipy has no value
            continue
        freedom = (size - 1, (num_arms - 1) * (num - 1))
        low, high = (
            _noncentrality(variance * repeated / squares, freedom, level) * squares / (repeated * (size - 1))
            for level in (1 - ALPHA / 2, ALPHA / 2)
        )
        found[name] = Interval(found[name].mean, math.sqrt(low), math.sqrt(high), 0)
    return found


def _noncentrality(statistic: float, freedom: tuple[int, int], level: float) -> float:
    """Where F is at most the statistic with this probability; 0 if that is less likely with any noncentrality."""
    from scipy import optimize, special

    def excess(noncentrality: float) -> float:
        # scipy's own inverse, ncfdtrinc, has errors of 1e-4 and ends at 10,000.
        return float(special.ncfdtr(*freedom, noncentrality, statistic)) - level

    if excess(0.0) <= 0:
        return 0.0
    highest = 1.0
    while excess(highest) > 0:
        highest *= 4
    return float(optimize.brentq(excess, 0.0, highest))
