"""The best of n settings: against all subsets written out, and the errors against the analysis of variance."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from analysis.statistics.best_of_n import best_of, crossed_errors, pseudo_values
from analysis.statistics.intervals import paired_difference

RNG = np.random.default_rng(0)
DEV_NR, TEST_NR = RNG.normal(size=(2, 7, 3))
TIED_NR = np.array([[1.0, -np.inf], [2.0, -np.inf], [2.0, 1.0], [2.0, 0.0], [0.0, 3.0]])


def over_subsets(dev_NR: NDArray[np.floating], test_NR: NDArray[np.floating], budget: int) -> NDArray[np.floating]:
    """The mean over subsets of the mean test score of the settings with the best dev score, for each seed."""
    means_R = []
    for dev_N, test_N in zip(dev_NR.T, test_NR.T, strict=True):
        chosen = [np.array(subset) for subset in combinations(range(len(dev_N)), budget)]
        means_R.append(np.mean([test_N[subset][dev_N[subset] == dev_N[subset].max()].mean() for subset in chosen]))
    return np.array(means_R)


@pytest.mark.parametrize("budget", [1, 2, 3, 5])
def test_the_best_of_n_is_the_mean_over_all_subsets(budget: int) -> None:
    """With replacement, or with ties resolved by position, the numbers would be near and wrong."""
    assert best_of(DEV_NR, TEST_NR, budget) == pytest.approx(over_subsets(DEV_NR, TEST_NR, budget))
    scores_NR = TEST_NR[:5, :2]
    assert best_of(TIED_NR, scores_NR, budget) == pytest.approx(over_subsets(TIED_NR, scores_NR, budget))


def test_the_best_of_all_is_chosen_by_dev() -> None:
    """An estimate that took the best test score would be optimistic."""
    assert best_of(DEV_NR, TEST_NR, 7) == pytest.approx(TEST_NR[DEV_NR.argmax(0), range(3)])


@pytest.mark.parametrize("budget", [1, 2, 3])
def test_pseudo_values_are_those_of_leaving_a_setting_out(budget: int) -> None:
    """A wrong count after leaving one out keeps the mean and changes the interval."""
    for dev_NR, test_NR in ((DEV_NR, TEST_NR), (TIED_NR, TEST_NR[:5, :2])):
        num, whole_R = len(dev_NR), over_subsets(dev_NR, test_NR, budget)
        for left_out, values_R in enumerate(pseudo_values(dev_NR, test_NR, budget)):
            rest = np.arange(num) != left_out
            without_R = over_subsets(dev_NR[rest], test_NR[rest], budget)
            assert values_R == pytest.approx(num * whole_R - (num - 1) * without_R)
        assert pseudo_values(dev_NR, test_NR, budget).mean(0) == pytest.approx(whole_R)


def test_of_one_setting_the_error_is_that_of_two_crossed_random_factors() -> None:
    """Values with an effect of the seed only have no error of settings, and the error of seeds is the classical one."""
    seeds_R = RNG.normal(size=5)
    both, of_seeds = crossed_errors(np.tile(seeds_R, (8, 1)), 1)
    (classical,) = paired_difference(dict(enumerate(seeds_R)), dict.fromkeys(range(5), 0.0)).errors
    assert (both.size, both.freedom) == pytest.approx((classical.size, classical.freedom))
    assert of_seeds.size == pytest.approx(classical.size)
    settings_N = RNG.normal(size=8)
    both, of_seeds = crossed_errors(np.tile(settings_N[:, None], 5), 1)
    (classical,) = paired_difference(dict(enumerate(settings_N)), dict.fromkeys(range(8), 0.0)).errors
    assert (both.size, both.freedom) == pytest.approx((classical.size, classical.freedom))
    assert of_seeds.size == pytest.approx(0)


def test_the_noise_of_single_runs_is_counted_once() -> None:
    """The mean squares of settings and of seeds both have it: their sum exceeds the variance of the mean by it."""
    values_NR = RNG.normal(size=(8, 1)) + RNG.normal(size=(1, 5)) + RNG.normal(size=(8, 5))
    of_settings, of_seeds = 5 * values_NR.mean(1).var(ddof=1), 8 * values_NR.mean(0).var(ddof=1)
    rest_NR = values_NR - values_NR.mean(1, keepdims=True) - values_NR.mean(0) + values_NR.mean()
    of_rest = (rest_NR**2).sum() / (7 * 4)
    assert of_seeds > of_rest
    both, _ = crossed_errors(values_NR, 1)
    assert both.size**2 == pytest.approx((of_settings + of_seeds - of_rest) / 40)


def test_the_best_of_many_rests_on_few_settings() -> None:
    """With N - 1 degrees of freedom whatever the budget, too many studies of equal arms find a difference."""
    values_NR = np.tile(RNG.normal(size=12)[:, None], 2)
    assert [round(crossed_errors(values_NR, budget)[0].freedom, 1) for budget in (1, 4, 6)] == [11.0, 4.6, 2.9]


def test_drawn_test_splits_widen_the_error_of_seeds() -> None:
    """Their training sets overlap, so that more seeds do not make the mean as certain as their number says."""
    values_NR = RNG.normal(size=(1, 5)) + np.zeros((8, 1))
    plain, drawn = (crossed_errors(values_NR, 1, ratio)[1].size for ratio in (0.0, 0.25))
    assert drawn / plain == pytest.approx(((1 / 5 + 0.25) / (1 / 5)) ** 0.5)


def test_one_seed_or_one_setting_has_no_error() -> None:
    assert crossed_errors(np.ones((5, 1)), 1) == crossed_errors(np.ones((1, 5)), 1) == ()
