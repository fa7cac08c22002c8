"""Fits decisions on dev.

Each kind of decision says how its numbers are fitted to some of the items of dev, and what they lead to on others:
additive counts. `_decision` does the rest, the same for all: it fits the numbers on all of dev, and measures on five
folds of it, each decided with numbers that were fitted to the other four, whether they beat the untuned ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dice_ray.metrics.catalogue import gain
from dice_ray.metrics.classification import Counts, class_scores, confusion
from dice_ray.metrics.decisions import (
    NUM_FOLDS,
    UNTUNED_NO_ANSWER,
    UNTUNED_THRESHOLD,
    FittedDecision,
    Numbers,
    thresholds,
)
from dice_ray.metrics.rules import F1Rule, Outcomes, Rule
from dice_ray.metrics.shifts import fit_shifts, shifted

_Choice = TypeVar("_Choice")


def _decision(
    metric: str,
    fit: Callable[[NDArray[np.bool_]], _Choice],
    outcome: Callable[[_Choice, NDArray[np.bool_]], Any],
    value: Callable[[Any], float],
    numbers: Callable[[_Choice], Numbers],
    untuned: _Choice,
    folds_N: NDArray[np.int64],
    support: int,
    *,
    gain_of: Callable[[Any], float] | None = None,
    least: float = -np.inf,
    is_target: bool = False,
) -> FittedDecision:
    """Fit a decision on dev and on its folds.

    A decision that was tuned on few positives may be worse than the untuned one, or call everything positive. It is
    used only if dev has at least `NUM_FOLDS` positives and if decisions that are fitted in the same way on the other
    folds of dev beat the untuned one; for an F-beta also c + .1 min(c, 1 - c), c that of calling everything positive.

    The reason is a simulation of F1 (5 and 20 % positive; good, weak and useless models of four calibrations; expected
    F1 on test). A good model has at 0.5 an F1 of 62.7. With 5, 10, 20, 50, 200 positives in dev, always using the tuned
    threshold gives 68.3, 69.2, 70.2, 70.7, 71.4 and is worse than 0.5 in 22, 18, 10, 7, 1 % of the draws; this rule
    gives 67.9, 68.7, 69.9, 70.5, 71.4 and is worse in 6, 5, 3, 4, 1 %. A useless model labels more than half of all
    items positive in 38 to 68 % of the draws at the tuned threshold, and in 14 % by this rule (12 % at 0.5). So a
    minimum number of positives alone would give up the gain, or keep the losses.

    `fit` chooses by the items of a mask. `outcome` is what a choice leads to on the items of a mask, and is additive;
    `value` is that of outcomes that were added up. `gain_of`, by default the value, is maximised, above `least`.
    `support` is the number of positives. With `is_target` the decision promises a limit, which the untuned one does not
    know.
    """
    gain_of = gain_of or value
    everything_N = np.ones(len(folds_N), dtype=np.bool_)
    tuned = fit(everything_N)
    is_used, on_dev = is_target and support >= NUM_FOLDS, value(outcome(tuned, everything_N))
    beats_untuned = False
    # Where all items are of one group, none are left to fit to.
    if support >= NUM_FOLDS and not is_target and len(np.unique(folds_N)) > 1:
        first, *others = (outcome(fit(folds_N != fold), folds_N == fold) for fold in range(NUM_FOLDS))
        crossed = sum(others, first)
        beats_untuned = bool(gain_of(crossed) > gain_of(outcome(untuned, everything_N)))
        is_used = beats_untuned and bool(gain_of(crossed) > least)
        on_dev = value(crossed)
    of_both = numbers(tuned), numbers(untuned)
    return FittedDecision(metric, *of_both, is_used, support, float(on_dev), beats_untuned=beats_untuned)


def _folds(strata_N: NDArray[Any], groups: Sequence[str] | None = None) -> NDArray[np.int64]:
    """`folds_N`: the fold of each item, of `NUM_FOLDS`; the items of each stratum are dealt out in their order.

    The items of a group are in one fold; its stratum is the highest one of its items.

    >>> _folds(np.array([1, 0, 0, 0, 0, 0, 0, 1])).tolist()
    [0, 0, 1, 2, 3, 4, 0, 1]
    """
    if groups is not None:
        _, members_N = np.unique(np.array(groups, dtype=str), return_inverse=True)
        strata_G = np.full(members_N.max(initial=-1) + 1, np.min(strata_N, initial=0))
        np.maximum.at(strata_G, members_N, strata_N)
        return _folds(strata_G)[members_N]
    folds_N = np.empty(len(strata_N), dtype=np.int64)
    for stratum in np.unique(strata_N):
        members = np.flatnonzero(strata_N == stratum)
        folds_N[members] = np.arange(len(members)) % NUM_FOLDS
    return folds_N


def _best_threshold(probabilities: NDArray[np.floating], labels: NDArray[Any], rule: Rule) -> float:
    """The threshold with the highest gain; ties go to the one nearest to 0.5. Without positives 0.5.

    Candidates lie halfway between neighbouring probabilities, the smallest one and 0, and the largest one and 1.
    """
    if not labels.any():
        return UNTUNED_THRESHOLD
    values, places = np.unique(probabilities, return_inverse=True)
    positives, sizes = np.bincount(places, weights=labels == 1), np.bincount(places)
    # Of the items at and above each value, and of none.
    tp, flagged = (np.append(each[::-1].cumsum()[::-1], 0) for each in (positives, sizes))
    num_positive = tp[0]
    outcomes_K = Outcomes(tp, flagged - tp, num_positive - tp, len(labels) - num_positive - flagged + tp)
    lower = np.concatenate([[0.0 if values[0] > 0 else -1.0], values])
    upper = np.append(values, max(1.0, values[-1]))
    middle = lower + (upper - lower) / 2
    # Between two neighbouring floating-point numbers there is no third: then the lower one is the threshold.
    thresholds = np.where(middle < upper, middle, lower)
    gains = rule.gain(outcomes_K)
    best = np.flatnonzero(np.isclose(gains, gains.max(), rtol=1e-12, atol=0))
    return float(thresholds[best[np.abs(thresholds[best] - UNTUNED_THRESHOLD).argmin()]])


def fit_threshold(
    probabilities_NC: NDArray[np.floating],
    gold_NC: NDArray[np.bool_],
    rule: Rule,
    labels: Sequence[str] = (),
    groups: Sequence[str] | None = None,
) -> FittedDecision:
    """The threshold of a positive class, `probabilities_N1`, or of several labels, whose outcomes are added up.

    Of several labels, those with at least 20 positives have thresholds of their own. Items of a group belong together.
    """
    frequent = {label: place for place, label in enumerate(labels) if gold_NC[:, place].sum() >= 20}
    rare = [place for place in range(gold_NC.shape[1]) if place not in frequent.values()]
    # A limit is kept over all labels if it is kept over the frequent ones, each by its own threshold, and the others.
    common = rare if rule.is_target and rare else slice(None)

    def fit(items_N: NDArray[np.bool_]) -> dict[str, float]:
        p_NC, has_NC = probabilities_NC[items_N], gold_NC[items_N]
        own = {f"threshold:{name}": _best_threshold(p_NC[:, c], has_NC[:, c], rule) for name, c in frequent.items()}
        return {"threshold": _best_threshold(p_NC[:, common].ravel(), has_NC[:, common].ravel(), rule), **own}

    def outcome(numbers: dict[str, float], items_N: NDArray[np.bool_]) -> Outcomes:
        limits = thresholds(numbers, labels)
        return Outcomes.of(probabilities_NC[items_N] > limits, gold_NC[items_N])

    def value(outcomes: Outcomes) -> float:
        # Where dev misses the limit, the value at the nearest threshold says nothing: a constant score has recall 1.
        return 0.0 if rule.is_target and rule.misses(outcomes) else float(rule.value(outcomes))

    num_positive = int(gold_NC.sum())
    constant = float(rule.gain(Outcomes(num_positive, gold_NC.size - num_positive, 0, 0)))
    return _decision(
        rule.metric,
        fit,
        outcome,
        value,
        lambda numbers: numbers,
        {"threshold": UNTUNED_THRESHOLD},
        _folds(np.asarray(gold_NC.any(1)), groups),
        num_positive,
        gain_of=rule.gain,
        # A useless model's best threshold labels nearly everything positive, and its F1 exceeds that by chance. Above
        # an F of .5, a tenth of what is missing to 1: 1.1 times the F would exceed 1.
        least=min(1.1 * constant, 0.9 * constant + 0.1) if isinstance(rule, F1Rule) else -np.inf,
        is_target=rule.is_target,
    )


def fit_own_threshold(
    probabilities_NC: NDArray[np.floating],
    gold_NC: NDArray[np.bool_],
    metric: str,
    value: Callable[[NDArray[np.bool_], NDArray[np.bool_]], float],
    groups: Sequence[str] | None = None,
) -> FittedDecision:
    """The threshold with the best value of a user's function of the gold and the predicted membership in classes.

    Tried are 0.5, and 60 thresholds of which each calls the same share more positive than the one above it: quantiles
    would leave few of them where positives are rare, and a user's function is too slow for more.
    """

    def fit(items_N: NDArray[np.bool_]) -> float:
        p_NC, has_NC = probabilities_NC[items_N], gold_NC[items_N]
        distinct = np.unique(p_NC)
        middles = distinct[:-1] + np.diff(distinct) / 2
        ranks = np.unique(np.geomspace(1, max(len(middles), 1), 60).round().astype(int))
        tried = middles[::-1][ranks[: len(middles)] - 1].tolist()
        candidates = sorted({UNTUNED_THRESHOLD, *tried}, key=lambda t: abs(t - UNTUNED_THRESHOLD))
        gains = [gain(metric, value(has_NC, p_NC > threshold)) for threshold in candidates]
        return float(candidates[int(np.argmax(gains))])

    def outcome(threshold: float, items_N: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Which predictions these items have."""
        return ((probabilities_NC > threshold) & items_N[:, None]).astype(np.int64)

    return _decision(
        metric,
        fit,
        outcome,
        lambda predicted_NC: value(gold_NC, predicted_NC > 0),
        lambda threshold: {"threshold": threshold},
        UNTUNED_THRESHOLD,
        _folds(np.asarray(gold_NC.any(1)), groups),
        int(gold_NC.sum()),
        gain_of=lambda predicted_NC: gain(metric, value(gold_NC, predicted_NC > 0)),
    )


