"""The scores of texts with one label or several, from their labels and probabilities: untuned, and by a decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dice_ray.metrics.calibration import log_loss
from dice_ray.metrics.catalogue import beta
from dice_ray.metrics.classification import (
    Counts,
    binary_scores,
    brier,
    calibration_error,
    chosen_constant,
    chosen_f_beta,
    class_counts,
    class_scores,
    confusion,
    constant_f1,
    f1_by_name,
    label_counts,
    macro_roc_auc,
    micro_and_macro,
)
from dice_ray.metrics.rules import FBetaRule, Outcomes
from dice_ray.tasks.base import Decoded, Row
from dice_ray.tasks.rows import labels_of
from dice_ray.tasks.text_decider import TextDecider


def by_record(rows: Sequence[Row], decoded: Decoded) -> tuple[NDArray[np.int64], NDArray[np.floating[Any]]]:
    """The targets of each record, and its probabilities: the mean over its windows."""
    records = np.array([row["record"] for row in rows])
    _, firsts, num_windows = np.unique(records, return_index=True, return_counts=True)
    sums_NC = np.add.reduceat(np.array(decoded), firsts)
    return labels_of([rows[first] for first in firsts.tolist()]), sums_NC / num_windows[:, None]


def untuned_metrics(
    decider: TextDecider, gold_NC: NDArray[np.bool_], probabilities_NC: NDArray[np.floating[Any]], score: str
) -> dict[str, float]:
    """The scores of untuned predictions, and of constant ones; `score` is the metric that decides."""
    if not decider.is_exclusive:
        return _label_metrics(decider.classes, gold_NC, probabilities_NC, score)
    labels_N = gold_NC.argmax(1)
    counts_CC = confusion(labels_N, probabilities_NC.argmax(-1), len(decider.classes))
    of_all_classes, of_each = _of_all_classes(counts_CC, score), class_counts(decider.classes, counts_CC)
    loss = {"log_loss": log_loss(probabilities_NC, gold_NC, exclusive=True)}
    if not decider.has_positive:
        return of_all_classes | f1_by_name(of_each) | {"roc_auc": macro_roc_auc(probabilities_NC, gold_NC)} | loss
    return {
        **binary_scores(probabilities_NC[:, 1], labels_N),
        **of_all_classes,
        **loss,
        "constant_f1": constant_f1(labels_N),
        **chosen_constant(score, labels_N),
        **chosen_f_beta(score, of_each[decider.classes[1]]),
    }


def calibrated_metrics(
    gold_NC: NDArray[np.bool_], probabilities_NC: NDArray[np.floating[Any]], *, is_positive: bool
) -> dict[str, float]:
    """Log loss and, of a positive class, Brier score and calibration error, after calibration."""
    metrics = {"log_loss": log_loss(probabilities_NC, gold_NC, exclusive=True)}
    if is_positive:
        positive_N, labels_N = probabilities_NC[:, 1], gold_NC[:, 1].astype(np.int64)
        metrics |= {"brier": brier(positive_N, labels_N), "calibration_error": calibration_error(positive_N, labels_N)}
    return {f"{name}_calibrated": value for name, value in metrics.items()}


def _of_all_classes(counts_CC: NDArray[np.int64], score: str) -> dict[str, float]:
    """The scores over all classes, and those of predicting the most frequent class."""
    sizes_C, constant_CC = counts_CC.sum(1), np.zeros_like(counts_CC)
    constant_CC[:, sizes_C.argmax()] = sizes_C
    constant = class_scores(constant_CC) | {"roc_auc": 0.5}
    stored = constant.keys() & {"accuracy", "macro_f1", score}
    return class_scores(counts_CC) | {f"constant_{name}": constant[name] for name in sorted(stored)}


def _label_metrics(
    classes: Sequence[str], gold_NC: NDArray[np.bool_], probabilities_NC: NDArray[np.floating[Any]], score: str
) -> dict[str, float]:
    """The scores of several labels, at the threshold 0.5, and those of predicting the same labels for every text."""
    counts = label_counts(gold_NC, probabilities_NC > 0.5)
    of_all_labels = micro_and_macro(label_counts(gold_NC, np.ones_like(gold_NC)))
    known = {"macro_f1": of_all_labels["macro_f1"], "roc_auc": 0.5}
    constants_K = Outcomes.of_constants(gold_NC)
    by_name = {"precision": constants_K.precision, "recall": constants_K.recall}
    by_name |= {name: FBetaRule(beta=each).value(constants_K) for name in ("f1", score) if (each := beta(name))}
    known |= {name: float(values_K.max()) for name, values_K in by_name.items()}
    constants = {f"constant_{name}": known[name] for name in sorted({"f1", "macro_f1", score} & known.keys())}
    return {
        **micro_and_macro(counts),
        **constants,
        **f1_by_name(dict(zip(classes, counts, strict=True))),
        "roc_auc": macro_roc_auc(probabilities_NC, gold_NC),
        **chosen_f_beta(score, sum(counts, Counts())),
    }
