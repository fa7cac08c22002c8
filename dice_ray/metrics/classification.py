"""Classification scores: precision, recall, F1, accuracy, MCC, ROC-AUC, PR-AUC, Brier score, calibration, constants.

Counts are added up first, over items, batches and workers; a ratio is formed once, with 0/0 = 0 everywhere.
The values equal scikit-learn's (tests/metrics/test_classification.py), which is not called: its functions take the
labels of all items instead of additive counts, raise on empty input, cost each process that trains .7 s to import, and
are slower by a factor of 80 (confusion matrix of 20,000 items) to 600 (precision, recall, F1 and MCC of 400 items).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dice_ray.metrics.catalogue import beta, metric_name_part


@dataclass(frozen=True)
class Counts:
    """Additive counts of true positives, false positives and false negatives."""

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

    @property
    def scores(self) -> dict[str, float]:
        return {"f1": self.f1, "precision": self.precision, "recall": self.recall}

    def f_beta(self, beta: float) -> float:
        """The F-measure in which recall counts `beta` times as much as precision."""
        tp = (1 + beta**2) * self.tp
        return ratio(tp, tp + self.fp + beta**2 * self.fn)

    def of_record(self, id: str) -> ItemCounts:
        return ItemCounts(self.tp, self.fp, self.fn, id)


@dataclass(frozen=True)
class ItemCounts(Counts):
    """The counts of one record, by its id and without its text; confidence intervals are resampled from them."""

    id: str = ""


def item_counts(
    ids: Sequence[str], gold_NC: NDArray[np.bool_], predicted_NC: NDArray[np.bool_]
) -> tuple[ItemCounts, ...]:
    """The counts of each record, from the gold and the predicted membership in every class.

    >>> item_counts(["a"], np.array([[True, True, False]]), np.array([[True, False, True]]))
    (ItemCounts(tp=1, fp=1, fn=1, id='a'),)
    """
    counts_N = label_counts(gold_NC.T, predicted_NC.T)
    return tuple(counts.of_record(id_) for id_, counts in zip(ids, counts_N, strict=True))


def class_counts(classes: Sequence[str], counts_CC: NDArray[np.int64]) -> dict[str, Counts]:
    """The counts of each class, from a confusion matrix.

    >>> class_counts(["no", "yes"], np.array([[5, 1], [2, 3]]))["yes"]
    Counts(tp=3, fp=1, fn=2)
    """
    right_C, labelled_C, predicted_C = counts_CC.diagonal(), counts_CC.sum(1), counts_CC.sum(0)
    counts_C3 = np.stack((right_C, predicted_C - right_C, labelled_C - right_C), 1)
    return {name: Counts(*counts_3) for name, counts_3 in zip(classes, counts_C3.tolist(), strict=True)}


def f1_by_name(counts: Mapping[str, Counts]) -> dict[str, float]:
    """The F1 of each class, label or type of span, as the metric `f1_NAME`."""
    return {f"f1_{metric_name_part(name)}": of_class.f1 for name, of_class in counts.items()}


def ratio(above: float, below: float) -> float:
    """The quotient, with 0/0 = 0 like scikit-learn's `zero_division=0`.

    >>> ratio(1, 4), ratio(0, 0)
    (0.25, 0.0)
    """
    return above / below if below else 0.0


def ratios(above: Any, below: Any) -> Any:
    """`ratio` of each element of arrays."""
    return np.divide(above, below, out=np.zeros(np.broadcast(above, below).shape), where=np.asarray(below) != 0)


def binary_scores(probabilities: NDArray[np.floating], labels: NDArray[np.integer]) -> dict[str, float]:
    """The scores of a two-class problem; an item is predicted positive above 0.5. All are 0 without items.

    `probabilities_N` are of the positive class: above 0.5 it has the larger logit.
    """
    counts_CC = confusion(labels, (probabilities > 0.5).astype(np.int64), 2)
    of_classes = class_scores(counts_CC)
    # Python's integers: in 64 bits the product in MCC overflows from factors of about 55,000 on.
    (tn, fp), (fn, tp) = counts_CC.tolist()
    counts, by_value = Counts(tp, fp, fn), _counts_by_value(probabilities, labels)
    return {
        **counts.scores,
        "f0.5": counts.f_beta(0.5),
        "f2": counts.f_beta(2),
        "accuracy": of_classes["accuracy"],
        "balanced_accuracy": of_classes["balanced_accuracy"],
        "mcc": ratio(tp * tn - fp * fn, math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))),
        "roc_auc": _roc_auc(*by_value),
        "pr_auc": _pr_auc(*by_value),
        "brier": brier(probabilities, labels),
        "calibration_error": calibration_error(probabilities, labels),
    }


def confusion(labels: NDArray[np.integer], predicted: NDArray[np.integer], num_classes: int) -> NDArray[np.int64]:
    """`counts_CC`: the number of items of class row that were predicted as class column; additive."""
    pairs = labels.astype(np.int64) * num_classes + predicted
    return np.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)


def class_scores(counts_CC: NDArray[np.int64]) -> dict[str, float]:
    """The scores of a single-label problem with several classes, from its confusion matrix."""
    scores = scores_of_sums(counts_CC.diagonal(), counts_CC.sum(1), counts_CC.sum(0))
    return {name: float(value) for name, value in scores.items()}


def scores_of_sums(
    right_KC: NDArray[np.int64], labelled_C: NDArray[np.int64], predicted_KC: NDArray[np.int64]
) -> dict[str, Any]:
    """`class_scores` from the numbers of items of each class, for one or for several predictions of the same items.

    Macro F1 is the mean over the classes that occur among labels or predictions, balanced accuracy the mean recall of
    those that occur among the labels. MCC is defined as in Gorodkin (2004).
    """
    num_items, num_right_K, sizes_KC = labelled_C.sum(), right_KC.sum(-1), labelled_C + predicted_KC
    spread_K = np.sqrt(num_items**2 - (labelled_C**2).sum()) * np.sqrt(num_items**2 - (predicted_KC**2).sum(-1))
    return {
        "accuracy": ratios(num_right_K, num_items),
        "macro_f1": ratios(ratios(2 * right_KC, sizes_KC).sum(-1), (sizes_KC > 0).sum(-1)),
        "balanced_accuracy": ratios(ratios(right_KC, labelled_C).sum(-1), (labelled_C > 0).sum()),
        "mcc": ratios(num_right_K * num_items - predicted_KC @ labelled_C, spread_K),
    }


def _counts_by_value(probabilities: NDArray[np.floating], labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """`positives_V`, `negatives_V`: the items of either class with each of the probabilities that occur, ascending."""
    values, places = np.unique(probabilities, return_inverse=True)
    positives_V = np.bincount(places, weights=labels == 1, minlength=len(values))
    return positives_V, np.bincount(places, minlength=len(values)) - positives_V


def _roc_auc(positives_V: NDArray[Any], negatives_V: NDArray[Any]) -> float:
    """The probability that a positive item has a higher probability than a negative one, ties counted half.

    0 without items of both classes.
    """
    below_V = negatives_V.cumsum() - negatives_V / 2
    return ratio(float(positives_V @ below_V), float(positives_V.sum() * negatives_V.sum()))


def _pr_auc(positives_V: NDArray[Any], negatives_V: NDArray[Any]) -> float:
    """The average precision: the mean over positive items of the precision at their probability, without interpolation.

    0 without positive items.
    """
    descending_V = positives_V[::-1].copy()
    precisions_V = descending_V.cumsum() / (positives_V + negatives_V)[::-1].cumsum()
    return ratio(float(descending_V @ precisions_V), float(positives_V.sum()))


def macro_roc_auc(probabilities_NC: NDArray[np.floating], members_NC: NDArray[np.bool_]) -> float:
    """The mean area of each class against the others, of the classes that some items have and some have not."""
    of_both = np.flatnonzero(members_NC.any(0) & ~members_NC.all(0))
    areas = [_roc_auc(*_counts_by_value(probabilities_NC[:, each], members_NC[:, each])) for each in of_both]
    return ratio(sum(areas), len(areas))


def brier(probabilities: NDArray[np.floating], labels: NDArray[np.integer]) -> float:
    """The mean squared difference of probability and label; 0 without items."""
    return ratio(float(((probabilities - labels) ** 2).sum()), len(labels))


def calibration_error(probabilities: NDArray[np.floating], labels: NDArray[np.integer]) -> float:
    """Expected calibration error of the positive class, with bins of equal width (Guo et al. 2017)."""
    num_bins = 15
    bins = np.minimum((probabilities * num_bins).astype(int), num_bins - 1)
    # The weight of a bin, its share of the items, cancels the division by its size: |sum(p - y)| remains.
    gaps = np.bincount(bins, weights=probabilities - labels, minlength=num_bins)
    return ratio(float(np.abs(gaps).sum()), len(labels))


def constant_f1(labels: NDArray[np.integer]) -> float:
    """The F1 of predicting every item positive, a baseline for any model."""
    return _all_positive(labels).f1


def _all_positive(labels: NDArray[np.integer]) -> Counts:
    num_positive = int((labels == 1).sum())
    return Counts(tp=num_positive, fp=len(labels) - num_positive)


def label_counts(gold_NC: NDArray[np.bool_], predicted_NC: NDArray[np.bool_]) -> list[Counts]:
    """The counts of each label.

    >>> label_counts(np.array([[True, False]]), np.array([[True, True]]))
    [Counts(tp=1, fp=0, fn=0), Counts(tp=0, fp=1, fn=0)]
    """
    columns = (gold_NC & predicted_NC, predicted_NC & ~gold_NC, gold_NC & ~predicted_NC)
    counts_C3 = np.stack([column_NC.sum(0) for column_NC in columns], 1)
    return [Counts(*counts_3) for counts_3 in counts_C3.tolist()]


def micro_and_macro(counts: Sequence[Counts]) -> dict[str, float]:
    """Micro scores, and the mean F1 of all labels, also of those that do not occur, as in scikit-learn."""
    return sum(counts, Counts()).scores | {"macro_f1": ratio(sum(label.f1 for label in counts), len(counts))}


def chosen_f_beta(score: str, counts: Counts) -> dict[str, float]:
    """The value of a score that is an F-beta, by its name; empty for another score, which is computed anyway.

    >>> chosen_f_beta("f2", Counts(tp=1, fn=1)), chosen_f_beta("recall", Counts(tp=1, fn=1))
    ({'f2': 0.5555555555555556}, {})
    """
    factor = beta(score)
    return {score: counts.f_beta(factor)} if factor else {}


def chosen_constant(score: str, labels: NDArray[np.integer]) -> dict[str, float]:
    """The best value that a predictor of one class has in a score of two classes; empty for another score.

    >>> chosen_constant("accuracy", np.array([1, 0, 0, 0])), chosen_constant("recall", np.array([1, 0, 0, 0]))
    ({'constant_accuracy': 0.75}, {'constant_recall': 1.0})
    """
    found = [binary_scores(np.full(len(labels), always), labels) for always in (0.0, 1.0)]
    found.append(chosen_f_beta(score, _all_positive(labels)))
    values = [each[score] for each in found if score in each]
    return {f"constant_{score}": max(values)} if values else {}
