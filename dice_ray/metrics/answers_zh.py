"""Answers to Chinese questions: exact match and F1 of CMRC 2018, by characters, and by words in other scripts.

F1 rests on the longest run that prediction and answer have in common, not on a bag of words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import itemgetter

from dice_ray.metrics.answers import AnswerScore
from dice_ray.metrics.classification import Counts

MARKS = frozenset(
    "-:_*^/\\~`+="
    "\uff0c\u3002\uff1a\uff1f\uff01\u201c\u201d\uff1b\u2019\u300a"
    "\u300b\u00b7\u3001\u300c\u300d\uff08\uff09\uff0d\uff5e\u300e\u300f"
)
"""What is dropped before prediction and answer are compared, the Chinese ones by their code points."""
CHINESE = re.compile("([\u4e00-\u9fa5])")
FINAL_STOP = r"(?<=[^.])\.(?=[\])}>\"'\u00bb\u201d\u2019 ]*$)"
APART = re.compile(
    rf"\.{{2,}}|[?!;@#$%&()\[\]{{}}<>\u00ab\u00bb\u2018\u2019\u201c-\u201e\u2013\u2014]|,(?!\d)|{FINAL_STOP}"
)
ENGLISH_ENDINGS = re.compile(r"([^' ])('s|'m|'d|'ll|'re|'ve|n't|'(?= |$))")


def cmrc_score(id: str, prediction: str, gold: Sequence[str]) -> AnswerScore:
    """The best of all gold answers, as the evaluation of CMRC 2018 has it."""
    exact = max(float(_bare(prediction) == _bare(answer)) for answer in gold)
    counts = [_common(segments(prediction), segments(answer)) for answer in gold]
    f1, best = max(((count.f1, count) for count in counts), key=itemgetter(0))
    return AnswerScore(id, exact, f1, bool(gold), best)


def segments(text: str) -> list[str]:
    """The Chinese characters of a text, and its other words as the Penn Treebank parts them; no marks.

    >>> segments("《WAR 3》于2002年")
    ['war', '3', '于', '2002', '年']
    """
    parts = CHINESE.split(_bare(text))
    return [word for place, part in enumerate(parts) for word in ([part] if place % 2 else _words(part))]


def _bare(text: str) -> str:
    return "".join(character for character in text.lower().strip() if character not in MARKS)


def _words(text: str) -> list[str]:
    text = re.sub('([ (\\[{<])"', r"\1 `` ", re.sub('^"', " `` ", text)).replace('"', " '' ")
    return ENGLISH_ENDINGS.sub(r"\1 \2 ", APART.sub(r" \g<0> ", text)).split()


def _common(found: Sequence[str], wanted: Sequence[str]) -> Counts:
    """The longest run in common, what is too much and what lacks."""
    longest, before = 0, [0] * (len(wanted) + 1)
    for segment in found:
        here = [0, *(before[place] + 1 if segment == other else 0 for place, other in enumerate(wanted))]
        longest, before = max(longest, *here), here
    return Counts(longest, len(found) - longest, len(wanted) - longest)
