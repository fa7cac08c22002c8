"""Answers of questions: gold spans as tokens of a window, and predicted spans from the scores of windows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from dice_ray.data.records import AnswerSpan, QuestionRecord
from dice_ray.metrics.decisions import Numbers
from dice_ray.tasks.base import Decoded, Row
from dice_ray.tasks.start_end import LOWEST_THRESHOLD

LOWEST = -1e9
"""The score of a window without any span."""


class TokenMark(NamedTuple):
    """A token that may be the start or the end of a span.

    Attributes:
        window: The row that it is in.
        token: Its place in the context of that window.
        character: The first one of the span, or the one after it.
        log_p: The log probability that it is the start or the end.
    """

    window: int
    token: int
    character: int
    is_end: bool
    log_p: float

    def is_above(self, numbers: Numbers) -> bool:
        """Whether its probability exceeds the threshold of a decision."""
        return self.log_p > math.log(numbers["end" if self.is_end else "start"])


@dataclass(frozen=True)
class Answer:
    """The prediction for a question, from all its windows.

    Attributes:
        best: The characters of the best span; empty only if the context is.
        no_answer: The log odds of no answer against the best span.
        marks: The likely starts and ends, if there may be several spans.
    """

    context: str
    best: Sequence[tuple[int, int]]
    no_answer: float
    marks: Sequence[TokenMark]

    def texts(self, marks: Iterable[TokenMark] = (), longest: int = 0) -> tuple[str, ...]:
        """The spans of these marks, without any the best one."""
        return tuple(self.context[begin:end] for begin, end in _likely_spans(marks, longest) or self.best)


def usable(record: QuestionRecord) -> tuple[AnswerSpan, ...] | None:
    """The gold spans to train on, in the order of the text: the first answer whose spans are all where the file says.

    Empty for an impossible question; `None` if no answer of the file can be located.
    """
    if record.impossible:
        return ()
    placed = [answer for answer in record.answers if all(span.start >= 0 for span in answer)]
    return tuple(sorted(placed[0], key=lambda span: span.start)) if placed else None


def label(record: QuestionRecord) -> str:
    """The kind of a question's gold answer."""
    if not record.answers:
        return "impossible" if record.impossible else "unlabelled"
    spans = usable(record)
    return "misplaced" if spans is None else "one span" if len(spans) == 1 else "several spans"


def token_characters(spans: Sequence[tuple[int, int] | None], context: str) -> tuple[int, NDArray[np.int64]]:
    """The place of a window's first context token, and `characters_T2`: the first character of each and the end.

    Spaces that some tokenizers include in a token are left out.
    """
    inside = [(place, span) for place, span in enumerate(spans) if span is not None]
    characters = []
    for _, (begin, end) in inside:
        while begin < end and context[begin].isspace():
            begin += 1
        while begin < end and context[end - 1].isspace():
            end -= 1
        characters.append((begin, end))
    return inside[0][0] if inside else 0, np.array(characters, dtype=np.int64).reshape(-1, 2)


def token_spans(
    spans: Sequence[AnswerSpan], characters_T2: NDArray[np.int64], first: int, after: int
) -> list[tuple[int, int, int]]:
    """The index, first and last token of each span that lies in a window as a whole.

    The window holds the characters from `first` up to but not including `after`. A span that begins or ends within a
    token is extended to the whole token.
    """
    held = []
    for number, span in enumerate(spans):
        begin, end = span.start, span.start + len(span.text)
        start = int(np.searchsorted(characters_T2[:, 1], begin, side="right"))
        stop = int(np.searchsorted(characters_T2[:, 0], end, side="left")) - 1
        if first <= begin and end <= after and start <= stop:
            held.append((number, start, stop))
    return held


def best_spans(start_BL: Tensor, end_BL: Tensor, longest: int) -> tuple[Tensor, Tensor, Tensor]:
    """`score_B`, `first_B` and `last_B` of the best span of each row, of at most `longest` tokens.

    The score of a span is the sum of its start's and its end's. The best end of each start is found by max pooling over
    the next `longest` positions, so memory stays linear in the length. Of equal spans the earliest is returned.
    """
    reach = min(longest, end_BL.shape[1])
    ahead_BL = F.pad(end_BL, (0, reach - 1), value=LOWEST)
    best_end_BL, last_BL = F.max_pool1d(ahead_BL[:, None], reach, stride=1, return_indices=True)
    score_B, first_B = (start_BL + best_end_BL[:, 0]).max(-1)
    return score_B, first_B, last_BL[:, 0].gather(1, first_B[:, None])[:, 0]


def _likely_spans(marks: Iterable[TokenMark], longest: int) -> list[tuple[int, int]]:
    """Each start with the nearest end at or after it, if that is before the next start and within `longest` tokens.

    Marks are in the order of windows and tokens, the start of a token before its end. A span is its first character and
    the one after its last.
    """
    spans = set()
    start: TokenMark | None = None
    for mark in marks:
        if not mark.is_end:
            start = mark
        elif start is not None:
            if mark.window == start.window and mark.token < start.token + longest:
                spans.add((start.character, mark.character))
            start = None
    return sorted(spans)


def answers_of(records: Sequence[QuestionRecord], rows: Sequence[Row], decoded: Decoded) -> list[Answer]:
    """The best span over all windows of each question, and what may start or end others.

    A decoded row is the score of its best span, that of no answer, the first and last tokens of the best span, and of
    each marked token its place and its log probabilities as a start and as an end, as the task decodes it.
    """
    scores, no_answer = [-math.inf] * len(records), [math.inf] * len(records)
    best: list[list[tuple[int, int]]] = [[] for _ in records]
    marks: list[list[TokenMark]] = [[] for _ in records]
    lowest_log_p = math.log(LOWEST_THRESHOLD)
    for window, (row, (score, none, first, last, *marked)) in enumerate(zip(rows, decoded, strict=True)):
        number, begins, ends = row["record"], row["begins"], row["ends"]
        no_answer[number] = min(no_answer[number], none)
        if not len(begins):
            continue
        if score > scores[number]:
            scores[number], best[number] = score, [(int(begins[int(first)]), int(ends[int(last)]))]
        for place, start, end in zip(marked[::3], marked[1::3], marked[2::3], strict=True):
            token = int(place)
            both = (
                TokenMark(window, token, int(begins[token]), False, start),
                TokenMark(window, token, int(ends[token]), True, end),
            )
            marks[number] += [mark for mark in both if mark.log_p > lowest_log_p]
    return [
        Answer(record.context, one, none - max(score, LOWEST), of_record)
        for record, one, of_record, score, none in zip(records, best, marks, scores, no_answer, strict=True)
    ]


def num_cut(records: Sequence[QuestionRecord], rows: Sequence[Row]) -> int:
    """The number of questions with a gold span that no window holds as a whole."""
    held: list[set[int]] = [set() for _ in records]
    for row in rows:
        held[row["record"]].update(map(int, row["held"]))
    return sum(len(numbers) < len(usable(record) or ()) for record, numbers in zip(records, held, strict=True))
