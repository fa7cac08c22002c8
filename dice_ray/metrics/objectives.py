"""The metric that decides: a built-in one by its name, an F-beta as `f2`, or the user's function by its address."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dice_ray.errors import InputError, reason_of
from dice_ray.metrics.classification import UNTUNED_THRESHOLD, Counts, binary_scores

F_BETA: Final = re.compile(r"f(\d+(?:\.\d+)?)")
OF_TWO: Final = ("f1", "precision", "recall", "accuracy", "balanced_accuracy", "mcc", "roc_auc", "pr_auc")
"""Of a positive class and another one."""
OF_CLASSES: Final = ("accuracy", "macro_f1", "balanced_accuracy", "mcc", "roc_auc")
"""Of one of several classes."""
OF_LABELS: Final = ("f1", "precision", "recall", "macro_f1", "roc_auc")
"""Of any number of labels."""
PLAIN: Final = ("accuracy", "mcc")
"""The metrics that are defined also where a class does not occur."""


def check_score(score: str, known: Collection[str]) -> None:
    """A score must be one of these names, an F-beta where there is an F1, or an address.

    Raises:
        ValueError: It is none of them.
    """
    if score not in known and ":" not in score and not (beta(score) and "f1" in known):
        beta_name = ", f2 (any F-beta)" if "f1" in known else ""
        raise ValueError(f"score must be one of {', '.join(known)}{beta_name}, or file.py:function, got {score!r}")


def metric_of(score: str) -> str:
    """The name of the metric of a score.

    >>> metric_of("recall"), metric_of("costs.py:saved")
    ('recall', 'saved')
    """
    return score.rpartition(":")[2]


def beta(score: str) -> float | None:
    """The beta of an F-beta; None for another score.

    >>> beta("f0.5"), beta("f1_macro")
    (0.5, None)
    """
    found = F_BETA.fullmatch(score)
    return float(found[1]) if found else None


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
    found = [binary_scores(np.full(len(labels), always), labels, UNTUNED_THRESHOLD) for always in (0.0, 1.0)]
    num_positive = int((labels == 1).sum())
    found.append(chosen_f_beta(score, Counts(tp=num_positive, fp=len(labels) - num_positive)))
    values = [each[score] for each in found if score in each]
    return {f"constant_{score}": max(values)} if values else {}


def own_metric(
    function: Callable[..., Any],
    address: str,
    others: Mapping[str, float],
    targets: Sequence[Any],
    predictions: Sequence[Any],
) -> dict[str, float]:
    """The value of the user's function, by its name.

    Raises:
        InputError: It failed, did not return a finite number, or has the name of another metric.
    """
    name = metric_of(address)
    if name in others:
        raise InputError(f"the metric {address} must have a name of its own, and there is a metric {name}: rename it")
    try:
        value = float(function(targets, predictions))
    except Exception as error:
        raise InputError(f"the metric {address} must return a number, and raised {reason_of(error)}") from error
    if not math.isfinite(value):
        raise InputError(f"the metric {address} must return a finite number, got {value}")
    return {name: value}
