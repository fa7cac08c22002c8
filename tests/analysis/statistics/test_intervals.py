"""Intervals and tests against scipy's own, against values by hand, and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special, stats

from analysis.statistics.intervals import ALPHA, holm, holm_of, moderated, paired_difference, t_interval

SCORES = st.lists(st.floats(0, 1), min_size=2, max_size=12).filter(lambda values: np.ptp(values) > 1e-6)


@given(SCORES)
def test_the_interval_is_student_s(values: list[float]) -> None:
    values = [10 * value - 5 for value in values] + [7.0]
    ours = t_interval(values)
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert ours.num == len(values)
    assert [ours.mean, ours.low, ours.high] == pytest.approx([np.mean(values), low, high], abs=1e-9)


@given(SCORES)
def test_the_interval_of_shares_is_student_s_on_the_logit_scale(values: list[float]) -> None:
    ours, mean = t_interval(values), float(np.mean(values))
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    # The delta method: distances from the mean on the plain scale, times the derivative of the logit.
    expected = special.logit(mean) + (np.array([low, high]) - mean) / (mean * (1 - mean))
    assert [ours.mean, ours.low, ours.high] == pytest.approx([mean, *special.expit(expected)], abs=1e-9)


@given(SCORES, st.floats(0, 1))
def test_no_bound_is_impossible(values: list[float], test_per_train: float) -> None:
    """A plain t interval of an F1 is one of [-76.76, 210.09] %."""
    ours = t_interval(values, test_per_train)
    assert 0 <= ours.low <= ours.mean <= ours.high <= 1
    against = dict.fromkeys(range(len(values)), 1.0)
    difference = paired_difference(dict(enumerate(values)), against, test_per_train).interval
    assert -1 <= difference.low <= difference.mean <= difference.high <= 1
    ours = t_interval(values, test_per_train, (-1, 1))
    assert -1 <= ours.low <= ours.mean <= ours.high <= 1
    difference = paired_difference(dict(enumerate(values)), against, test_per_train, (-1, 1)).interval
    assert -2 <= difference.low <= difference.mean <= difference.high <= 2


@pytest.mark.parametrize(("mean", "spread", "num"), [(0.97, 0.02, 3), (0.97, 0.02, 10), (0.1, 0.08, 3), (0.5, 0.25, 3)])
def test_the_interval_of_skewed_shares_covers_their_mean(mean: float, spread: float, num: int) -> None:
    """A plain t interval, or one cut off at 0 and 1, covers the mean of .1 with three seeds in 90 % of studies."""
    size = mean * (1 - mean) / spread**2 - 1
    drawn = np.random.default_rng(0).beta(mean * size, (1 - mean) * size, (1500, num)).tolist()
    covered = [(of := t_interval(scores)).low <= mean <= of.high for scores in drawn]
    assert 0.93 <= np.mean(covered) <= 0.97


def test_the_interval_by_hand() -> None:
    # mean 80, sd 10, n 4: half width 3.182446 * 10 / 2
    interval = t_interval([70, 90, 80 - math.sqrt(50), 80 + math.sqrt(50)])
    assert interval.mean == pytest.approx(80)
    assert interval.high - interval.mean == pytest.approx(3.182446 * 10 / 2, abs=1e-5)


def test_one_value_has_no_interval_and_none_has_no_mean() -> None:
    one, none = t_interval([0.5]), t_interval([])
    assert one.mean == 0.5
    assert math.isnan(one.low)
    assert math.isnan(paired_difference({}, {}).interval.mean)
    assert math.isnan(none.mean)
    assert none.num == 0


@given(st.data())
def test_the_difference_is_the_paired_t_test(data: st.DataObject) -> None:
    values = data.draw(SCORES)
    against = data.draw(st.lists(st.floats(0, 1), min_size=len(values), max_size=len(values)))
    if np.ptp(np.subtract(values, against)) < 1e-6:
        return
    # One score beyond [0, 1]: the interval is not cut off.
    values, against = [*values, 7.0], [*against, 7.0]
    ours = paired_difference(dict(enumerate(values)), dict(enumerate(against)))
    reference = stats.ttest_rel(values, against)
    assert ours.p == pytest.approx(reference.pvalue, rel=1e-6, abs=1e-12)
    assert ours.interval.low == pytest.approx(reference.confidence_interval(0.95).low, abs=1e-9)


def test_overlapping_training_sets_widen_interval_and_p() -> None:
    """Nadeau and Bengio's t by their formula, as scikit-learn's documentation computes it too."""
    differences = np.array([0.01, 0.03, -0.005, 0.02, 0.015])
    ours = paired_difference(dict(enumerate(differences)), dict.fromkeys(range(5), 0.0), test_per_train=0.25)
    error = math.sqrt(differences.var(ddof=1) * (1 / 5 + 0.25))
    assert ours.p == pytest.approx(2 * stats.t.sf(differences.mean() / error, 4))
    half = stats.t.ppf(0.975, 4) * error
    assert [ours.interval.low, ours.interval.high] == pytest.approx(
        [differences.mean() - half, differences.mean() + half]
    )


def test_over_own_splits_the_plain_t_test_finds_what_is_not_there_and_the_corrected_one_does_not() -> None:
    """Two equally good rules, learned on drawn splits of a small pool: each sees half of the features."""
    draw, plain, corrected = np.random.default_rng(0), 0, 0
    num_studies, num_records, num_test = 300, 120, 30
    for _ in range(num_studies):
        labels = draw.permutation(np.repeat([-1, 1], num_records // 2))
        features = draw.normal(0.3 * labels[:, None], size=(num_records, 8))
        scores: tuple[dict[int, float], dict[int, float]] = ({}, {})
        for seed in range(10):
            test, train = np.split(draw.permutation(num_records), [num_test])
            for scored, half in zip(scores, (features[:, :4], features[:, 4:]), strict=True):
                rule = labels[train] @ half[train]
                scored[seed] = float(np.mean(np.sign(half[test] @ rule) == labels[test]))
        plain += paired_difference(*scores).p < ALPHA
        corrected += paired_difference(*scores, num_test / (num_records - num_test)).p < ALPHA
    assert plain / num_studies > 0.2
    assert corrected / num_studies < 0.1


def test_only_shared_seeds_are_paired() -> None:
    difference = paired_difference({1: 0.5, 2: 0.7, 9: 0.0}, {2: 0.6, 1: 0.3, 5: 1.0})
    assert difference.interval.num == 2
    assert difference.interval.mean == pytest.approx((0.2 + 0.1) / 2)


@pytest.mark.parametrize("apart", [0.0, 0.1])
def test_differences_without_spread_are_not_tested(apart: float) -> None:
    seeds = {seed: seed / 7 for seed in range(5)}
    difference = paired_difference({seed: value + apart for seed, value in seeds.items()}, seeds)
    assert difference.interval.mean == pytest.approx(apart)
    assert math.isnan(difference.p)
    assert math.isnan(difference.interval.low), "an interval without 0 would say that they are told apart"
    assert holm_of([difference])[0].interval.num == 5


def test_scores_without_spread_have_no_interval() -> None:
    """Five seeds of exactly 1 say nothing of how far the next one may be from it."""
    for score in (0.0, 0.7, 1.0):
        interval = t_interval([score] * 5)
        assert interval.mean == pytest.approx(score)
        assert interval.num == 5
        assert math.isnan(interval.low)


def test_holm_by_hand() -> None:
    # sorted .005 .01 .03 .04: times 4, 3, 2, 1, never falling
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1, 1]
    assert holm([]) == []


def test_holm_leaves_out_what_was_not_tested() -> None:
    adjusted = holm([math.nan, 0.02, 0.03])
    assert math.isnan(adjusted[0])
    assert adjusted[1:] == pytest.approx([0.04, 0.04])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_rejects_what_its_definition_rejects(p_values: list[float]) -> None:
    rejected, order = set(), sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, index in enumerate(order):
        if (len(p_values) - rank) * p_values[index] > 0.05:
            break
        rejected.add(index)
    assert {index for index, p in enumerate(holm(p_values)) if p <= 0.05} == rejected


@given(st.lists(st.tuples(st.floats(-0.1, 0.1), st.floats(0, 0.1), st.integers(5, 9)), min_size=1, max_size=6))
def test_an_interval_excludes_0_exactly_where_the_corrected_p_is_significant(
    arms: list[tuple[float, float, int]],
) -> None:
    rng = np.random.default_rng(0)
    differences = []
    for mean, spread, num in arms:
        seeds = dict(enumerate(0.5 + mean + spread * rng.normal(size=num) / 3))
        differences.append(paired_difference(seeds, dict.fromkeys(range(num), 0.5), 0.1))
    corrected = holm_of(differences)
    assert [each.p for each in corrected] == pytest.approx(holm([each.p for each in differences]), nan_ok=True)
    for each in corrected:
        assert each.is_significant == (each.interval.low > 0 or each.interval.high < 0)


def test_the_intervals_of_five_arms_by_hand() -> None:
    """Holm tests the smallest p at .05/5, the next at .05/4; the third fails at .05/3, and so all others have it."""
    rng = np.random.default_rng(4)
    seeds = [dict(enumerate(worth + rng.normal(0, 0.01, 8))) for worth in (0.6, 0.55, 0.5, 0.5, 0.5)]
    corrected = holm_of([paired_difference(each, dict.fromkeys(range(8), 0.5)) for each in seeds])
    assert [each.is_significant for each in corrected] == [True, True, False, False, False]
    for each, values, level in zip(corrected, seeds, (5, 4, 3, 3, 3), strict=True):
        expected = stats.ttest_1samp(list(values.values()), 0.5).confidence_interval(1 - 0.05 / level)
        assert each.interval.low == pytest.approx(expected.low - 0.5)


def test_2000_studies_of_six_arms() -> None:
    """False alarms, coverage and power of what a report says: five arms against a baseline over ten seeds."""
    rng = np.random.default_rng(3)
    alarms, covered, detected = 0, 0, 0
    for _ in range(2000):
        scores = rng.normal(0.7, 0.02, size=(6, 10))
        arms = [dict(enumerate(row.tolist())) for row in scores]
        better = {seed: score + 2 * 0.02 for seed, score in arms[5].items()}
        nothing = [paired_difference(arm, arms[0]) for arm in arms[1:]]
        alarms += any(not each.interval.low <= 0 <= each.interval.high for each in holm_of(nothing))
        detected += holm_of([*nothing[:4], paired_difference(better, arms[0])])[4].is_ahead
        interval = t_interval(scores[1].tolist())
        covered += interval.low <= 0.7 <= interval.high
    assert alarms / 2000 <= 0.062
    assert 0.935 <= covered / 2000 <= 0.965
    assert detected / 2000 >= 0.8


def test_moderated_differences_are_those_of_limma() -> None:
    """Against the published formulas, by bisection where limma inverts the trigamma function."""
    rng = np.random.default_rng(0)
    for num, spreads in ((5, [1.0, 1.2, 0.8, 3.0]), (10, [1.0] * 6), (5, [0.1, 1.0, 10.0, 2.0])):
        drawn = [rng.normal(0.3, spread, num) for spread in spreads]
        zeros = dict.fromkeys(range(num), 0.0)
        plain = [paired_difference(dict(enumerate(each)), zeros, 0.0, (-math.inf, math.inf)) for each in drawn]
        variance, freedom = np.array([each.var(ddof=1) for each in drawn]), num - 1
        logs = np.log(variance) - special.digamma(freedom / 2) + np.log(freedom / 2)
        excess = logs.var(ddof=1) - special.polygamma(1, freedom / 2)
        prior = float(freedom)
        if excess > 0:
            prior = min(freedom, 2 * optimize.brentq(lambda x, to=excess: special.polygamma(1, x) - to, 1e-3, 1e6))
        level = max(np.exp(logs.mean() + special.digamma(prior / 2) - np.log(prior / 2)), np.median(variance))
        posterior = np.maximum(variance, (prior * level + freedom * variance) / (prior + freedom))
        t = np.array([each.mean() for each in drawn]) / np.sqrt(posterior / num)
        assert [each.p for each in moderated(plain)] == pytest.approx(2 * stats.t.sf(np.abs(t), prior + freedom))
    assert moderated(plain[:3]) == plain[:3]
