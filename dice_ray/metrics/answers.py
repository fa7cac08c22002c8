"""Answer scores: exact match and F1 of SQuAD, its no-answer threshold, and the multi-span scores of QuoRef."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from dice_ray.metrics.classification import NUM_FOLDS, Counts, ItemCounts, folds, ratio
from dice_ray.unspaced import UNSPACED, words_of

UNTUNED_NO_ANSWER: Final = 0.0
"""The no-answer threshold without tuning: no answer where it is more probable than the best one."""
ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True)
class AnswerScore:
    """The scores of one predicted answer, between 0 and 1.

    Attributes:
        answerable: Whether the question has an answer.
        counts: Common, surplus (fp) and missing (fn) words, against the gold answer with the best F1.
    """

    id: str
    exact: float
    f1: float
    answerable: bool
    counts: Counts = field(default_factory=Counts)

    @property
    def item(self) -> ItemCounts:
        return ItemCounts(self.id, self.counts.tp, self.counts.fp, self.counts.fn)


def normalised(text: str) -> str:
    """The text in lower case, without ASCII punctuation, English articles and extra spaces.

    >>> normalised("The  U.S., a state")
    'us state'
    """
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def squad_score(id: str, prediction: str, gold: Sequence[str], version: Literal["v1", "v2"] = "v2") -> AnswerScore:
    """The best score over the gold answers; without any, the question has no answer and an empty prediction is correct.

    In v2, two answers that are both empty after normalisation have F1 1, and gold answers that are empty after
    normalisation are ignored. In v1, an answer that is empty after normalisation has F1 0.
    """
    words = _words_as_in(gold)
    candidates = [answer for answer in gold if version == "v1" or normalised(answer)] or [""]
    exact = max(float(normalised(prediction) == normalised(answer)) for answer in candidates)
    predicted = words(normalised(prediction))
    scored = [_token_f1(predicted, words(normalised(answer)), version) for answer in candidates]
    f1, counts = max(scored, key=itemgetter(0))
    return AnswerScore(id, exact, f1, bool(gold), counts)


def _words_as_in(gold: Sequence[str]) -> Callable[[str], list[str]]:
    """How to split a text: by spaces as the official evaluation does, whose F1 is exact match in scripts without them.

    So characters are counted where every gold answer has such a script. English questions have another spelling too, as
    "Yuán Cháo" and "元朝" in SQuAD 2.0, and keep their official score.
    """
    return words_of if gold and all(UNSPACED.search(answer) for answer in gold) else str.split


def _token_f1(predicted: Sequence[str], wanted: Sequence[str], version: Literal["v1", "v2"]) -> tuple[float, Counts]:
    counts = overlap(predicted, wanted)
    if version == "v2" and not (predicted and wanted):
        return float(predicted == wanted), counts
    return counts.f1, counts


def overlap(predicted: Sequence[str], wanted: Sequence[str]) -> Counts:
    """The counts of words, compared as multisets."""
    common = (Counter(predicted) & Counter(wanted)).total()
    return Counts(common, len(predicted) - common, len(wanted) - common)


def answer_scores(scores: Sequence[AnswerScore]) -> dict[str, float]:
    """The means over all questions, and over those with and without an answer if both occur; 0 without questions."""
    answerable = [score for score in scores if score.answerable]
    unanswerable = [score for score in scores if not score.answerable]
    parts = {"": scores}
    if answerable and unanswerable:
        parts |= {"has_answer_": answerable, "no_answer_": unanswerable}
    return {
        f"{part}{name}": ratio(sum(getattr(score, name) for score in members), len(members))
        for part, members in parts.items()
        for name in ("exact", "f1")
    }


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
        folds_N, fitted_N = folds(answerable), np.zeros(len(no_answer))
        for fold in range(NUM_FOLDS):
            others = folds_N != fold
            fitted_N[~others] = best_no_answer_threshold(no_answer[others], scores[others], answerable[others])
        untuned_N = np.full(len(no_answer), UNTUNED_NO_ANSWER)
        is_used = total(fitted_N) > max(total(untuned_N), float((~answerable).sum()))
    used = tuned if is_used else UNTUNED_NO_ANSWER
    return {"threshold": tuned, "threshold_support": float(support), "threshold_used": used}


def spans_score(id: str, prediction: Sequence[str], gold: Sequence[str]) -> AnswerScore:
    """The score of an answer that consists of several spans, as in the official evaluation of QuoRef (and DROP).

    Predicted and gold spans, as sets of words, are matched one to one such that the sum of F1 is largest; the sum is
    divided by the larger number of spans. Two spans can only match if the gold span has no numbers or they share one.
    The F1 of a question is rounded to two digits.
    """
    from scipy.optimize import linear_sum_assignment

    predicted, wanted = [_drop_normalised(span) for span in prediction], [_drop_normalised(span) for span in gold]
    exact = float(set(predicted) == set(wanted) and len(predicted) == len(wanted))
    words = _words_as_in(gold)
    f1_GP = np.array([[_bag_f1(set(words(span)), set(words(goal))) for span in predicted] for goal in wanted])
    total = f1_GP[linear_sum_assignment(-f1_GP)].sum() if f1_GP.size else float(len(predicted) == len(wanted))
    f1 = round(float(total) / max(len(predicted), len(wanted), 1), 2)
    return AnswerScore(id, exact, f1, bool(gold), overlap(words(" ".join(predicted)), words(" ".join(wanted))))


def _bag_f1(predicted: set[str], wanted: set[str]) -> float:
    numbers = {word for word in wanted if _is_number(word)}
    if numbers and not numbers & predicted:
        return 0.0
    precision = len(predicted & wanted) / len(predicted) if predicted else 1.0
    recall = len(predicted & wanted) / len(wanted) if wanted else 1.0
    return ratio(2 * precision * recall, precision + recall)


def _drop_normalised(text: str) -> str:
    """Like `normalised`, but hyphens separate words, and numbers are written as floats."""
    words = []
    for word in re.split(" |-", text.lower()):
        plain = str(float(word)) if _is_number(word) else word.translate(PUNCTUATION)
        plain = str(float(plain)) if _is_number(plain) else plain
        words += ARTICLES.sub(" ", plain).split()
    return " ".join(words)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
