"""Shifts of the logits of three and more classes, which dev chooses for a metric."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from dice_ray.metrics.classification import class_scores, confusion

MIN_ITEMS: Final = 20
"""Items that each class must have in dev for shifts of their own; otherwise all follow from one parameter."""
_FACTORS: Final = np.concatenate([[0.0], np.outer(np.geomspace(1 / 16, 8, 22), [1, -1]).ravel()])
"""Of the logarithm of the prior. Small ones first; negative ones for a loss that has favoured rare classes too much."""
_NUM_CANDIDATES: Final = 32
_NUM_SWEEPS: Final = 3


def fit_shifts(
    probabilities_NC: NDArray[np.floating], labels_N: NDArray[np.integer], metric: str
) -> NDArray[np.float64]:
    """`shifts_C` with the highest value of the metric found on dev; 0 for the most frequent class.

    First those of one parameter: -tau log prior, the prior being the share of a class in `labels_N` (of one item, where
    it has none). If each class has at least `MIN_ITEMS` items, each shift is then improved while the others stand, in
    at most three sweeps. Of equal values the smallest change is taken, none if possible. All are 0 without items, or
    where all labels are equal.

    >>> p_NC = np.array([[0.6, 0.4, 0], [0.9, 0.1, 0], [0.8, 0.2, 0], [0.3, 0, 0.7]])
    >>> shifted(p_NC, fit_shifts(p_NC, np.array([1, 0, 0, 2]), "accuracy")).tolist()
    [1, 0, 0, 2]

    Args:
        probabilities_NC: of three or more exclusive classes.
        labels_N: the class of each item.
        metric: one of `class_scores`.
    """
    num_classes = probabilities_NC.shape[1]
    sizes_C = np.bincount(labels_N, minlength=num_classes)
    if (sizes_C > 0).sum() < 2:
        return np.zeros(num_classes)
    most_frequent, logits_NC = int(sizes_C.argmax()), _logits(probabilities_NC)

    def value(shifts_C: NDArray[np.float64]) -> float:
        return class_scores(confusion(labels_N, (logits_NC + shifts_C).argmax(1), num_classes))[metric]

    # Every vector of shifts is brought to its final form before it is judged: rounding may decide a tie.
    log_ratio_C = np.log(np.maximum(sizes_C, 1) / sizes_C[most_frequent])
    best, shifts_C = -np.inf, np.zeros(num_classes)
    for candidate_C in -_FACTORS[:, None] * log_ratio_C:
        if (reached := value(candidate_C)) > best + 1e-12:
            best, shifts_C = reached, candidate_C
    is_improved = sizes_C.min() >= MIN_ITEMS
    for _ in range(_NUM_SWEEPS if is_improved else 0):
        is_improved = False
        for class_ in range(num_classes):
            candidate_C = shifts_C.copy()
            candidate_C[class_] += _best_change(logits_NC + shifts_C, labels_N, class_, metric)
            candidate_C -= candidate_C[most_frequent]
            if (reached := value(candidate_C)) > best + 1e-12:
                best, shifts_C, is_improved = reached, candidate_C, True
        if not is_improved:
            break
    return shifts_C


def _best_change(logits_NC: NDArray[np.float64], labels_N: NDArray[np.integer], class_: int, metric: str) -> float:
    """What is best added to the logits of one class, of 0 and changes that win quantiles of its items."""
    num_classes = logits_NC.shape[1]
    others_NC = logits_NC.copy()
    others_NC[:, class_] = -np.inf
    rival_N = others_NC.argmax(1)
    margins_N = others_NC.max(1) - logits_NC[:, class_]
    # A change is worth trying only just above the margin of an item of the class, halfway to the next margin.
    ordered_N, own = np.sort(margins_N), np.sort(margins_N[labels_N == class_])
    own = own[np.unique(np.linspace(0, len(own) - 1, _NUM_CANDIDATES).astype(int))]
    above = np.append(ordered_N, ordered_N[-1] + 1)[np.searchsorted(ordered_N, own, side="right")]
    changes_K = np.unique(np.append((own + above) / 2, 0.0))
    # An item moves from its rival to the class at the first change above its margin; one count serves all changes.
    moves_N = np.searchsorted(changes_K, margins_N, side="right")
    shape = (len(changes_K) + 1, num_classes, num_classes)
    cells_N = np.ravel_multi_index((moves_N, labels_N, rival_N), shape)
    moved_KCC = np.bincount(cells_N, minlength=int(np.prod(shape))).reshape(shape).cumsum(0)
    counts_KCC = moved_KCC[-1] - moved_KCC[:-1]
    counts_KCC[:, :, class_] = moved_KCC[:-1].sum(2)
    values = [class_scores(counts_CC)[metric] for counts_CC in counts_KCC]
    best_K = changes_K[np.array(values) >= max(values) - 1e-12]
    return float(best_K[np.abs(best_K).argmin()])


def shifted(probabilities_NC: NDArray[np.floating], shifts_C: NDArray[np.floating]) -> NDArray[np.int64]:
    """`predicted_N`: the class with the largest logit after the shift."""
    predicted_N: NDArray[np.int64] = (_logits(probabilities_NC) + shifts_C).argmax(1)
    return predicted_N


def _logits(probabilities_NC: NDArray[np.floating]) -> NDArray[np.float64]:
    return np.log(np.maximum(np.asarray(probabilities_NC, dtype=np.float64), np.finfo(np.float64).tiny))
