"""Spans of tokens: the best, likely and gold ones, compared with an exhaustive search."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from dice_ray.data.records import AnswerSpan, QuestionRecord
from dice_ray.tasks.answer_spans import TokenMark, _likely_spans, best_spans, token_characters, token_spans, usable

SCORES = st.integers(1, 12).flatmap(
    lambda size: st.tuples(*[st.lists(st.integers(-9, 9).map(float), min_size=size, max_size=size)] * 2)
)


@given(rows=st.lists(SCORES, min_size=1, max_size=4), longest=st.integers(1, 15))
def test_no_span_of_the_allowed_length_beats_the_best(
    rows: list[tuple[list[float], list[float]]], longest: int
) -> None:
    length = max(len(start) for start, _ in rows)
    start_BL, end_BL = (
        torch.tensor([row[side] + [-1e9] * (length - len(row[side])) for row in rows], dtype=torch.float64)
        for side in (0, 1)
    )
    for (start, end), score, first, last in zip(rows, *best_spans(start_BL, end_BL, longest), strict=True):
        every = [start[i] + end[j] for i in range(len(start)) for j in range(i, min(i + longest, len(end)))]
        assert score == max(every) == start[first] + end[last]
        assert first <= last < first + longest


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=15), st.integers(1, 6))
def test_a_likely_span_ends_at_the_nearest_end(flags: list[tuple[bool, bool]], longest: int) -> None:
    expected = []
    for first in [place for place, (is_start, _) in enumerate(flags) if is_start]:
        for last in range(first, min(first + longest, len(flags))):
            if last > first and flags[last][0]:
                break
            if flags[last][1]:
                expected.append((first, last))
                break
    marks = [
        TokenMark(0, token, token, is_end, 0.0)
        for token, is_either in enumerate(flags)
        for is_end, is_marked in zip((False, True), is_either, strict=True)
        if is_marked
    ]
    assert _likely_spans(marks, longest) == expected


def test_the_first_answer_that_is_located_is_used() -> None:
    def question(*answers: tuple[AnswerSpan, ...], impossible: bool = False) -> QuestionRecord:
        return QuestionRecord("1", "?", "a b c", answers, impossible, "1")

    a, b, lost = AnswerSpan("a", 0), AnswerSpan("b", 2), AnswerSpan("b", -1)
    assert usable(question((lost,), (b,), (a,))) == (b,)
    assert usable(question((b, a))) == (a, b)
    assert usable(question((a, lost))) is None
    assert usable(question(impossible=True)) == ()
    assert usable(question()) is None


def test_tokens_cover_characters_without_spaces() -> None:
    first, characters = token_characters([None, (0, 2), (2, 5), (5, 9), None], "ab c def ")
    assert first == 1
    assert characters.tolist() == [[0, 2], [3, 4], [5, 8]]
    assert token_characters([None], "")[1].shape == (0, 2)


def test_a_span_takes_in_the_tokens_it_begins_and_ends_in() -> None:
    characters_T2 = np.array([[4, 8], [8, 9], [10, 14]])  # a window after other tokens
    spans = [
        AnswerSpan("", 0),
        AnswerSpan("xxx", 5),
        AnswerSpan("xxxxxx", 6),
        AnswerSpan("xx", 3),
        AnswerSpan("xx", 12),
        AnswerSpan("xxx", 13),
    ]
    assert token_spans(spans, characters_T2, 4, 14) == [(1, 0, 0), (2, 0, 2), (4, 2, 2)]
    assert token_spans(spans, characters_T2, 0, 16) == [(1, 0, 0), (2, 0, 2), (3, 0, 0), (4, 2, 2), (5, 2, 2)]
    assert token_spans([AnswerSpan("x", 9)], characters_T2, 4, 14) == []  # only a space, which no token covers
