"""Decisions: the threshold that dev chooses for F1, for a positive class and for questions without an answer."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dice_ray.metrics.catalogue import metric
from dice_ray.metrics.classification import Counts, constant_f1

NUM_FOLDS: Final = 5
"""Folds of dev on which it is checked whether a tuned threshold may be used."""
UNTUNED_THRESHOLD: Final = 0.5
UNTUNED_NO_ANSWER: Final = 0.0
"""The no-answer threshold without tuning: no answer where it is more probable than the best one."""
_BEYOND_CONSTANT: Final = 1.1
"""A useless model's best threshold labels nearly everything positive, and its F1 exceeds that by chance."""


def best_threshold(probabilities: NDArray[np.floating], labels: NDArray[np.integer]) -> float:
    """The threshold with the best F1 of the positive class; ties go to the one nearest to 0.5. Without positives 0.5.

    Candidates lie halfway between neighbouring probabilities, and halfway between the smallest one and 0.
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
    # Between two neighbouring floating-point numbers there is no third: then the lower one is the threshold.
    thresholds = np.where(middle < values, middle, below)
    best = np.flatnonzero(np.isclose(f1, f1.max(), rtol=1e-12, atol=0))
    return float(thresholds[best[np.abs(thresholds[best] - 0.5).argmin()]])


def threshold_decisions(
    probabilities: NDArray[np.floating], labels: NDArray[np.integer], score: str
) -> dict[str, float]:
    """What dev decides about the threshold of a two-class problem, which is tuned for F1.

    A threshold that was tuned on few positives may be worse than 0.5, or label everything positive. It is used only if
    `score`, the metric that decides in the run, follows F1 (`Metric.follows_f1`), if dev has at least `NUM_FOLDS`
    positives, and if thresholds that are tuned in the same way on the other folds of dev give a higher F1 than 0.5, and
    1.1 times that of labelling everything positive.

    The reason is a simulation (5 and 20 % positive; good, weak and useless models of four calibrations; expected F1 on
    test). A good model has at 0.5 an F1 of 62.7. With 5, 10, 20, 50, 200 positives in dev, always using the tuned
    threshold gives 68.3, 69.2, 70.2, 70.7, 71.4 and is worse than 0.5 in 22, 18, 10, 7, 1 % of the draws; this rule
    gives 67.9, 68.7, 69.9, 70.5, 71.4 and is worse in 6, 5, 3, 4, 1 %. A useless model labels more than half of all
    items positive in 38 to 68 % of the draws at the tuned threshold, and in 14 % by this rule (12 % at 0.5). So a
    minimum number of positives alone would give up the gain, or keep the losses.

    Returns:
        `threshold`, the tuned one; `threshold_support`, the number of positives that it was tuned on; and
        `threshold_used`, the one that predictions use.
    """
    tuned, support = best_threshold(probabilities, labels), int((labels == 1).sum())
    is_used = False
    if support >= NUM_FOLDS and metric(score).follows_f1:
        folds_N, predicted_N = _folds(labels), np.zeros(len(labels), dtype=np.int64)
        for fold in range(NUM_FOLDS):
            in_fold = folds_N == fold
            threshold = best_threshold(probabilities[~in_fold], labels[~in_fold])
            predicted_N[in_fold] = probabilities[in_fold] > threshold
        at_half = _f1(labels, probabilities > UNTUNED_THRESHOLD)
        is_used = _f1(labels, predicted_N) > max(at_half, _BEYOND_CONSTANT * constant_f1(labels))
    used = tuned if is_used else UNTUNED_THRESHOLD
    return {"threshold": tuned, "threshold_support": float(support), "threshold_used": used}


def _folds(groups: NDArray[Any]) -> NDArray[np.int64]:
    """`folds_N`: the fold of each item, of `NUM_FOLDS`; the items of each group are dealt out in their order.

    >>> _folds(np.array([1, 0, 0, 0, 0, 0, 0, 1])).tolist()
    [0, 0, 1, 2, 3, 4, 0, 1]
    """
    folds_N = np.empty(len(groups), dtype=np.int64)
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        folds_N[members] = np.arange(len(members)) % NUM_FOLDS
    return folds_N


def _f1(labels: NDArray[np.integer], predicted: NDArray[Any]) -> float:
    tp = int(((predicted == 1) & (labels == 1)).sum())
    return Counts(tp, int(predicted.sum()) - tp, int((labels == 1).sum()) - tp).f1


def best_no_answer_threshold(
    no_answer: NDArray[np.floating], scores: NDArray[np.floating], answerable: NDArray[np.bool_]
) -> float:
    """The threshold with the best mean score; a question above it is left unanswered. Ties go to the lowest.

    It lies halfway between two neighbouring values of `no_answer`. If answering all questions is best it is the largest
    value, if answering none is, 1 below the smallest.

    Args:
        no_answer: `no_answer_N`, the higher the more likely the question has no answer.
        scores: `scores_N`, the score of the predicted answer if it is given; 0 for an unanswerable question.
        answerable: `answerable_N`, whether the question has an answer; if not, leaving it unanswered scores 1.
    """
    values, value_of_question = np.unique(no_answer, return_inverse=True)
    # What answering the questions up to each value adds to the total; ties within rounding go to the lowest.
    gains = np.bincount(value_of_question, weights=scores - ~answerable)
    totals = np.concatenate([[0.0], gains.cumsum()])
    best = int(np.flatnonzero(totals >= totals.max() - 1e-9)[0])
    if best == 0:
        return float(values[0] - 1)
    below, above = values[best - 1], values[min(best, len(values) - 1)]
    middle = below + (above - below) / 2
    return float(middle if middle < above else below)


def no_answer_decisions(
    no_answer: NDArray[np.floating], scores: NDArray[np.floating], answerable: NDArray[np.bool_]
) -> dict[str, float]:
    """What dev decides about the no-answer threshold, by the rule of `threshold_decisions`.

    The tuned threshold is used only if dev has at least `NUM_FOLDS` questions of each kind, and if thresholds that are
    tuned in the same way on the other folds score better than 0 and than leaving every question unanswered.
    `threshold_support` is the number of questions of the rarer kind. Arguments as in `best_no_answer_threshold`.
    """

    def total(threshold_N: NDArray[np.floating]) -> float:
        return float(np.where(no_answer > threshold_N, ~answerable, scores).sum())

    tuned = best_no_answer_threshold(no_answer, scores, answerable)
    support = min(int(answerable.sum()), int((~answerable).sum()))
    is_used = False
    if support >= NUM_FOLDS:
        folds_N, fitted_N = _folds(answerable), np.zeros(len(no_answer))
        for fold in range(NUM_FOLDS):
            others = folds_N != fold
            fitted_N[~others] = best_no_answer_threshold(no_answer[others], scores[others], answerable[others])
        untuned_N = np.full(len(no_answer), UNTUNED_NO_ANSWER)
        is_used = total(fitted_N) > max(total(untuned_N), float((~answerable).sum()))
    used = tuned if is_used else UNTUNED_NO_ANSWER
    return {"threshold": tuned, "threshold_support": float(support), "threshold_used": used}
