"""Answers as tokens: where the gold spans stand in a window, and which spans the windows of a question say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from dice_ray.data.records import AnswerSpan, QuestionRecord
from dice_ray.tasks.base import Row

LOWEST = -1e9
"""The score of a window that holds no span at all."""


@dataclass(frozen=True)
class Answer:
    """What the windows of a question say together.

    Attributes:
        spans: Pieces of the context: the best, or all likely ones; none only of an empty context.
        no_answer: How much rather the question has none, in log odds.
    """

    spans: tuple[str, ...]
    no_answer: float


def usable(record: QuestionRecord) -> tuple[AnswerSpan, ...] | None:
    """The spans that are trained, in the order of the text: of the first answer that stands at its place as a whole.

    None of an impossible question; `None` where the file says nothing that can be trusted.
    """
    if record.impossible:
        return ()
    placed = [answer for answer in record.answers if all(span.start >= 0 for span in answer)]
    return tuple(sorted(placed[0], key=lambda span: span.start)) if placed else None


def label(record: QuestionRecord) -> str:
    """What the file of a question says of its answer."""
    if not record.answers:
        return "impossible" if record.impossible else "unlabelled"
    spans = usable(record)
    return "misplaced" if spans is None else "one span" if len(spans) == 1 else "several spans"


def token_characters(spans: Sequence[tuple[int, int] | None], context: str) -> tuple[int, NDArray[np.int64]]:
    """The place of a window's first token of the context, and `characters_T2`: the first, and the one after the last.

    Spaces that a tokenizer counts to a token are left out.
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
    """The number, and the first and the last token, of each span that lies whole in a window.

    The window holds the characters from `first` to before `after`. A span that begins or ends within a token takes the
    whole token in.
    """
    found = []
    for number, span in enumerate(spans):
        begin, end = span.start, span.start + len(span.text)
        start = int(np.searchsorted(characters_T2[:, 1], begin, side="right"))
        stop = int(np.searchsorted(characters_T2[:, 0], end, side="left")) - 1
        if first <= begin and end <= after and start <= stop:
            found.append((number, start, stop))
    return found


def best_spans(start_BL: Tensor, end_BL: Tensor, longest: int) -> tuple[Tensor, Tensor, Tensor]:
    """`score_B`, `first_B` and `last_B` of the best span of each row, of at most `longest` tokens.

    The score of a span is the sum of those of its ends. The best end for each start is a maximum over the next
    `longest` positions, so nothing larger than the rows themselves is held. Of equals the earliest is taken.
    """
    reach = min(longest, end_BL.shape[1])
    ahead_BL = F.pad(end_BL, (0, reach - 1), value=LOWEST)
    best_end_BL, last_BL = F.max_pool1d(ahead_BL[:, None], reach, stride=1, return_indices=True)
    score_B, first_B = (start_BL + best_end_BL[:, 0]).max(-1)
    return score_B, first_B, last_BL[:, 0].gather(1, first_B[:, None])[:, 0]


def likely_spans(is_start_L: Tensor, is_end_L: Tensor, longest: int) -> list[tuple[int, int]]:
    """Each start with the nearest end from it on, if that comes before the next start and within `longest` tokens."""
    starts, ends = (flags.nonzero()[:, 0] for flags in (is_start_L, is_end_L))
    nearest = torch.searchsorted(ends, starts)
    limits = torch.cat([starts[1:], starts.new_tensor([len(is_start_L)])]).minimum(starts + longest)
    kept = nearest < len(ends)
    kept[kept.clone()] = ends[nearest[kept]] < limits[kept]
    return list(zip(starts[kept].tolist(), ends[nearest[kept]].tolist(), strict=True))


def answers_of(records: Sequence[QuestionRecord], rows: Sequence[Row], decoded: Sequence[list[float]]) -> list[Answer]:
    """The best span over all windows of each question, or all likely ones, as pieces of its context.

    A decoded row is the score of its best span, that of no answer, the first and the last token of the best span, and
    those of each likely one, as `ExtractiveQA.decode` has it.
    """
    scores, no_answer = [-math.inf] * len(records), [math.inf] * len(records)
    best: list[list[tuple[int, int]]] = [[] for _ in records]
    likely: list[set[tuple[int, int]]] = [set() for _ in records]
    for row, (score, none, *places) in zip(rows, decoded, strict=True):
        number, begins, ends = row["record"], row["begins"], row["ends"]
        no_answer[number] = min(no_answer[number], none)
        if not len(begins):
            continue
        pairs = zip(map(int, places[::2]), map(int, places[1::2]), strict=True)
        span, *others = ((int(begins[first]), int(ends[last])) for first, last in pairs)
        likely[number].update(others)
        if score > scores[number]:
            scores[number], best[number] = score, [span]
    return [
        Answer(tuple(record.context[begin:end] for begin, end in sorted(several) or one), none - max(score, LOWEST))
        for record, one, several, score, none in zip(records, best, likely, scores, no_answer, strict=True)
    ]


def num_cut(records: Sequence[QuestionRecord], rows: Sequence[Row]) -> int:
    """How many questions have a span that is wanted and lies whole in no window."""
    held: list[set[int]] = [set() for _ in records]
    for row in rows:
        held[row["record"]].update(map(int, row["held"]))
    return sum(len(found) < len(usable(record) or ()) for record, found in zip(records, held, strict=True))
