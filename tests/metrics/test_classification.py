"""Classification scores against scikit-learn, by hand, and for edge cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from sklearn import metrics as reference

from dice_ray.metrics.classification import (
    Counts,
    binary_scores,
    calibration_error,
    class_scores,
    confusion,
    constant_f1,
    macro_roc_auc,
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
@given(predictions())
def test_scores_are_those_of_scikit_learn(given: tuple[Floats, Labels]) -> None:
    probabilities, labels = given
    predicted = (probabilities > 0.5).astype(int)
    found = binary_scores(probabilities, labels)
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
    scores = binary_scores(nothing, nothing.astype(int))
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


def test_the_macro_area_is_that_of_scikit_learn() -> None:
    draw = np.random.default_rng(0)
    probabilities_NC = draw.dirichlet([1, 1, 1], 60).round(1)
    probabilities_NC /= probabilities_NC.sum(1, keepdims=True)
    labels = draw.integers(0, 3, 60)
    expected = reference.roc_auc_score(labels, probabilities_NC, multi_class="ovr")
    assert macro_roc_auc(probabilities_NC, labels[:, None] == np.arange(3)) == pytest.approx(expected)