def fit_classes(
    probabilities_NC: NDArray[np.floating],
    labels_N: NDArray[np.integer],
    classes: Sequence[str],
    metric: str,
    groups: Sequence[str] | None = None,
) -> FittedDecision:
    """The shifts of three and more classes; `support` is the number of items of the rarest class that dev has."""

    def outcome(shifts_C: NDArray[np.floating], items_N: NDArray[np.bool_]) -> NDArray[np.int64]:
        return confusion(labels_N[items_N], shifted(probabilities_NC[items_N], shifts_C), len(classes))

    sizes = np.bincount(labels_N, minlength=len(classes))
    return _decision(
        metric,
        lambda items_N: fit_shifts(probabilities_NC[items_N], labels_N[items_N], metric),
        outcome,
        lambda counts_CC: class_scores(counts_CC)[metric],
        lambda shifts_C: {f"shift:{name}": float(shift) for name, shift in zip(classes, shifts_C, strict=True)},
        np.zeros(len(classes)),
        _folds(labels_N, groups),
        int(sizes[sizes > 0].min(initial=len(labels_N))),
    )


def fit_spans(
    candidates: Sequence[Numbers], counts_KN3: NDArray[Any], groups: Sequence[str] | None = None
) -> FittedDecision:
    """The candidate, of which the first one is untuned, with the highest micro F1 of spans; of equal ones the first.

    `counts_KN3` are the true positives, false positives and false negatives of each record, decided by each candidate.
    Of records that have a score s instead, these are s, 1 - s and 1 - s: their micro F1 is the mean score.
    """
    num_gold_N = counts_KN3[0, :, 0] + counts_KN3[0, :, 2]

    def f1(counts_3: NDArray[Any]) -> float:
        return Counts(*counts_3.tolist()).f1

    def fit(items_N: NDArray[np.bool_]) -> int:
        # Rounded, since sums of scores differ by their order.
        return int(np.argmax([round(f1(counts_N3[items_N].sum(0)), 12) for counts_N3 in counts_KN3]))

    return _decision(
        "f1",
        fit,
        lambda number, items_N: counts_KN3[number, items_N].sum(0),
        f1,
        lambda number: candidates[number],
        0,
        _folds(num_gold_N > 0, groups),
        int(num_gold_N.sum()),
    )


