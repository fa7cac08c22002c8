"""Shifts of the logits of three and more classes, which dev chooses for a metric."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from dice_ray.metrics.classification import class_scores, confusion, scores_of_sums

_MIN_ITEMS: Final = 20
"""Items that each class must have in dev for shifts of their own; otherwise all follow from one parameter."""
_FACTORS: Final = np.concatenate([[0.0], np.outer(np.geomspace(1 / 16, 8, 22), [1, -1]).ravel()])
"""Of the logarithm of the prior. Small ones first; negative ones for a loss that has favoured rare classes too much."""


def fit_shifts(
    probabilities_NC: NDArray[np.floating], labels_N: NDArray[np.integer], metric: str
) -> NDArray[np.float64]:
    """`shifts_C` of three or more classes with the highest value found on dev of a metric of `class_scores`.

    First those of one parameter: -tau log prior, the prior being the share of a class in `labels_N` (of one item, where
    it has none). If each class has at least `_MIN_ITEMS` items, each shift is then improved while the others stand, in
    at most three sweeps. The shift of the most frequent class is 0. Of equal values the smallest change is taken, none
    if possible. All are 0 without items, or where all labels are equal.

    >>> p_NC = np.array([[0.6, 0.4, 0], [0.9, 0.1, 0], [0.8, 0.2, 0], [0.3, 0, 0.7]])
    >>> shifted(p_NC, fit_shifts(p_NC, np.array([1, 0, 0, 2]), "accuracy")).tolist()
    [1, 0, 0, 2]
    """
    num_classes = probabilities_NC.shape[1]
    sizes_C = np.bincount(labels_N, minlength=num_classes)
    if (sizes_C > 0).sum() < 2:
        return np.zeros(num_classes)
    most_frequent, logits_NC = int(sizes_C.argmax()), _logits(probabilities_NC)

    def value(shifts_C: NDArray[np.float64]) -> float:
        return class_scores(confusion(labels_N, (logits_NC + shifts_C).argmax(1), num_classes))[metric]

    # Every vector of shifts is brought to its final form before it is judged: rounding may decide a tie.
    rarity_C = np.log(sizes_C[most_frequent] / np.maximum(sizes_C, 1))
    best, shifts_C = -np.inf, np.zeros(num_classes)
    for candidate_C in np.outer(_FACTORS, rarity_C) + 0.0:  # which makes 0 of -0
        if (reached := value(candidate_C)) > best + 1e-12:
            best, shifts_C = reached, candidate_C
    is_improved = sizes_C.min() >= _MIN_ITEMS
    for _ in range(3 if is_improved else 0):
        is_improved = False
        for class_ in range(num_classes):
            change = _best_change(logits_NC + shifts_C, labels_N, class_, metric)
            candidate_C = shifts_C.copy()
            candidate_C[class_] += change
            candidate_C -= candidate_C[most_frequent]
            if change and (reached := value(candidate_C)) > best + 1e-12:
                best, shifts_C, is_improved = reached, candidate_C, True
        if not is_improved:
            break
    return shifts_C


def _best_change(logits_NC: NDArray[np.float64], labels_N: NDArray[np.integer], class_: int, metric: str) -> float:
    """What is best added to the logits of one class, which are overwritten: 0, or what wins a quantile of its items."""
    num_classes = logits_NC.shape[1]
    own_N = logits_NC[:, class_].copy()
    logits_NC[:, class_] = -np.inf
    rival_N = logits_NC.argmax(1)
    margins_N = logits_NC[np.arange(len(own_N)), rival_N] - own_N
    # A change is worth trying only just above the margin of an item of the class, halfway to the next margin.
    is_own_N = labels_N == class_
    ordered_N, own = np.sort(margins_N), np.sort(margins_N[is_own_N])
    own = own[np.unique(np.linspace(0, len(own) - 1, 32).astype(int))]
    above = np.append(ordered_N, ordered_N[-1] + 1)[np.searchsorted(ordered_N, own, side="right")]
    changes_K = np.unique(np.append((own + above) / 2, 0.0))
    # An item moves from its rival to the class at the first change above its margin.
    moves_N = np.searchsorted(changes_K, margins_N, side="right")

    def sums(chosen_N: NDArray[np.bool_]) -> NDArray[np.int64]:
        """`sums_KC`: how many of these items each class gets with each change."""
        cells_N = moves_N[chosen_N] * num_classes + rival_N[chosen_N]
        moved_KC = np.bincount(cells_N, minlength=(len(changes_K) + 1) * num_classes).reshape(-1, num_classes).cumsum(0)
        sums_KC: NDArray[np.int64] = moved_KC[-1] - moved_KC[:-1]
        sums_KC[:, class_] = moved_KC[:-1].sum(1)
        return sums_KC

    right_KC = sums(labels_N == rival_N)
    right_KC[:, class_] = sums(is_own_N)[:, class_]
    labelled_C = np.bincount(labels_N, minlength=num_classes)
    values = scores_of_sums(right_KC, labelled_C, sums(np.ones_like(is_own_N)))[metric]
    best_K = changes_K[values >= values.max() - 1e-12]
    return float(best_K[np.abs(best_K).argmin()])


def shifted(probabilities_NC: NDArray[np.floating], shifts_C: NDArray[np.floating]) -> NDArray[np.int64]:
    """`predicted_N`: the class with the largest logit after the shift."""
    predicted_N: NDArray[np.int64] = (_logits(probabilities_NC) + shifts_C).argmax(1)
    return predicted_N


def _logits(probabilities_NC: NDArray[np.floating]) -> NDArray[np.float64]:
    return np.log(np.maximum(np.asarray(probabilities_NC, dtype=np.float64), np.finfo(np.float64).tiny))
