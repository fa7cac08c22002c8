"""Scores of labelled items: precision, recall and F1, accuracy, MCC, PR-AUC, Brier score, calibration, thresholds.

Counts are added up first, over items, batches and workers; a ratio is formed once, and 0/0 is 0 everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NUM_BINS = 15


@dataclass(frozen=True)
class Counts:
    """True positives, false positives and false negatives; they add up."""

    tp: int = 0
    fp: int = 0
    fn: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.tp + other.tp, self.fp + other.fp, self.fn + other.fn)

    @property
    def precision(self) -> float:
        return ratio(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float:
        return ratio(self.tp, self.tp + self.fn)

    @property
    def f1(self) -> float:
        return ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn)


@dataclass(frozen=True)
class ItemCounts:
    """The counts of one record by its id, without its text: intervals on new data rest on them."""

    id: str
    tp: int
    fp: int
    fn: int


def item_counts(
    ids: Sequence[str], gold_NC: NDArray[np.bool_], predicted_NC: NDArray[np.bool_]
) -> tuple[ItemCounts, ...]:
    """The counts of records with yes or no for each class.

    >>> item_counts(["a"], np.array([[True, True, False]]), np.array([[True, False, True]]))
    (ItemCounts(id='a', tp=1, fp=1, fn=1),)
    """
    columns = (gold_NC & predicted_NC, ~gold_NC & predicted_NC, gold_NC & ~predicted_NC)
    counts = zip(*(column.sum(1).tolist() for column in columns), strict=True)
    return tuple(ItemCounts(id_, *of_record) for id_, of_record in zip(ids, counts, strict=True))


def class_counts(classes: Sequence[str], counts_CC: NDArray[np.int64]) -> dict[str, Counts]:
    """The counts of each class of a confusion matrix.

    >>> class_counts(["no", "yes"], np.array([[5, 1], [2, 3]]))["yes"]
    Counts(tp=3, fp=1, fn=2)
    """
    right_C, labelled_C, predicted_C = counts_CC.diagonal(), counts_CC.sum(1), counts_CC.sum(0)
    columns = (right_C, predicted_C - right_C, labelled_C - right_C)
    counts = zip(*(column.tolist() for column in columns), strict=True)
    return {name: Counts(*of_class) for name, of_class in zip(classes, counts, strict=True)}


def ratio(above: float, below: float) -> float:
    """The one rule for 0/0: it is 0, as scikit-learn's `zero_division=0`.

    >>> ratio(1, 4), ratio(0, 0)
    (0.25, 0.0)
    """
    return above / below if below else 0.0


def binary_scores(
    probabilities: NDArray[np.floating], labels: NDArray[np.integer], threshold: float
) -> dict[str, float]:
    """The scores of the positive class of two; an item is predicted positive above the threshold.

    Args:
        probabilities: `probabilities_N` of the positive class.
        labels: `labels_N`, 0 or 1.
        threshold: 0.5 is what the larger of two logits decides.
    """
    predicted, positive = probabilities > threshold, labels == 1
    tp, fp = int((predicted & positive).sum()), int((predicted & ~positive).sum())
    counts = Counts(tp, fp, fn=int(positive.sum()) - tp)
    return {
        "f1": counts.f1,
        "precision": counts.precision,
        "recall": counts.recall,
        "accuracy": ratio(int((predicted == positive).sum()), len(labels)),
        "mcc": binary_mcc(counts, tn=len(labels) - counts.tp - counts.fp - counts.fn),
        "pr_auc": average_precision(probabilities, labels),
        "brier": ratio(float(((probabilities - positive) ** 2).sum()), len(labels)),
        "calibration_error": calibration_error(probabilities, labels),
    }


def confusion(labels: NDArray[np.integer], predicted: NDArray[np.integer], num_classes: int) -> NDArray[np.int64]:
    """`counts_CC`: how often class row was predicted as class column; matrices add up."""
    pairs = labels.astype(np.int64) * num_classes + predicted
    return np.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)


def class_scores(counts_CC: NDArray[np.int64]) -> dict[str, float]:
    """The scores of several classes of which each item has one.

    Macro F1 is the mean over the classes that occur in labels or predictions. MCC is that of Gorodkin (2004).
    """
    right, labelled, predicted = counts_CC.diagonal(), counts_CC.sum(1), counts_CC.sum(0)
    num_items, num_right = int(counts_CC.sum()), int(right.sum())
    f1 = [ratio(2 * int(hit), int(all_)) for hit, all_ in zip(right, labelled + predicted, strict=True) if all_]
    spread = [num_items**2 - int((sums.astype(object) ** 2).sum()) for sums in (labelled, predicted)]
    return {
        "accuracy": ratio(num_right, num_items),
        "macro_f1": ratio(sum(f1), len(f1)),
        "mcc": ratio(num_right * num_items - int(labelled @ predicted), math.sqrt(spread[0]) * math.sqrt(spread[1])),
    }


def binary_mcc(counts: Counts, tn: int) -> float:
    """Matthews' correlation of prediction and label; 0 if either is constant."""
    tp, fp, fn = counts.tp, counts.fp, counts.fn
    return ratio(tp * tn - fp * fn, math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))


def average_precision(probabilities: NDArray[np.floating], labels: NDArray[np.integer]) -> float:
    """The area under the precision-recall curve as a sum of steps; 0 without positives."""
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(labels, probabilities)) if labels.any() else 0.0


def calibration_error(
    probabilities: NDArray[np.floating], labels: NDArray[np.integer], num_bins: int = NUM_BINS
) -> float:
    """How far the probability of the positive class is from its frequency, in bins of equal width (Guo et al. 2017)."""
    bins = np.minimum((probabilities * num_bins).astype(int), num_bins - 1)
    gaps = np.bincount(bins, weights=probabilities - labels, minlength=num_bins)
    return ratio(float(np.abs(gaps).sum()), len(labels))


def constant_f1(labels: NDArray[np.integer]) -> float:
    """The F1 of calling every item positive: what a model must beat."""
    num_positive = int((labels == 1).sum())
    return Counts(tp=num_positive, fp=len(labels) - num_positive).f1


def best_threshold(probabilities: NDArray[np.floating], labels: NDArray[np.integer]) -> float:
    """The threshold with the best F1 of the positive class; of equal ones the nearest to 0.5, without positives 0.5.

    Thresholds lie halfway between two neighbouring probabilities; below the smallest, halfway to 0.
    """
    if not labels.any():
        return 0.5
    values, places = np.unique(probabilities, return_inverse=True)
    positives = np.bincount(places, weights=labels == 1)
    sizes = np.bincount(places)
    tp, predicted = positives[::-1].cumsum()[::-1], sizes[::-1].cumsum()[::-1]
    f1 = 2 * tp / (predicted + positives.sum())
    below = np.concatenate([[0.0 if values[0] > 0 else -1.0], values[:-1]])
    middle = below + (values - below) / 2
    thresholds = np.where(middle < values, middle, below)
    best = np.flatnonzero(np.isclose(f1, f1.max(), rtol=1e-12, atol=0))
    # 0.5 itself is as good as the middle of the gap it lies in.
    return float(thresholds[best[np.abs(thresholds[best] - 0.5).argmin()]])
