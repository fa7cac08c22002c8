"""Scores of items with any number of labels: micro and macro over all labels, and the constant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dice_ray.metrics.classification import Counts, ratio


def label_counts(gold_NC: NDArray[np.bool_], predicted_NC: NDArray[np.bool_]) -> list[Counts]:
    """The counts of each label.

    >>> label_counts(np.array([[True, False]]), np.array([[True, True]]))
    [Counts(tp=1, fp=0, fn=0), Counts(tp=0, fp=1, fn=0)]
    """
    columns = (gold_NC & predicted_NC, predicted_NC & ~gold_NC, gold_NC & ~predicted_NC)
    return [Counts(*of_label) for of_label in zip(*(column.sum(0).tolist() for column in columns), strict=True)]


def micro_and_macro(counts: Sequence[Counts]) -> dict[str, float]:
    """Micro scores, and the mean F1 of all labels, also of those that do not occur, as in scikit-learn."""
    return sum(counts, Counts()).scores | {"macro_f1": ratio(sum(label.f1 for label in counts), len(counts))}


def constant_micro(gold_NC: NDArray[Any], measure: Callable[[Counts], float]) -> float:
    """The best micro score of predicting the same labels for every item; these are the most frequent ones.

    >>> constant_micro(np.array([[1, 1], [1, 0], [1, 0]]), lambda counts: counts.f1)  # of the first label: 6 / (3 + 4)
    0.8571428571428571
    """
    frequencies = sorted(gold_NC.sum(0).tolist(), reverse=True)
    total = sum(frequencies)
    return max(
        measure(Counts(num_right, num_labels * len(gold_NC) - num_right, total - num_right))
        for num_labels, num_right in enumerate(accumulate(frequencies), start=1)
    )
