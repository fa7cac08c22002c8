"""Answer scores for Chinese: exact match and F1 of CMRC 2018, over Chinese characters and words of other scripts.

Kana and characters of other scripts without spaces count as Chinese ones do (the official evaluation makes one word of
each sequence of kana). F1 is based on the longest common substring of prediction and answer, not on a bag of words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from operator import attrgetter

from dice_ray.metrics.answers import AnswerScore
from dice_ray.metrics.classification import Counts
from dice_ray.unspaced import UNSPACED

MARKS = frozenset(
    "-:_*^/\\~`+="
    "\uff0c\u3002\uff1a\uff1f\uff01\u201c\u201d\uff1b\u2019\u300a"
    "\u300b\u00b7\u3001\u300c\u300d\uff08\uff09\uff0d\uff5e\u300e\u300f"
)
"""Punctuation that is removed before comparing prediction and answer; Chinese marks are given by code point."""
CHARACTERS = re.compile(f"({UNSPACED.pattern})")
FINAL_STOP = r"(?<=[^.])\.(?=[\])}>\"'\u00bb\u201d\u2019 ]*$)"
SEPARATED = re.compile(
    rf"\.{{2,}}|[?!;@#$%&()\[\]{{}}<>\u00ab\u00bb\u2018\u2019\u201c-\u201e\u2013\u2014]|,(?!\d)|{FINAL_STOP}"
)
ENGLISH_ENDINGS = re.compile(r"([^' ])('s|'m|'d|'ll|'re|'ve|n't|'(?= |$))")


def cmrc_score(id: str, prediction: str, gold: Sequence[str]) -> AnswerScore:
    """The best score over the gold answers, as in the official evaluation of CMRC 2018."""
    exact = max(float(_bare(prediction) == _bare(answer)) for answer in gold)
    best = max((_common(segments(prediction), segments(answer)) for answer in gold), key=attrgetter("f1"))
    return AnswerScore(id, exact, best.f1, bool(gold), best)


def segments(text: str) -> list[str]:
    """The Chinese characters of a text and its other words, tokenised as in the Penn Treebank; without punctuation.

    >>> segments("《WAR 3》于2002年")
    ['war', '3', '于', '2002', '年']
    """
    parts = CHARACTERS.split(_bare(text))
    return [word for index, part in enumerate(parts) for word in ([part] if index % 2 else _words(part))]


def _bare(text: str) -> str:
    return "".join(character for character in text.lower().strip() if character not in MARKS)


def _words(text: str) -> list[str]:
    text = re.sub('([ (\\[{<])"', r"\1 `` ", re.sub('^"', " `` ", text)).replace('"', " '' ")
    return ENGLISH_ENDINGS.sub(r"\1 \2 ", SEPARATED.sub(r" \g<0> ", text)).split()


def _common(predicted: Sequence[str], gold: Sequence[str]) -> Counts:
    """The counts of segments inside and outside the longest common substring."""
    # The default heuristic for frequent elements does not find the longest one.
    longest = SequenceMatcher(None, predicted, gold, autojunk=False).find_longest_match().size
    return Counts(longest, len(predicted) - longest, len(gold) - longest)
