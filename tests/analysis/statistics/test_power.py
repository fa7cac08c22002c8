"""Numbers of seeds and visible differences against scipy's distributions and by simulation; collapses against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from analysis.statistics.intervals import ALPHA, FEW_SEEDS, paired_difference
from analysis.statistics.power import MOST_SEEDS, collapse_bound, seeds_needed, smallest_visible


def power(difference: float, spread: float, num: int, level: float = ALPHA, test_per_train: float = 0.0) -> float:
    """Of the two-sided t test, by scipy's noncentral t distribution."""
    noncentrality = difference / (spread * math.sqrt(1 / num + test_per_train))
    t = stats.t.ppf(1 - level / 2, num - 1)
    return float(stats.nct.sf(t, num - 1, noncentrality) + stats.nct.cdf(-t, num - 1, noncentrality))


@pytest.mark.parametrize(("num_tests", "test_per_train"), [(1, 0.0), (5, 0.0), (5, 0.02)])
def test_the_fewest_seeds_with_this_power(num_tests: int, test_per_train: float) -> None:
    differences = [0.03, 0.01, -0.01, 0.025]
    num = seeds_needed(differences, num_tests, test_per_train)
    assert num is not None
    known = float(np.mean(differences)), float(np.std(differences, ddof=1))
    assert power(*known, num, ALPHA / num_tests, test_per_train) >= 0.8
    assert power(*known, num - 1, ALPHA / num_tests, test_per_train) < 0.8
    assert seeds_needed([-each for each in differences], num_tests, test_per_train) == num


@pytest.mark.parametrize("num", [2, 3, 10, 30])
def test_the_smallest_visible_difference_has_this_power(num: int) -> None:
    differences = np.random.default_rng(num).normal(0.02, 0.05, num).tolist()
    visible = smallest_visible(differences, 4, 0.1)
    assert power(visible, float(np.std(differences, ddof=1)), num, ALPHA / 4, 0.1) == pytest.approx(0.8, abs=1e-4)


def test_a_difference_as_large_as_planned_is_found_in_four_of_five_studies() -> None:
    differences = [0.03, 0.01, -0.01, 0.025]
    num = seeds_needed(differences)
    assert num is not None
    drawn = np.random.default_rng(0).normal(np.mean(differences), np.std(differences, ddof=1), (2000, num))
    found = [paired_difference(dict(enumerate(each)), dict.fromkeys(range(num), 0.0)).p <= ALPHA for each in drawn]
    assert np.mean(found) == pytest.approx(0.8, abs=0.03)


def test_a_difference_that_is_not_significant_asks_for_more_seeds_than_it_has() -> None:
    rng = np.random.default_rng(1)
    for num in (5, 10):
        for differences in rng.normal(0.01, 0.02, (50, num)):
            needed = seeds_needed(differences.tolist(), 3)
            if paired_difference(dict(enumerate(differences)), dict.fromkeys(range(num), 0.0)).p * 3 > ALPHA:
                assert needed is None or needed > num


def test_a_clear_difference_needs_the_fewest_seeds_of_a_claim() -> None:
    assert seeds_needed([0.2, 0.21, 0.19]) == FEW_SEEDS


def test_where_no_number_can_be_given() -> None:
    for unknown in ([], [0.1], [0.1, 0.1], [0.0] * 5):
        assert seeds_needed(unknown) is None
        assert math.isnan(smallest_visible(unknown))
    assert seeds_needed([0.1, -0.1]) is None
    assert seeds_needed([0.02, -0.02, 0.001, -0.0009]) is None
    assert power(0.000025, 0.0163, MOST_SEEDS) < 0.8
    # Nadeau and Bengio's variance does not fall to 0 with more seeds.
    assert seeds_needed([0.03, -0.01, 0.02], test_per_train=0.0) == 22
    assert seeds_needed([0.03, -0.01, 0.02], test_per_train=0.2) is None


@pytest.mark.parametrize(("num_collapsed", "num_runs"), [(0, 10), (1, 10), (0, 3), (7, 9)])
def test_the_bound_of_a_collapse_is_exact(num_collapsed: int, num_runs: int) -> None:
    reference = stats.binomtest(num_collapsed, num_runs, alternative="less").proportion_ci(0.95, "exact").high
    assert collapse_bound(num_collapsed, num_runs) == pytest.approx(reference)
    # At the bound, so few collapses have a probability of 5 %.
    assert stats.binom.cdf(num_collapsed, num_runs, reference) == pytest.approx(0.05)


def test_no_run_or_only_collapsed_ones_bound_nothing() -> None:
    assert collapse_bound(0, 0) == collapse_bound(4, 4) == 1
