"""Tests in looks: the levels against simulated studies and published boundaries, and what stopping early costs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from analysis.statistics.looks import Looks, looks_up_to

LOOKS = (5, 10, 15, 20)
ALPHA = 0.05


def t_at_looks(num: int, looks: tuple[int, ...] = LOOKS, shift: float = 0.0) -> np.ndarray:
    """Test statistics of so many simulated studies, one column for each look."""
    draws = np.random.default_rng(0).normal(shift, 1, (num, looks[-1]))
    return np.stack([stats.ttest_1samp(draws[:, :look], 0, axis=1).statistic for look in looks], 1)


@pytest.mark.parametrize("looks", [LOOKS, (5, 10, 12), (5, 6)])
def test_each_look_spends_its_part_of_the_level(looks: tuple[int, ...]) -> None:
    """Finds levels that are spent twice, as those of the normal distribution turned into t quantiles are."""
    t = t_at_looks(200_000, looks)
    bounds = [stats.t.isf(Looks(looks, num).level(ALPHA) / 2, num - 1) for num in looks]
    is_first = np.cumsum(np.abs(t) >= bounds, axis=1) == 1
    spent = np.mean(np.cumsum(is_first, axis=1) > 0, axis=0)
    assert spent == pytest.approx([ALPHA * (num / looks[-1]) ** 2 for num in looks], abs=0.0015)


@pytest.mark.parametrize(
    ("num_arms", "bounds"), [(1, (3.26, 2.63, 2.28)), (4, (4.16, 3.37, 2.99)), (24, (5.46, 4.31, 3.82))]
)
def test_the_bounds_of_simulations_with_millions_of_studies(num_arms: int, bounds: tuple[float, ...]) -> None:
    made = [stats.t.isf(Looks(LOOKS, num).level(ALPHA / num_arms) / 2, num - 1) for num in LOOKS]
    assert made[0] == pytest.approx(stats.t.isf(ALPHA / num_arms / 32, 4))
    assert made[1:] == pytest.approx(bounds, abs=0.02)


def test_the_p_of_a_look_is_the_level_at_which_it_is_significant() -> None:
    for reached in (5, 15, 20, 27):
        looks = Looks(LOOKS, reached)
        for p in (0.05, 0.02, 0.001):
            assert looks.level(looks.overall(p)) == pytest.approx(p, rel=0.01)
    assert Looks(LOOKS, 4).level(0.03) == 0.03


def test_seeds_that_are_added_at_will_find_no_difference_that_is_none() -> None:
    """A test after each added seed: the e-value is beyond its bound in at most 5 % of studies, a t test in 30 %."""
    looks = tuple(range(5, 60))
    t = t_at_looks(4000, looks)
    levels = np.array([Looks((5,), num).level(ALPHA) if num > 5 else 0.0 for num in looks])
    p = 2 * stats.t.sf(np.abs(t), np.array(looks) - 1)
    assert np.mean(np.any(p <= levels, 1)) <= 0.05
    assert np.mean(np.any(p <= ALPHA, 1)) > 0.2
    large = 2 * stats.t.sf(np.abs(t_at_looks(500, looks, 1.0)), np.array(looks) - 1)
    assert np.mean(np.any(large <= levels, 1)) > 0.95


def test_the_last_look_is_the_most_seeds() -> None:
    assert looks_up_to(20) == LOOKS
    assert looks_up_to(5) == (5,)
