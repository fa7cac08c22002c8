"""Variance components against restricted maximum likelihood, computed from the covariance matrix of all scores."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import minimize

from analysis.statistics.variance import BOTH, LOSS, RESIDUAL, SEED, SETTINGS, deviations

A, N, R = 4, 6, 3


def drawn(seed: int) -> NDArray[np.floating]:
    rng = np.random.default_rng(seed)
    sizes = ((0.5, (A, 1, 1)), (1.0, (1, N, 1)), (0.4, (1, 1, R)), (0.6, (A, N, 1)), (0.5, (A, N, R)))
    return np.asarray(sum(rng.normal(0, spread, shape) for spread, shape in sizes))


def reml(scores_ANR: NDArray[np.floating]) -> list[float]:
    """The variances of loss, settings, seed, loss x settings and residual that maximise the restricted likelihood."""
    ones = [np.eye(size) for size in (A, N, R)], [np.ones((size, size)) for size in (A, N, R)]
    matrices = [
        np.kron(np.kron(ones[a][0], ones[n][1]), ones[r][2])
        for a, n, r in ((0, 1, 1), (1, 0, 1), (1, 1, 0), (0, 0, 1), (0, 0, 0))
    ]
    scores, intercept = scores_ANR.ravel(), np.ones((scores_ANR.size, 1))

    def deviance(logs: NDArray[np.floating]) -> float:
        covariance = sum(np.exp(log) * matrix for log, matrix in zip(logs, matrices, strict=True))
        inverse = np.linalg.inv(covariance)
        information = (intercept.T @ inverse @ intercept).item()
        residual = scores - (intercept.T @ inverse @ scores).item() / information
        return float(np.linalg.slogdet(covariance)[1] + np.log(information) + residual @ inverse @ residual)

    fitted = minimize(deviance, np.full(5, -1.0), method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-9})
    return [float(np.exp(log)) for log in fitted.x]


@pytest.mark.parametrize("seed", [1, 2])
def test_components_are_those_of_restricted_maximum_likelihood(seed: int) -> None:
    """A wrong divisor or expectation of a mean square gives plausible shares."""
    found = deviations(drawn(seed))
    variances = [found[name].mean ** 2 for name in (LOSS, SETTINGS, SEED, BOTH, RESIDUAL)]
    assert min(variances) > 0, "the two estimates agree where no component is negative"
    assert variances == pytest.approx(reml(drawn(seed)), rel=1e-3)


def test_a_negative_component_is_0() -> None:
    """A negative share would make the others exceed 100 %."""
    scores_ANR = np.random.default_rng(3).normal(size=(A, N, R))
    found = deviations(scores_ANR - scores_ANR.mean((1, 2), keepdims=True))
    assert found[LOSS].mean == 0
    assert found[RESIDUAL].mean > 0


def test_what_one_seed_cannot_tell_apart_is_absent() -> None:
    """With one seed the interaction would be shown as 0, though it is in the residual."""
    assert deviations(drawn(0)[:, :, :1]).keys() == {LOSS, SETTINGS, RESIDUAL}
    assert deviations(drawn(0)[:1]) == {} == deviations(drawn(0)[:, :1])


def test_equal_scores_have_no_components() -> None:
    """Rounding errors of 1e-31 were shown as shares."""
    assert deviations(np.full((2, 6, 5), 0.8)) == {}


def test_the_interval_of_a_deviation_covers_the_true_one() -> None:
    """The variance of the loss of these two arms is .2, with random settings, seeds and interactions."""
    rng = np.random.default_rng(0)
    arms_A11 = np.array([[[-1.0]], [[1.0]]]) * np.sqrt(0.1)
    covered = 0
    for _ in range(300):
        settings_N = rng.normal(0, 1, 6)
        settings_N *= np.sqrt(0.4) / settings_N.std(ddof=1)
        noise = rng.normal(0, np.sqrt(0.2), (2, 6, 1)) + rng.normal(0, np.sqrt(0.2), (2, 6, 3))
        of_loss = deviations(arms_A11 + settings_N[None, :, None] + noise)[LOSS]
        covered += of_loss.low <= np.sqrt(0.2) <= of_loss.high
    assert covered >= stats.binom.ppf(0.001, 300, 0.95)


def test_the_interval_of_a_deviation_is_that_of_the_noncentral_f_distribution() -> None:
    scores_ANR = drawn(1) + np.arange(N)[None, :, None]
    found = deviations(scores_ANR)[SETTINGS]
    means_AN = scores_ANR.mean(2)
    interaction_AN = means_AN - means_AN.mean(1, keepdims=True) - means_AN.mean(0) + means_AN.mean()
    squares = R * (interaction_AN**2).sum() / ((A - 1) * (N - 1))
    assert found.mean**2 == pytest.approx(means_AN.mean(0).var(ddof=1) - squares / (A * R))
    statistic = A * R * means_AN.mean(0).var(ddof=1) / squares
    for bound, level in ((found.low, 0.975), (found.high, 0.025)):
        noncentrality = bound**2 * A * R * (N - 1) / squares
        assert stats.ncf.cdf(statistic, N - 1, (A - 1) * (N - 1), noncentrality) == pytest.approx(level, abs=1e-6)
