"""Variance components of scores by arm, setting and seed: which of them decides the test score."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LOSS, SETTINGS, SEED, BOTH, RESIDUAL = "loss", "settings", "seed", "loss x settings", "residual"


def components(scores_ANR: NDArray[np.floating]) -> dict[str, float]:
    """The variance of arms, settings, seeds, the interaction of arms and settings, and the residual.

    The model is score = mean + arm + setting + seed + arm x setting + residual, all effects random. The components
    are those of the analysis of variance (Searle, Casella and McCulloch 1992, chapter 4): each mean square is equal to
    its expectation, and a negative component is 0. For a table without gaps this is REML wherever no component is
    negative; a table with gaps is not accepted.

    Args:
        scores_ANR: A score for each arm, setting and seed.

    Returns:
        By name; with one seed the interaction is not told apart from the residual and is absent, as is the seed.
        Empty for fewer than two arms or settings.
    """
    num_arms, num, num_seeds = scores_ANR.shape
    if num_arms < 2 or num < 2:
        return {}
    means_AN = scores_ANR.mean(2)
    means_A, means_N, means_R = means_AN.mean(1), means_AN.mean(0), scores_ANR.mean((0, 1))
    mean = float(scores_ANR.mean())
    interaction_AN = means_AN - means_A[:, None] - means_N + mean
    squares_of_both = num_seeds * float((interaction_AN**2).sum()) / ((num_arms - 1) * (num - 1))
    of_arms = num * num_seeds * float(means_A.var(ddof=1))
    of_settings = num_arms * num_seeds * float(means_N.var(ddof=1))
    found = {
        LOSS: (of_arms - squares_of_both) / (num * num_seeds),
        SETTINGS: (of_settings - squares_of_both) / (num_arms * num_seeds),
    }
    if num_seeds == 1:
        found[RESIDUAL] = squares_of_both
    else:
        rest_ANR = scores_ANR - means_AN[:, :, None] - means_R + mean
        residual = float((rest_ANR**2).sum()) / ((num_arms * num - 1) * (num_seeds - 1))
        found[SEED] = float(means_R.var(ddof=1)) - residual / (num_arms * num)
        found[BOTH] = (squares_of_both - residual) / num_seeds
        found[RESIDUAL] = residual
    return {name: max(variance, 0.0) for name, variance in found.items()}
