"""Differences on new data against their definition, against scipy, and by simulation."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats

from analysis.new_data import f1, over_data_sets, over_seeds_and_items, over_splits
from analysis.statistics import holm, paired_difference, t_interval


def test_f1_by_hand() -> None:
    assert f1(np.array([[3, 1, 2], [0, 0, 0], [0, 5, 5]])).tolist() == pytest.approx([6 / 9, 0, 0])


def test_the_two_parts_of_the_error() -> None:
    rng = np.random.default_rng(1)
    counts, baseline = rng.integers(0, 3, size=(2, 6, 300, 3))
    found = over_seeds_and_items(counts, baseline)
    differences = f1(counts.sum(1)) - f1(baseline.sum(1))
    assert found.interval.mean == pytest.approx(differences.mean())
    drawn = np.random.default_rng(2)
    means = []
    for _ in range(2000):
        items = drawn.integers(0, 300, 300)
        means.append((f1(counts[:, items].sum(1)) - f1(baseline[:, items].sum(1))).mean())
    of_seeds, of_items = differences.var(ddof=1) / 6, np.var(means)
    freedom = (of_seeds + of_items) ** 2 / (of_seeds**2 / 5 + of_items**2 / 299)
    half = stats.t.ppf(0.975, freedom) * math.sqrt(of_seeds + of_items)
    assert found.interval.high - found.interval.mean == pytest.approx(half, rel=0.1)


def test_the_same_counts_are_not_tested() -> None:
    counts = np.ones((3, 10, 3), dtype=int)
    found = over_seeds_and_items(counts, counts)
    assert found.interval.mean == 0
    assert math.isnan(found.p)


def studies(num: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Two arms that are equally good, each with items of its own that it is good at; seeds differ a little."""
    rng = np.random.default_rng(0)
    for _ in range(num):
        difficulty = rng.normal(0.8, 0.8, size=150)
        arms = []
        for liking in rng.normal(0, 1, size=(2, 150)):
            right = difficulty + liking + rng.normal(0, 0.3, size=(8, 150)) > 0
            arms.append(np.stack([right, ~right, ~right], -1).astype(int))
        yield arms[0], arms[1]


def test_an_interval_on_new_data_covers_where_one_on_this_test_set_does_not() -> None:
    covered, too_narrow = [], []
    for arm, baseline in studies(300):
        found = over_seeds_and_items(arm, baseline).interval
        covered.append(found.low <= 0 <= found.high)
        scores = [dict(enumerate(f1(counts.sum(1)).tolist())) for counts in (arm, baseline)]
        here = paired_difference(*scores).interval
        too_narrow.append(here.low <= 0 <= here.high)
    assert 0.93 <= np.mean(covered) <= 0.99
    assert np.mean(too_narrow) < 0.85


def test_splits_that_overlap_widen_the_interval() -> None:
    differences = [0.01, 0.03, 0.02, 0.05, 0.0]
    plain = t_interval(differences)
    found = over_splits(differences, 0.2)
    wider = math.sqrt((1 / 5 + 0.25) / (1 / 5))
    assert found.interval.high - found.interval.mean == pytest.approx(wider * (plain.high - plain.mean))
    t = np.mean(differences) / (np.std(differences, ddof=1) * math.sqrt(1 / 5 + 0.25))
    assert found.p == pytest.approx(2 * stats.t.sf(t, 4))
    assert math.isnan(over_splits([0.1, 0.1], 0.2).p)


def test_over_data_sets_only_where_it_could_tell() -> None:
    five = over_data_sets([0.1, 0.2, 0.3, 0.4, 0.5], num_arms=1)
    assert (five.num, five.least) == (5, 6)
    assert math.isnan(five.p)
    assert 2.0 ** (1 - five.least) <= 0.05 < 2.0 ** (2 - five.least)
    six = over_data_sets([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], num_arms=1)
    assert six.p == pytest.approx(2**-5)
    assert over_data_sets([0.1] * 6, num_arms=5).least == 8


def test_2000_studies_of_six_arms() -> None:
    """False alarms, coverage and power of what a report says: five arms against a baseline over ten seeds."""
    rng = np.random.default_rng(3)
    alarms, covered, detected = 0, 0, 0
    for _ in range(2000):
        scores = rng.normal(0.7, 0.02, size=(6, 10))
        arms = [dict(enumerate(row.tolist())) for row in scores]
        better = {seed: score + 2 * 0.02 for seed, score in arms[5].items()}
        nothing = [paired_difference(arm, arms[0]).p for arm in arms[1:]]
        alarms += min(holm(nothing)) <= 0.05
        detected += holm([*nothing[:4], paired_difference(better, arms[0]).p])[4] <= 0.05
        interval = t_interval(scores[1].tolist())
        covered += interval.low <= 0.7 <= interval.high
    assert alarms / 2000 <= 0.062
    assert 0.935 <= covered / 2000 <= 0.965
    assert detected / 2000 >= 0.8
