"""Decisions that dev chooses, by brute force and by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn import metrics as reference

from dice_ray.metrics.calibration import Calibration, with_prior
from dice_ray.metrics.classification import constant_f1
from dice_ray.metrics.decisions import FittedDecision, thresholds
from dice_ray.metrics.fitting import (
    _best_no_answer_threshold,
    _best_threshold,
    _folds,
    fit_classes,
    fit_no_answer,
    fit_own_threshold,
    fit_spans,
    fit_threshold,
)
from dice_ray.metrics.rules import F1Rule, Outcomes, PrecisionRule, RecallRule, Rule
from dice_ray.metrics.shifts import fit_shifts
from tests.metrics.test_classification import Floats, Labels, predictions


def fitted(probabilities: Floats, labels: Labels) -> FittedDecision:
    return fit_threshold(probabilities[:, None], labels[:, None] == 1, F1Rule())


@settings(max_examples=50)
@given(predictions())
def test_no_threshold_beats_the_best_one(given: tuple[Floats, Labels]) -> None:
    probabilities, labels = given

    def f1(threshold: float) -> float:
        return float(reference.f1_score(labels, probabilities > threshold, zero_division=0))

    best = _best_threshold(probabilities, labels, F1Rule())
    assert f1(best) == pytest.approx(max(f1(other) for other in [-1.0, *probabilities]))
    assert labels.any() or best == 0.5


def test_the_best_threshold_lies_between_and_near_a_half() -> None:
    assert _best_threshold(np.array([0.1, 0.3, 0.6]), np.array([0, 1, 1]), F1Rule()) == pytest.approx(0.2)
    # 0.2 (all four) and 0.8 (the last) both give F1 2/3.
    assert _best_threshold(np.array([0.4, 0.6, 0.7, 0.9]), np.array([1, 0, 0, 1]), F1Rule()) == pytest.approx(0.2)
    assert _best_threshold(np.array([0.1, 0.6, 0.7, 0.9]), np.array([1, 0, 0, 1]), F1Rule()) == pytest.approx(0.8)
    assert _best_threshold(np.array([0.0, 0.0]), np.array([1, 1]), F1Rule()) < 0


@pytest.mark.parametrize(("positives", "is_used"), [(2, False), (40, True)])
def test_a_tuned_threshold_is_used_where_dev_shows_that_it_is_better(positives: int, is_used: bool) -> None:
    """A model of which 0.5 finds nothing, and lower thresholds much."""
    draw = np.random.default_rng(0)
    labels = np.repeat([1, 0], [positives, 19 * positives])
    probabilities = 0.4 / (1 + np.exp(-draw.normal(6 * labels - 3, 1)))
    decided = fitted(probabilities, labels)
    assert decided.tuned == {"threshold": _best_threshold(probabilities, labels, F1Rule())}
    assert decided.support == positives
    assert decided.used == (decided.tuned if is_used else {"threshold": 0.5})


def test_perfect_scores_are_used_where_positives_are_frequent() -> None:
    """Finds a bar above 1: 1.1 times the F1 of calling everything positive is 1.04 here."""
    labels = np.repeat([1, 0], [90, 10])
    decided = fitted(np.where(labels, 0.9, 0.6), labels)
    assert decided.used == decided.tuned == {"threshold": pytest.approx(0.75)}


def test_a_threshold_that_labels_everything_positive_is_not_used() -> None:
    """A model that knows nothing and predicts nothing at 0.5: F1 is best with every item positive."""
    for seed in range(8):
        draw = np.random.default_rng(seed)
        labels = np.repeat([1, 0], [30, 570])
        probabilities = draw.uniform(0, 0.1, 600)
        used = fitted(probabilities, labels).used["threshold"]
        assert (probabilities > used).mean() < 0.5, seed


def dealt(groups: Labels) -> Labels:
    """The fold of each item, of five: the items of each group are dealt out in their order."""
    seen: dict[int, int] = {}
    folds = []
    for group in groups.tolist():
        folds.append(seen.get(group, 0) % 5)
        seen[group] = seen.get(group, 0) + 1
    return np.array(folds)


def test_a_tuned_threshold_is_used_by_the_rule_of_cross_fitted_folds() -> None:
    """Finds folds that see themselves, an F1 at another threshold than .5, and a bar that is not above the constant."""
    num_used = 0
    for seed in range(60):
        draw = np.random.default_rng(seed)
        labels = (draw.random(40) < 0.3).astype(int)
        # A grid, so that probabilities equal thresholds; models from useless to good, most of them off at .5.
        logits = draw.uniform(0, 2) * (2 * labels - 1) + draw.normal(size=40) - draw.uniform(-1, 2)
        probabilities = (1 / (1 + np.exp(-logits))).round(1)
        folds, predicted = dealt(labels), np.zeros(40, dtype=int)
        for fold in range(5):
            other = _best_threshold(probabilities[folds != fold], labels[folds != fold], F1Rule())
            predicted[folds == fold] = probabilities[folds == fold] > other
        at_half, fitted_f1 = (
            float(reference.f1_score(labels, guess, zero_division=0)) for guess in (probabilities > 0.5, predicted)
        )
        beats_untuned, constant = labels.sum() >= 5 and fitted_f1 > at_half, constant_f1(labels)
        is_used = beats_untuned and fitted_f1 > min(1.1 * constant, 0.9 * constant + 0.1)
        num_used += is_used
        expected = _best_threshold(probabilities, labels, F1Rule()) if is_used else 0.5
        decided = fitted(probabilities, labels)
        assert (decided.used["threshold"], decided.beats_untuned) == (expected, beats_untuned), seed
    assert 10 < num_used < 50


def test_questions_of_one_document_are_in_one_fold() -> None:
    """Each document has its own level: a threshold fitted on its other questions looks better than it is."""
    on_dev = dict[bool, list[float]]({True: [], False: []})
    for seed in range(40):
        draw = np.random.default_rng(seed)
        documents = np.repeat(np.arange(12), 8)
        answerable, levels = draw.random(12)[documents] < 0.5, 3 * draw.normal(size=12)
        no_answer = levels[documents] + 0.1 * draw.normal(size=96)
        groups = [str(each) for each in documents]
        for grouped in (True, False):
            found = fit_no_answer(no_answer, answerable * 0.5, answerable, groups if grouped else None)
            on_dev[grouped].append(found.on_dev)
    assert np.mean(on_dev[True]) < np.mean(on_dev[False]) - 0.03


def test_a_promise_that_dev_misses_has_no_value() -> None:
    """A model that has learned nothing calls everything positive: its recall of 1 was the best of all checkpoints."""
    gold = np.arange(100) < 10
    missed = fit_threshold(np.full((100, 1), 0.3), gold[:, None], PrecisionRule(at_least=0.8))
    assert missed.on_dev == 0
    kept = fit_threshold(np.where(np.arange(100) < 5, 0.9, 0.1)[:, None], gold[:, None], PrecisionRule(at_least=0.8))
    assert kept.on_dev == 0.5


def test_a_no_answer_threshold_is_used_by_the_rule_of_cross_fitted_folds() -> None:
    num_used = 0
    for seed in range(60):
        draw = np.random.default_rng(seed)
        answerable = draw.random(40) < 0.6
        scores = np.where(answerable, draw.random(40), 0.0)
        no_answer = (draw.normal(size=40) - draw.uniform(0, 3) * answerable + draw.uniform(-1, 3)).round()
        folds, thresholds = dealt(answerable.astype(int)), np.zeros(40)
        for fold in range(5):
            others = folds != fold
            thresholds[~others] = _best_no_answer_threshold(no_answer[others], scores[others], answerable[others])
        fitted, untuned = (np.where(no_answer > each, ~answerable, scores).sum() for each in (thresholds, 0.0))
        is_used = min(answerable.sum(), (~answerable).sum()) >= 5 and fitted > max(untuned, (~answerable).sum())
        num_used += bool(is_used)
        expected = _best_no_answer_threshold(no_answer, scores, answerable) if is_used else 0.0
        assert fit_no_answer(no_answer, scores, answerable).used["threshold"] == expected, seed
    assert 10 < num_used < 50


@given(
    st.lists(
        st.tuples(st.sampled_from([-2.0, 0.0, 0.3]) | st.floats(-9, 9), st.floats(0, 1), st.booleans()),
        min_size=1,
        max_size=12,
    )
)
def test_no_no_answer_threshold_beats_the_best_one(rows: list[tuple[float, float, bool]]) -> None:
    no_answer, given_score, answerable = (np.array(column) for column in zip(*rows, strict=True))
    scores = np.where(answerable, given_score, 0.0)

    def worth(threshold: float) -> float:
        return float(np.where(no_answer > threshold, ~answerable, scores).mean())

    best = _best_no_answer_threshold(no_answer, scores, answerable)
    reachable = [worth(float(other)) for other in [no_answer.min() - 1, *no_answer]]
    assert worth(best) == pytest.approx(max(reachable), abs=1e-9)


def test_the_no_answer_threshold_lies_between() -> None:
    answerable = np.array([True, True, False, False])
    scores = np.array([1.0, 0.5, 0.0, 0.0])
    assert _best_no_answer_threshold(np.array([-3.0, -1.0, 2.0, 4.0]), scores, answerable) == 0.5
    assert _best_no_answer_threshold(np.array([3.0, 2.0, 1.0, 1.0]), scores * 0, answerable) == 0.0
    assert _best_no_answer_threshold(np.array([3.0, 2.0]), scores[:2], answerable[:2]) == 3.0


def test_a_no_answer_threshold_of_few_questions_is_not_used() -> None:
    """The best answers have no answer score around 2: with the threshold 0 none of them is given."""

    def decided(num: int) -> dict[str, float]:
        no_answer = np.concatenate([np.linspace(1, 2, num), np.linspace(2.5, 4, num)])
        answerable = np.arange(2 * num) < num
        return fit_no_answer(no_answer, answerable.astype(float), answerable).metrics

    assert decided(3) == {"threshold": 2.25, "threshold_support": 3, "threshold_used": 0}
    assert decided(20) == {"threshold": 2.25, "threshold_support": 20, "threshold_used": 2.25}


def test_labels_with_20_positives_have_thresholds_of_their_own() -> None:
    """Finds a threshold that few positives chose, and a common one that leaves out the labels with their own."""
    draw = np.random.default_rng(0)
    gold_NC = np.zeros((300, 3), dtype=bool)
    for label, positives in enumerate((20, 19, 100)):
        gold_NC[draw.permutation(300)[:positives], label] = True
    probabilities_NC = 1 / (1 + np.exp(-draw.normal(3 * gold_NC - np.array([1, 3, 5]))))
    decided = fit_threshold(probabilities_NC, gold_NC, F1Rule(), ["a", "b", "c"])
    assert decided.tuned == {
        "threshold": _best_threshold(probabilities_NC.ravel(), gold_NC.ravel(), F1Rule()),
        **{
            f"threshold:{name}": _best_threshold(probabilities_NC[:, label], gold_NC[:, label], F1Rule())
            for label, name in ((0, "a"), (2, "c"))
        },
    }
    assert thresholds(decided.tuned, ["a", "b"]).tolist() == [decided.tuned["threshold:a"], decided.tuned["threshold"]]
    assert decided.is_used
    assert decided.support == 139


def test_the_items_of_a_group_are_in_one_fold() -> None:
    """Finds near copies on both sides: a model that knows each document by heart then looks better tuned than it is."""
    draw = np.random.default_rng(0)
    groups = [f"document {number}" for number in draw.integers(0, 150, 400)]
    strata_N = (draw.random(400) < 0.2).astype(int)
    folds_N = _folds(strata_N, groups)
    assert len({*zip(groups, folds_N.tolist(), strict=True)}) == len({*groups})
    highest = {group: max(strata_N[np.array(groups) == group]) for group in groups}
    for stratum in (0, 1):
        sizes = np.bincount([fold for group, fold in {*zip(groups, folds_N, strict=True)} if highest[group] == stratum])
        assert np.ptp(sizes) <= 1


def test_a_limit_is_used_where_few_positives_support_it() -> None:
    """It is no question whether it is better than the untuned decision, which does not know the limit."""
    draw = np.random.default_rng(0)
    for positives, is_used in ((4, False), (5, True)):
        labels = np.repeat([1, 0], [positives, 95])
        probabilities = 1 / (1 + np.exp(-draw.normal(labels)))
        decided = fit_threshold(probabilities[:, None], labels[:, None] == 1, RecallRule(at_least=0.9))
        assert decided.is_used == is_used
        predicted = probabilities > decided.tuned["threshold"]
        assert decided.on_dev == reference.precision_score(labels, predicted)
        assert decided.metric == "precision"


def test_shifts_of_classes_are_used_where_other_folds_confirm_them() -> None:
    draw = np.random.default_rng(0)
    labels = draw.choice(3, 600, p=[0.8, 0.15, 0.05])
    for distance, is_used in ((3.0, True), (0.0, False)):
        logits_NC = draw.normal(size=(600, 3)) + distance * (labels[:, None] == np.arange(3)) + [4, 1, 0]
        probabilities_NC = np.exp(logits_NC) / np.exp(logits_NC).sum(1, keepdims=True)
        decided = fit_classes(probabilities_NC, labels, ["a", "b", "c"], "accuracy")
        shifts_C = fit_shifts(probabilities_NC, labels, "accuracy")
        assert decided.tuned == {"shift:a": 0.0, "shift:b": shifts_C[1], "shift:c": shifts_C[2]}
        assert decided.support == np.bincount(labels).min()
        assert decided.is_used == is_used


def test_the_best_candidate_for_spans_is_used_where_other_folds_confirm_it() -> None:
    """Finds a choice by the mean of F1 over records, and a candidate that is chosen among equals for no reason."""
    found = np.array([[1, 0, 1], [2, 1, 0], [2, 1, 0]])
    counts_KN3 = np.repeat(found[:, None], 20, axis=1)
    candidates: list[dict[str, float]] = [{"background": each} for each in (0.0, -1.0, -2.0)]
    decided = fit_spans(candidates, counts_KN3)
    assert decided.tuned == {"background": -1.0}
    assert decided.is_used
    assert decided.on_dev == pytest.approx(4 / 5)
    assert decided.support == 40
    assert fit_spans(candidates, counts_KN3[[0, 0, 0]]).used == {"background": 0.0}
    # On records that differ, one candidate is best by micro F1, another by its mean.
    counts_KN3 = np.array([[[9, 1, 1], [0, 1, 1]] * 10, [[7, 1, 3], [1, 0, 0]] * 10])
    decided = fit_spans(candidates[:2], counts_KN3)
    assert decided.tuned == {"background": 0.0}
    assert decided.on_dev == pytest.approx(180 / 220)


def test_probabilities_are_calibrated_before_their_prior_is_corrected_and_what_is_stored_is_read() -> None:
    """Finds the other order: the correction takes probabilities of the model, not those of dev."""
    calibration = Calibration(temperature=3.0)
    decision = fitted(np.array([0.2, 0.9]), np.array([0, 1]))
    decision = replace(decision, calibration=calibration.stored(), share=0.5, prior=(0.5, 0.1))
    probabilities_NC = np.array([[0.3, 0.7], [0.01, 0.99]])
    expected_N = with_prior(calibration.apply(probabilities_NC, exclusive=True)[:, 1], 0.5, 0.1)
    found_NC = decision.probabilities(probabilities_NC, exclusive=True)
    np.testing.assert_allclose(found_NC, np.stack([1 - expected_N, expected_N], 1))
    assert FittedDecision.of(decision.stored()) == decision
    assert FittedDecision.of({}) is None


def test_a_function_of_the_user_has_thresholds_to_choose_from_where_positives_are_rare() -> None:
    """Finds candidates at quantiles: with one positive in 200, three of sixty lie among the highest twentieth."""
    draw = np.random.default_rng(0)
    gold = (np.arange(4000) < 20)[:, None]
    probabilities = 1 / (1 + np.exp(8 - draw.normal(4.5 * gold, 1)))

    def saved(has: NDArray[np.bool_], predicted: NDArray[np.bool_]) -> float:
        return float(10 * (has & predicted).sum() - (~has & predicted).sum())

    tuned = fit_own_threshold(probabilities, gold, "saved", saved).tuned["threshold"]
    best = max(saved(gold, probabilities > threshold) for threshold in probabilities.ravel())
    assert saved(gold, probabilities > tuned) >= 0.95 * best


@pytest.mark.parametrize("rule", [RecallRule(at_least=0.9), PrecisionRule(at_least=0.8)])
def test_a_limit_is_kept_over_frequent_and_rare_labels(rule: Rule) -> None:
    """The threshold of the rare ones was fitted to all: dev itself missed the limit, whose value is then 0."""
    draw, rates = np.random.default_rng(0), np.array([0.2, 0.1, 0.05, 0.012, 0.01, 0.008])
    gold = draw.random((1000, 6)) < rates
    probabilities = expit(2 * draw.normal(size=gold.shape) + 4 * gold - 2 + logit(rates))
    decision = fit_threshold(probabilities, gold, rule, tuple("abcdef"))
    outcomes = Outcomes.of(probabilities > thresholds(decision.tuned, tuple("abcdef")), gold)
    assert not rule.misses(outcomes)
    assert 0 < decision.on_dev == pytest.approx(float(rule.value(outcomes)))


def test_a_cost_of_the_user_is_minimised() -> None:
    """Its threshold was the one with the highest cost."""
    draw = np.random.default_rng(0)
    gold = draw.random((1000, 1)) < 0.2
    probabilities = expit(2 * draw.normal(size=gold.shape) + 4 * gold - 3.4)

    def cost(has: NDArray[np.bool_], predicted: NDArray[np.bool_]) -> float:
        return float((20 * (has & ~predicted) + (predicted & ~has)).mean())

    decision = fit_own_threshold(probabilities, gold, "cost", cost)
    assert decision.is_used
    at_tuned, at_half = (cost(gold, probabilities > limit) for limit in (decision.tuned["threshold"], 0.5))
    assert at_tuned < 0.5 * at_half


def test_items_of_one_group_judge_no_decision() -> None:
    """All are in one fold, and none are left to fit to: an IndexError, or a decision of no item that is never used."""
    answerable = np.arange(40) < 20
    scores = answerable * 0.8
    assert not fit_no_answer(np.arange(40.0), scores, answerable, ["one article"] * 40).is_used
    probabilities, gold = np.linspace(0, 1, 40)[:, None], (np.arange(40) > 10)[:, None]
    decision = fit_threshold(probabilities, gold, F1Rule(), groups=["one"] * 40)
    assert (decision.is_used, decision.on_dev) == (False, 1)
