"""Answer scores: exact match and F1 of SQuAD, the multi-span scores of QuoRef, and those of CMRC 2018 in Chinese."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Literal

import numpy as np

from dice_ray.metrics.classification import Counts, ItemCounts, ratio
from dice_ray.unspaced import UNSPACED, words_of

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


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
        return self.counts.of_record(self.id)


def normalised(text: str) -> str:
    """The text in lower case, without ASCII punctuation, English articles and extra spaces.

    >>> normalised("The  U.S., a state")
    'us state'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def squad_score(id: str, prediction: str, gold: Sequence[str], version: Literal["v1", "v2"] = "v2") -> AnswerScore:
    """The best score over the gold answers; without any, the question has no answer and an empty prediction is correct.

    In v2, two answers that are both empty after normalisation have F1 1, and gold answers that are empty after
    normalisation are ignored. In v1, an answer that is empty after normalisation has F1 0.
    """
    words, text = _words_as_in(gold), normalised(prediction)
    answers = [answer for answer in map(normalised, gold) if version == "v1" or answer] or [""]
    predicted = words(text)
    f1, counts = max((_token_f1(predicted, words(answer), version) for answer in answers), key=itemgetter(0))
    return AnswerScore(id, float(text in answers), f1, bool(gold), counts)


def _words_as_in(gold: Sequence[str]) -> Callable[[str], list[str]]:
    """How to split a text: by spaces as the official evaluation does, whose F1 is exact match in scripts without them.

    So characters are counted where every gold answer has such a script. English questions have another spelling too, as
    "Yuán Cháo" and "元朝" in SQuAD 2.0, and keep their official score.
    """
    return words_of if gold and all(UNSPACED.search(answer) for answer in gold) else str.split


def _token_f1(predicted: Sequence[str], wanted: Sequence[str], version: Literal["v1", "v2"]) -> tuple[float, Counts]:
    counts = _overlap(predicted, wanted)
    if version == "v2" and not (predicted and wanted):
        return float(predicted == wanted), counts
    return counts.f1, counts


def _overlap(predicted: Sequence[str], wanted: Sequence[str]) -> Counts:
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
    return AnswerScore(id, exact, f1, bool(gold), _overlap(words(" ".join(predicted)), words(" ".join(wanted))))


def _bag_f1(predicted: set[str], wanted: set[str]) -> float:
    numbers = {word for word in wanted if _is_number(word)}
    if numbers and not numbers & predicted:
        return 0.0
    precision = len(predicted & wanted) / len(predicted) if predicted else 1.0
    recall = len(predicted & wanted) / len(wanted) if wanted else 1.0
    return ratio(2 * precision * recall, precision + recall)


@lru_cache(maxsize=2**14)  # to choose thresholds, many answers are compared with one gold answer
def _drop_normalised(text: str) -> str:
    """Like `normalised`, but hyphens separate words, and numbers are written as floats."""
    words = []
    for word in re.split(" |-", text.lower()):
        plain = str(float(word)) if _is_number(word) else word.translate(_PUNCTUATION)
        plain = str(float(plain)) if _is_number(plain) else plain
        words += _ARTICLES.sub(" ", plain).split()
    return " ".join(words)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


_MARKS = frozenset(
    "-:_*^/\\~`+="
    "\uff0c\u3002\uff1a\uff1f\uff01\u201c\u201d\uff1b\u2019\u300a"
    "\u300b\u00b7\u3001\u300c\u300d\uff08\uff09\uff0d\uff5e\u300e\u300f"
)
"""Punctuation that is removed before comparing prediction and answer; Chinese marks are given by code point."""
_CHARACTERS = re.compile(f"({UNSPACED.pattern})")
_FINAL_STOP = r"(?<=[^.])\.(?=[\])}>\"'\u00bb\u201d\u2019 ]*$)"
_SEPARATED = re.compile(
    rf"\.{{2,}}|[?!;@#$%&()\[\]{{}}<>\u00ab\u00bb\u2018\u2019\u201c-\u201e\u2013\u2014]|,(?!\d)|{_FINAL_STOP}"
)
_ENGLISH_ENDINGS = re.compile(r"([^' ])('s|'m|'d|'ll|'re|'ve|n't|'(?= |$))")


def cmrc_score(id: str, prediction: str, gold: Sequence[str]) -> AnswerScore:
    """The best score over the gold answers, as in the official evaluation of CMRC 2018."""
    exact, predicted = float(_bare(prediction) in map(_bare, gold)), segments(prediction)
    best = max((_common(predicted, segments(answer)) for answer in gold), key=attrgetter("f1"))
    return AnswerScore(id, exact, best.f1, bool(gold), best)


def segments(text: str) -> list[str]:
    """The Chinese characters of a text and its other words, tokenised as in the Penn Treebank; without punctuation.

    >>> segments("《WAR 3》于2002年")
    ['war', '3', '于', '2002', '年']
    """
    parts = _CHARACTERS.split(_bare(text))
    return [word for index, part in enumerate(parts) for word in ([part] if index % 2 else _penn_words(part))]


def _bare(text: str) -> str:
    return "".join(character for character in text.lower().strip() if character not in _MARKS)


def _penn_words(text: str) -> list[str]:
    text = re.sub('([ (\\[{<])"', r"\1 `` ", re.sub('^"', " `` ", text)).replace('"', " '' ")
    return _ENGLISH_ENDINGS.sub(r"\1 \2 ", _SEPARATED.sub(r" \g<0> ", text)).split()


def _common(predicted: Sequence[str], gold: Sequence[str]) -> Counts:
    """The counts of segments inside and outside the longest common substring."""
    # The default heuristic for frequent elements does not find the longest one.
    longest = SequenceMatcher(None, predicted, gold, autojunk=False).find_longest_match().size
    return Counts(longest, len(predicted) - longest, len(gold) - longest)