def _best_no_answer_threshold(
    no_answer: NDArray[np.floating], scores: NDArray[np.floating], answerable: NDArray[np.bool_]
) -> float:
    """The threshold with the best mean score; a question above it is left unanswered. Ties go to the lowest.

    It lies halfway between two neighbouring values of `no_answer_N`, the higher the more likely the question has no
    answer. If answering all questions is best it is the largest value, if answering none is, 1 below the smallest.
    `scores_N` are those of the predicted answers, 0 for unanswerable questions, which score 1 if left unanswered.
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


def fit_no_answer(
    no_answer: NDArray[np.floating],
    scores: NDArray[np.floating],
    answerable: NDArray[np.bool_],
    groups: Sequence[str] | None = None,
) -> FittedDecision:
    """The no-answer threshold with the best mean score; `support` is the number of questions of the rarer kind.

    It is used only if it scores better than 0 and than leaving every question unanswered. `groups` are those of
    questions that belong together, the other arguments as in `_best_no_answer_threshold`.
    """

    def fit(items_N: NDArray[np.bool_]) -> float:
        return _best_no_answer_threshold(no_answer[items_N], scores[items_N], answerable[items_N])

    def outcome(threshold: float, items_N: NDArray[np.bool_]) -> float:
        return float(np.where(no_answer > threshold, ~answerable, scores)[items_N].sum())

    num = max(1, len(answerable))
    return _decision(
        "f1",
        fit,
        outcome,
        lambda total: total / num,
        lambda threshold: {"threshold": threshold},
        UNTUNED_NO_ANSWER,
        _folds(answerable, groups),
        min(int(answerable.sum()), int((~answerable).sum())),
        least=float((~answerable).sum()) / num,
    )
