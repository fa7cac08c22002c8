"""Classification scores against scikit-learn, by hand, and for edge cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from sklearn import metrics as reference

from dice_ray.metrics.classification import (
    Counts,
    best_threshold,
    binary_scores,
    calibration_error,
    class_scores,
    confusion,
    constant_f1,
    threshold_decisions,
)

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


@st.composite
def predictions(draw: st.DrawFn) -> tuple[Floats, Labels]:
    """Probabilities on a coarse or a fine grid, so that ties occur, with labels of one class or two."""
    size = draw(st.integers(1, 40))
    grid = st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]) | st.floats(0, 1)
    return draw(arrays(np.float64, size, elements=grid)), draw(arrays(np.int64, size, elements=st.integers(0, 1)))


@pytest.mark.filterwarnings("ignore:A single label:UserWarning")
@given(predictions(), st.floats(0, 1))
def test_scores_are_those_of_scikit_learn(given: tuple[Floats, Labels], threshold: float) -> None:
    probabilities, labels = given
    predicted = (probabilities > threshold).astype(int)
    found = binary_scores(probabilities, labels, threshold)
    precision, recall, f1, _ = reference.precision_recall_fscore_support(
        labels, predicted, average="binary", zero_division=0
    )
    with np.errstate(invalid="ignore"):
        mcc = reference.matthews_corrcoef(labels, predicted)
    expected = {
        "f1": f1,
        "precision": precision,
        "recall": recall,
        "f0.5": reference.fbeta_score(labels, predicted, beta=0.5, zero_division=0),
        "f2": reference.fbeta_score(labels, predicted, beta=2, zero_division=0),
        "accuracy": reference.accuracy_score(labels, predicted),
        "balanced_accuracy": mean_recall(labels, predicted),
        "mcc": mcc,
        "roc_auc": reference.roc_auc_score(labels, probabilities) if 0 < labels.sum() < len(labels) else 0,
        "pr_auc": reference.average_precision_score(labels, probabilities) if labels.any() else 0,
        "brier": reference.brier_score_loss(labels, probabilities, pos_label=1),
        "calibration_error": binned(probabilities, labels),
    }
    assert found == pytest.approx(expected, abs=1e-12)


def mean_recall(labels: Labels, predicted: Labels) -> float:
    """Like `balanced_accuracy_score`, which warns of classes that are predicted only."""
    return float(reference.recall_score(labels, predicted, average="macro", labels=np.unique(labels)))


def binned(probabilities: Floats, labels: Labels, num_bins: int = 15) -> float:
    error = 0.0
    for index in range(num_bins):
        chosen = [
            (probability, label)
            for probability, label in zip(probabilities, labels, strict=True)
            if math.floor(probability * num_bins) == index or (probability == 1 and index == num_bins - 1)
        ]
        if chosen:
            gap = sum(probability for probability, _ in chosen) / len(chosen) - sum(label for _, label in chosen) / len(
                chosen
            )
            error += abs(gap) * len(chosen) / len(labels)
    return error


def test_calibration_by_hand() -> None:
    assert calibration_error(np.array([0.1, 0.1, 0.9, 0.9]), np.array([0, 1, 1, 1])) == pytest.approx(0.25)


@settings(max_examples=50)
@given(predictions())
def test_no_threshold_beats_the_best_one(given: tuple[Floats, Labels]) -> None:
    probabilities, labels = given

    def f1(threshold: float) -> float:
        return float(reference.f1_score(labels, probabilities > threshold, zero_division=0))

    best = best_threshold(probabilities, labels)
    assert f1(best) == pytest.approx(max(f1(other) for other in [-1.0, *probabilities]))
    assert labels.any() or best == 0.5


def test_the_best_threshold_lies_between_and_near_a_half() -> None:
    assert best_threshold(np.array([0.1, 0.3, 0.6]), np.array([0, 1, 1])) == pytest.approx(0.2)
    # 0.2 (all four) and 0.8 (the last) both give F1 2/3.
    assert best_threshold(np.array([0.4, 0.6, 0.7, 0.9]), np.array([1, 0, 0, 1])) == pytest.approx(0.2)
    assert best_threshold(np.array([0.1, 0.6, 0.7, 0.9]), np.array([1, 0, 0, 1])) == pytest.approx(0.8)
    assert best_threshold(np.array([0.0, 0.0]), np.array([1, 1])) < 0


@given(arrays(np.int64, st.integers(0, 30), elements=st.integers(0, 1)))
def test_the_constant_predictor_predicts_all_positive(labels: Labels) -> None:
    expected = reference.f1_score(labels, np.ones_like(labels), zero_division=0) if len(labels) else 0
    assert constant_f1(labels) == pytest.approx(expected)


@given(st.lists(st.tuples(*[st.integers(0, 9)] * 3), max_size=8))
def test_counts_add_up_before_any_ratio(parts: list[tuple[int, int, int]]) -> None:
    total = sum((Counts(*part) for part in parts), Counts())
    assert (total.tp, total.fp, total.fn) == tuple(sum(part[index] for part in parts) for index in range(3))


def test_no_items_score_zero() -> None:
    nothing = np.array([])
    scores = binary_scores(nothing, nothing.astype(int), 0.5)
    assert set(scores.values()) == {0.0}


@pytest.mark.filterwarnings("ignore:A single label:UserWarning")
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40), st.integers(0, 40))
def test_class_scores_are_those_of_scikit_learn_also_from_two_parts(pairs: list[tuple[int, int]], cut: int) -> None:
    labels, predicted = np.array(pairs).T
    parts = [confusion(labels[part], predicted[part], 5) for part in (slice(cut), slice(cut, None))]
    with np.errstate(invalid="ignore"):
        mcc = reference.matthews_corrcoef(labels, predicted)
    assert class_scores(parts[0] + parts[1]) == pytest.approx(
        {
            "accuracy": reference.accuracy_score(labels, predicted),
            "macro_f1": reference.f1_score(labels, predicted, average="macro", zero_division=0),
            "balanced_accuracy": mean_recall(labels, predicted),
            "mcc": mcc,
        }
    )


@pytest.mark.parametrize(("positives", "is_used"), [(2, False), (40, True)])
def test_a_tuned_threshold_is_used_where_dev_shows_that_it_is_better(positives: int, is_used: bool) -> None:
    """A model of which 0.5 finds nothing, and lower thresholds much."""
    draw = np.random.default_rng(0)
    labels = np.repeat([1, 0], [positives, 19 * positives])
    probabilities = 0.4 / (1 + np.exp(-draw.normal(6 * labels - 3, 1)))
    decided = threshold_decisions(probabilities, labels, "f1")
    assert decided["threshold"] == best_threshold(probabilities, labels)
    assert decided["threshold_support"] == positives
    assert decided["threshold_used"] == (decided["threshold"] if is_used else 0.5)


@pytest.mark.parametrize(
    ("score", "is_used"), [("pr_auc", True), ("precision", False), ("f0.5", False), ("saved", False)]
)
def test_a_threshold_for_f1_is_not_used_where_another_score_decides(score: str, is_used: bool) -> None:
    """Finds predictions that are much worse than at 0.5 in the score which the user chose."""
    draw = np.random.default_rng(0)
    probabilities = draw.beta(1, 6, 4000)
    labels = (draw.random(4000) < probabilities).astype(int)
    decided = threshold_decisions(probabilities, labels, score)
    assert decided["threshold"] < 0.4
    assert decided["threshold_used"] == (decided["threshold"] if is_used else 0.5)


def test_a_threshold_that_labels_everything_positive_is_not_used() -> None:
    """A model that knows nothing and predicts nothing at 0.5: F1 is best with every item positive."""
    for seed in range(8):
        draw = np.random.default_rng(seed)
        labels = np.repeat([1, 0], [30, 570])
        probabilities = draw.uniform(0, 0.1, 600)
        used = threshold_decisions(probabilities, labels, "f1")["threshold_used"]
        assert (probabilities > used).mean() < 0.5, seed
