"""Numbers of seeds and visible differences against scipy's distributions and by simulation; collapses against scipy."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from analysis.statistics.intervals import ALPHA, FEW_SEEDS, Difference, StandardError, paired_difference
from analysis.statistics.looks import Looks
from analysis.statistics.power import (
    expected_runs,
    is_futile,
    seeds_needed,
    smallest_visible,
    visible_on_items,
)


def power(difference: float, spread: float, num: int, level: float = ALPHA, test_per_train: float = 0.0) -> float:
    """Of the two-sided t test, by scipy's noncentral t distribution."""
    noncentrality = difference / (spread * math.sqrt(1 / num + test_per_train))
    t = stats.t.ppf(1 - level / 2, num - 1)
    return float(stats.nct.sf(t, num - 1, noncentrality) + stats.nct.cdf(-t, num - 1, noncentrality))


def seen(differences: Sequence[float], test_per_train: float = 0.0, looks: Looks | None = None) -> Difference:
    """A paired difference over these seeds, of scores without limits."""
    zeros, limits = dict.fromkeys(range(len(differences)), 0.0), (-math.inf, math.inf)
    return paired_difference(dict(enumerate(differences)), zeros, test_per_train, limits, looks)


@pytest.mark.parametrize(("num_tests", "test_per_train"), [(1, 0.0), (5, 0.0), (5, 0.02)])
def test_the_fewest_seeds_with_this_power(num_tests: int, test_per_train: float) -> None:
    differences, planned = [0.03, 0.01, -0.01, 0.025], 0.014
    num = seeds_needed(seen(differences, test_per_train), planned, num_tests, test_per_train)
    assert num is not None
    spread = float(np.std(differences, ddof=1))
    assert power(planned, spread, num, ALPHA / num_tests, test_per_train) >= 0.8
    assert power(planned, spread, num - 1, ALPHA / num_tests, test_per_train) < 0.8


@pytest.mark.parametrize("num", [2, 3, 10, 30])
def test_the_smallest_visible_difference_has_this_power(num: int) -> None:
    differences = np.random.default_rng(num).normal(0.02, 0.05, num).tolist()
    visible = smallest_visible(seen(differences, 0.1), 4)
    assert power(visible, float(np.std(differences, ddof=1)), num, ALPHA / 4, 0.1) == pytest.approx(0.8, abs=1e-4)


def test_few_items_hide_a_difference_from_any_number_of_seeds() -> None:
    """By simulation: 80 % of draws of the items show so large a true difference, were there no other spread."""
    of_items, of_seeds = StandardError(0.02, 1e6), StandardError(1e-6, 4)
    both = StandardError(math.hypot(0.02, 1e-6), 1e6)
    difference = Difference.tested(0.0, 5, (both, of_seeds), 1.0)
    visible = visible_on_items(difference, 2)
    drawn = np.random.default_rng(0).normal(visible, of_items.size, 20_000)
    assert np.mean(drawn > stats.norm.isf(ALPHA / 4) * of_items.size) == pytest.approx(0.8, abs=0.01)
    assert seeds_needed(difference, 0.9 * visible, 2) is None
    assert visible_on_items(seen([0.1, 0.2])) == 0


def test_an_arm_is_futile_where_its_chance_at_the_last_look_is_small() -> None:
    """Against the chance by simulation of the seeds that are left, with the seen difference as the true one."""
    rng = np.random.default_rng(0)
    level = Looks((5, 10, 15, 20), 20).level(ALPHA)
    for shift in (0.0, 0.4, 0.8, 1.2):
        differences = np.array([-1.0, 1.2, 0.4, -0.8, 0.2, 1.0, -1.2, 0.8, -0.4, -0.2]) + shift
        rest = rng.normal(differences.mean(), differences.std(ddof=1), (20_000, 10))
        whole = np.hstack([np.tile(differences, (20_000, 1)), rest])
        chance = np.mean(stats.ttest_1samp(whole, 0, axis=1).pvalue <= level)
        if abs(chance - 0.1) > 0.03:
            assert is_futile(seen(differences.tolist(), looks=Looks((5, 10, 15, 20), 10))) == (chance < 0.1)
    assert not is_futile(seen([0.0, 0.1])), "a fixed number of seeds is not stopped"


@pytest.mark.parametrize(("lead", "runs"), [(0.0, 46), (1.0, 54), (2.0, 48)])
def test_the_runs_to_expect_are_those_of_an_independent_simulation(lead: float, runs: int) -> None:
    """Of 10,000 studies with other noise (`tests/benchmarks/looks.py`)."""
    assert expected_runs((5, 10, 15, 20), 4, lead) == pytest.approx(runs, abs=3)


def test_seeds_beyond_those_declared_are_planned_for_e_values() -> None:
    """79 seeds were asked for, with which an e-value shows the difference in 32 % of studies."""
    difference, looks = seen([-0.03, 0.031] * 10, looks=Looks((5, 10, 15, 20), 20)), (5, 10, 15, 20)
    spread = float(np.std([-0.03, 0.031] * 10, ddof=1))
    num = seeds_needed(difference, 0.01, looks=looks)
    assert num is not None
    assert power(0.01, spread, num, Looks(looks, num).level(ALPHA)) >= 0.8
    assert power(0.01, spread, num - 1, Looks(looks, num - 1).level(ALPHA)) < 0.8
    assert seeds_needed(difference, 0.03, looks=looks) == seeds_needed(difference, 0.03), "those declared are enough"


def test_where_no_number_can_be_given() -> None:
    for unknown in ([], [0.1]):
        assert seeds_needed(seen(unknown), 0.1) is None
        assert not smallest_visible(seen(unknown)) > 0
    assert seeds_needed(seen([0.2, 0.21, 0.19]), 0.2) == FEW_SEEDS
    assert seeds_needed(seen([0.02, -0.02, 0.001, -0.0009]), 0.0001) is None
    # Nadeau and Bengio's variance does not fall to 0 with more seeds.
    assert seeds_needed(seen([0.03, -0.01, 0.02]), 0.0133) == 22
    assert seeds_needed(seen([0.03, -0.01, 0.02], 0.2), 0.0133, test_per_train=0.2) is None
