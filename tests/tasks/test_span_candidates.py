"""Candidates: every span that some window holds is decided once, where it has the most context."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from dice_ray.models.encoder import ModelConfig, load_tokenizer
from dice_ray.tasks.rows import decided, windows
from dice_ray.tasks.span_candidates import beside, candidates, without_overlaps

TOKENIZER = load_tokenizer(ModelConfig(), ["a bc def"])
WORDS = st.lists(st.text("abcdef", min_size=1, max_size=12), min_size=1, max_size=30)


@given(words=WORDS, stride=st.integers(0, 8), max_span=st.integers(1, 6))
def test_every_span_in_a_window_is_decided_once_where_it_has_the_most_context(
    words: list[str], stride: int, max_span: int
) -> None:
    (rows,) = windows(TOKENIZER, [words], max_length=16, stride=stride)
    pieces = [len(TOKENIZER.tokenize(word)) for word in words]
    firsts = [sum(pieces[:number]) for number in range(len(words))]
    bounds = []  # the tokens of the text that a window holds
    for number, row in enumerate(rows):
        begin = number * (14 - stride)
        bounds.append((begin, begin + len(row.row["input_ids"]) - 2))

    expected = {}
    for first in range(len(words)):
        for last in range(first, min(first + max_span, len(words))):
            rooms = [
                min(
                    math.inf if number == 0 else firsts[first] - begin,
                    math.inf if number == len(rows) - 1 else end - 1 - firsts[last],
                )
                if begin <= firsts[first] and firsts[last] < end
                else -1
                for number, (begin, end) in enumerate(bounds)
            ]
            if max(rooms) >= 0:
                expected[first, last] = rooms.index(max(rooms))

    found = candidates([row.words for row in rows], stride, max_span)
    owners = Counter(
        (of_window.words[word], of_window.words[word + further], number)
        for number, of_window in enumerate(found)
        for word in range(len(of_window.words))
        for further in range(of_window.above[word], of_window.upto[word])
    )
    assert owners == Counter((*span, number) for span, number in expected.items())


@given(words=WORDS, stride=st.integers(0, 8))
def test_a_word_is_decided_where_its_own_span_is(words: list[str], stride: int) -> None:
    (rows_of_text,) = windows(TOKENIZER, [words], max_length=16, stride=stride)
    of_windows = [row.words for row in rows_of_text]
    for of_window, items in zip(candidates(of_windows, stride, max_span=3), decided(of_windows), strict=True):
        rows = zip(of_window.words, of_window.places, of_window.above, of_window.upto, strict=True)
        assert {word: place for word, place, above, upto in rows if above == 0 < upto} == items


def test_dropped_words_are_no_part_of_a_span() -> None:
    ((words, places, above, upto),) = candidates([[None, 0, 0, 2, 3, None]], stride=0, max_span=2)
    assert (words, places, above, upto) == ([0, 2, 3], [1, 3, 4], [0, 0, 0], [2, 2, 1])
    assert candidates([[None, None]], stride=0, max_span=2) == [([], [], [], [])]


def test_spans_beside_a_gold_one_share_its_begin_or_its_end() -> None:
    above, upto = [0, 0, 1, 0], [3, 3, 2, 1]
    every = {(word, further) for word in range(4) for further in range(above[word], upto[word])}
    found = beside(above, upto, starts=[1], ends=[2, 3])
    assert found == {(word, further) for word, further in every if word == 1 or word + further in (2, 3)}
    assert beside(above, upto, [], []) == set()


def test_the_most_probable_of_overlapping_spans_is_kept_in_any_order() -> None:
    spans = {("A", 0, 2): 0.7, ("B", 1, 4): 0.8, ("A", 3, 5): 0.9, ("C", 0, 1): 0.7, ("B", 0, 1): 0.7}
    expected = {("A", 3, 5), ("B", 0, 1)}
    assert without_overlaps(spans) == without_overlaps(dict(reversed(spans.items()))) == expected
