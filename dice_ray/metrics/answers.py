"""Answers to questions: exact match and F1 of SQuAD, its no-answer threshold, and the several spans of QuoRef."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dice_ray.metrics.classification import Counts, ItemCounts, ratio

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True)
class AnswerScore:
    """What one predicted answer is worth, between 0 and 1.

    Attributes:
        answerable: Whether the question has an answer.
        counts: The words in common with the gold answer of the best F1, those too many, and those that lack.
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
    """Lower case, without ASCII punctuation, English articles and superfluous spaces.

    >>> normalised("The  U.S., a state")
    'us state'
    """
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def squad_score(id: str, prediction: str, gold: Sequence[str], version: Literal["v1", "v2"] = "v2") -> AnswerScore:
    """The best of all gold answers; no gold answers: the question has none, and the empty answer is right.

    In v2 an answer that is empty once normalised has F1 1 with another such and 0 with any other; in v1 always 0. In v2
    gold answers that are empty once normalised are left out.
    """
    kept = [answer for answer in gold if version == "v1" or normalised(answer)] or [""]
    exact = max(float(normalised(prediction) == normalised(answer)) for answer in kept)
    f1, counts = max((_token_f1(prediction, answer, version) for answer in kept), key=itemgetter(0))
    return AnswerScore(id, exact, f1, bool(gold), counts)


def _token_f1(prediction: str, answer: str, version: Literal["v1", "v2"]) -> tuple[float, Counts]:
    found, wanted = normalised(prediction).split(), normalised(answer).split()
    counts = overlap(found, wanted)
    if version == "v2" and not (found and wanted):
        return float(found == wanted), counts
    return counts.f1, counts


def overlap(found: Sequence[str], wanted: Sequence[str]) -> Counts:
    """The words in common, each as often as both have it, those too many, and those that lack."""
    common = (Counter(found) & Counter(wanted)).total()
    return Counts(common, len(found) - common, len(wanted) - common)


def answer_scores(scores: Sequence[AnswerScore]) -> dict[str, float]:
    """The means over all questions, and over those with and those without an answer where both occur."""
    answerable = [score for score in scores if score.answerable]
    others = [score for score in scores if not score.answerable]
    parts = {"": scores} | ({"has_answer_": answerable, "no_answer_": others} if answerable and others else {})
    return {
        f"{part}{name}": ratio(sum(getattr(score, name) for score in chosen), len(chosen))
        for part, chosen in parts.items()
        for name in ("exact", "f1")
    }


def best_no_answer_threshold(
    no_answer: NDArray[np.floating], scores: NDArray[np.floating], answerable: NDArray[np.bool_]
) -> float:
    """The threshold above which a question is left unanswered, with the best mean score; of equal ones the lowest.

    It lies halfway between two neighbouring values of `no_answer`; where all questions should be answered, it is the
    largest of them, and where none should, 1 below the smallest.

    Args:
        no_answer: `no_answer_N`, larger where a question rather has no answer.
        scores: `scores_N`, what the answer found is worth if it is given: 0 where the question has none.
        answerable: `answerable_N`, whether the question has an answer; if not, leaving it unanswered is worth 1.
    """
    values, places = np.unique(no_answer, return_inverse=True)
    gains = np.bincount(places, weights=scores - ~answerable)
    worth = np.concatenate([[0.0], gains.cumsum()])
    best = int(np.flatnonzero(worth >= worth.max() - 1e-9)[0])
    if best == 0:
        return float(values[0] - 1)
    below, above = values[best - 1], values[min(best, len(values) - 1)]
    middle = below + (above - below) / 2
    return float(middle if middle < above else below)


def spans_score(id: str, prediction: Sequence[str], gold: Sequence[str]) -> AnswerScore:
    """The score of several spans that are wanted together, as the evaluation of QuoRef (and DROP) has it.

    Spans are compared as sets of words, one to one so that the sum of F1 is largest; the sum is divided by the larger
    number of spans. A span with numbers needs one of them. The F1 of a question is rounded to two digits.
    """
    from scipy.optimize import linear_sum_assignment

    found, wanted = [_drop_normalised(span) for span in prediction], [_drop_normalised(span) for span in gold]
    exact = float(set(found) == set(wanted) and len(found) == len(wanted))
    f1_GP = np.array([[_bag_f1(set(span.split()), set(goal.split())) for span in found] for goal in wanted])
    total = f1_GP[linear_sum_assignment(-f1_GP)].sum() if f1_GP.size else float(len(found) == len(wanted))
    f1 = round(float(total) / max(len(found), len(wanted), 1), 2)
    return AnswerScore(id, exact, f1, bool(gold), overlap(" ".join(found).split(), " ".join(wanted).split()))


def _bag_f1(found: set[str], wanted: set[str]) -> float:
    numbers = {word for word in wanted if _is_number(word)}
    if numbers and not numbers & found:
        return 0.0
    precision = len(found & wanted) / len(found) if found else 1.0
    recall = len(found & wanted) / len(wanted) if wanted else 1.0
    return ratio(2 * precision * recall, precision + recall)


def _drop_normalised(text: str) -> str:
    """As `normalised`, but a hyphen parts words, and numbers are compared by value."""
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
