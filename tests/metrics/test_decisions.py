"""Thresholds that dev chooses, by brute force and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as reference

from dice_ray.metrics.classification import constant_f1
from dice_ray.metrics.decisions import (
    FittedDecision,
    best_no_answer_threshold,
    best_threshold,
    fit_no_answer,
    fit_threshold,
)
from dice_ray.metrics.rules import F1Rule
from tests.metrics.test_classification import Floats, Labels, predictions


def fitted(probabilities: Floats, labels: Labels) -> FittedDecision:
    return fit_threshold(probabilities[:, None], labels[:, None] == 1, F1Rule())


@settings(max_examples=50)
@given(predictions())
def test_no_threshold_beats_the_best_one(given: tuple[Floats, Labels]) -> None:
    probabilities, labels = given

    def f1(threshold: float) -> float:
        return float(reference.f1_score(labels, probabilities > threshold, zero_division=0))

    best = best_threshold(probabilities, labels, F1Rule())
    assert f1(best) == pytest.approx(max(f1(other) for other in [-1.0, *probabilities]))
    assert labels.any() or best == 0.5


def test_the_best_threshold_lies_between_and_near_a_half() -> None:
    assert best_threshold(np.array([0.1, 0.3, 0.6]), np.array([0, 1, 1]), F1Rule()) == pytest.approx(0.2)
    # 0.2 (all four) and 0.8 (the last) both give F1 2/3.
    assert best_threshold(np.array([0.4, 0.6, 0.7, 0.9]), np.array([1, 0, 0, 1]), F1Rule()) == pytest.approx(0.2)
    assert best_threshold(np.array([0.1, 0.6, 0.7, 0.9]), np.array([1, 0, 0, 1]), F1Rule()) == pytest.approx(0.8)
    assert best_threshold(np.array([0.0, 0.0]), np.array([1, 1]), F1Rule()) < 0


@pytest.mark.parametrize(("positives", "is_used"), [(2, False), (40, True)])
def test_a_tuned_threshold_is_used_where_dev_shows_that_it_is_better(positives: int, is_used: bool) -> None:
    """A model of which 0.5 finds nothing, and lower thresholds much."""
    draw = np.random.default_rng(0)
    labels = np.repeat([1, 0], [positives, 19 * positives])
    probabilities = 0.4 / (1 + np.exp(-draw.normal(6 * labels - 3, 1)))
    decided = fitted(probabilities, labels)
    assert decided.tuned == {"threshold": best_threshold(probabilities, labels, F1Rule())}
    assert decided.support == positives
    assert decided.used == (decided.tuned if is_used else {"threshold": 0.5})


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
            other = best_threshold(probabilities[folds != fold], labels[folds != fold], F1Rule())
            predicted[folds == fold] = probabilities[folds == fold] > other
        at_half, fitted_f1 = (
            float(reference.f1_score(labels, guess, zero_division=0)) for guess in (probabilities > 0.5, predicted)
        )
        is_used = labels.sum() >= 5 and fitted_f1 > max(at_half, 1.1 * constant_f1(labels))
        num_used += is_used
        expected = best_threshold(probabilities, labels, F1Rule()) if is_used else 0.5
        assert fitted(probabilities, labels).used["threshold"] == expected, seed
    assert 10 < num_used < 50


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
            thresholds[~others] = best_no_answer_threshold(no_answer[others], scores[others], answerable[others])
        fitted, untuned = (np.where(no_answer > each, ~answerable, scores).sum() for each in (thresholds, 0.0))
        is_used = min(answerable.sum(), (~answerable).sum()) >= 5 and fitted > max(untuned, (~answerable).sum())
        num_used += bool(is_used)
        expected = best_no_answer_threshold(no_answer, scores, answerable) if is_used else 0.0
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

    best = best_no_answer_threshold(no_answer, scores, answerable)
    reachable = [worth(float(other)) for other in [no_answer.min() - 1, *no_answer]]
    assert worth(best) == pytest.approx(max(reachable), abs=1e-9)


def test_the_no_answer_threshold_lies_between() -> None:
    answerable = np.array([True, True, False, False])
    scores = np.array([1.0, 0.5, 0.0, 0.0])
    assert best_no_answer_threshold(np.array([-3.0, -1.0, 2.0, 4.0]), scores, answerable) == 0.5
    assert best_no_answer_threshold(np.array([3.0, 2.0, 1.0, 1.0]), scores * 0, answerable) == 0.0
    assert best_no_answer_threshold(np.array([3.0, 2.0]), scores[:2], answerable[:2]) == 3.0


def test_a_no_answer_threshold_of_few_questions_is_not_used() -> None:
    """The best answers have no answer score around 2: with the threshold 0 none of them is given."""

    def decided(num: int) -> dict[str, float]:
        no_answer = np.concatenate([np.linspace(1, 2, num), np.linspace(2.5, 4, num)])
        answerable = np.arange(2 * num) < num
        return fit_no_answer(no_answer, answerable.astype(float), answerable).metrics

    assert decided(3) == {"threshold": 2.25, "threshold_support": 3, "threshold_used": 0}
    assert decided(20) == {"threshold": 2.25, "threshold_support": 20, "threshold_used": 2.25}
