"""Candidate spans: each one is assigned to a window of its text; and overlaps of predicted spans are resolved.

The candidates depend only on the words and the longest length, not on predictions: their number is known before the
forward pass, as exact losses over several workers need it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dice_ray.metrics.spans import Span


class _Candidates(NamedTuple):
    """The words whose first piece is in a window, and the spans of them that the window decides.

    From word `words[k]` these are the spans of more than `above[k]` and at most `upto[k]` words, not counting words
    that the tokenizer drops. A word is decided in the window that decides its span of one word.
    """

    words: list[int]
    places: list[int]
    above: list[int]
    upto: list[int]


def candidates(windows_of_text: Sequence[Sequence[int | None]], stride: int, max_span: int) -> list[_Candidates]:
    """The spans of up to `max_span` words that each window of a text decides.

    A window holds a span if it holds the first pieces of its first and last words. Of several such windows the one that
    gives the span the most context decides it, by the same rule as `rows.decided` for words; of equal ones the first.
    A span that no window holds is no candidate.

    Args:
        windows_of_text: For each window, the word of each of its tokens; `None` outside of the text.
        stride: The overlap of two windows, in tokens.
        max_span: The longest span, in words.

    >>> candidates([[None, 0, 1, 1, None]], stride=0, max_span=3)
    [_Candidates(words=[0, 1], places=[1, 2], above=[0, 0], upto=[2, 1])]
    """
    insides = [[place for place, word in enumerate(words) if word is not None] for words in windows_of_text]
    pieces = []
    before = None
    for words, inside in zip(windows_of_text, insides, strict=True):
        pieces.append(_first_pieces(words, before))
        # The next window begins with the last `stride` tokens of this one.
        before = words[inside[-stride - 1]] if len(inside) > stride else None
    if len(pieces) == 1:
        ((numbers, places),) = pieces
        upto = [min(max_span, len(numbers) - place) for place in range(len(numbers))]
        return [_Candidates(numbers, places, [0] * len(numbers), upto)]
    return _assigned(pieces, insides, max_span)


def _first_pieces(words: Sequence[int | None], before: int | None) -> tuple[list[int], list[int]]:
    """The words that begin in a window, and their places; `before` is the word of the token before the window."""
    numbers, places = [], []
    for place, word in enumerate(words):
        if word is None:
            continue
        if word != before:
            numbers.append(word)
            places.append(place)
        before = word
    return numbers, places


def _assigned(
    pieces: Sequence[tuple[list[int], list[int]]], insides: Sequence[Sequence[int]], max_span: int
) -> list[_Candidates]:
    """Assign each span to the window in which its side with fewer tokens has the most; text ends are unlimited."""
    index = {word: number for number, word in enumerate(dict.fromkeys(word for words, _ in pieces for word in words))}
    best_WS = np.full((len(index), max_span), -1.0)
    owner_WS = np.full((len(index), max_span), -1)
    word_slices = []
    for number, ((words, places), inside) in enumerate(zip(pieces, insides, strict=True)):
        first = index[words[0]] if words else 0
        in_window = slice(first, first + len(words))
        word_slices.append(in_window)
        if not words:
            continue
        left_W = np.array(places) - inside[0] if number > 0 else np.full(len(words), math.inf)
        right_W = inside[-1] - np.array(places) if number < len(pieces) - 1 else np.full(len(words), math.inf)
        lasts_WS = np.arange(len(words))[:, None] + np.arange(max_span)
        right_WS = np.append(right_W, np.full(max_span, -1))[lasts_WS]
        context_WS = np.minimum(left_W[:, None], right_WS)
        better_WS = context_WS > best_WS[in_window]
        owner_WS[in_window][better_WS] = number
        best_WS[in_window][better_WS] = context_WS[better_WS]
    by_window = []
    for number, ((words, places), in_window) in enumerate(zip(pieces, word_slices, strict=True)):
        owned_WS = owner_WS[in_window] == number  # the lengths that a window decides for one word are contiguous
        above_W = owned_WS.argmax(1)
        by_window.append(_Candidates(words, places, above_W.tolist(), (above_W + owned_WS.sum(1)).tolist()))
    return by_window


def beside(
    above: Sequence[int], upto: Sequence[int], starts: Sequence[int], ends: Sequence[int]
) -> set[tuple[int, int]]:
    """The candidates that begin at one of the starts or end at one of the ends, as (first word, how many follow).

    >>> sorted(beside(above=[0, 0, 0], upto=[2, 2, 1], starts=[0], ends=[2]))
    [(0, 0), (0, 1), (1, 1), (2, 0)]
    """
    spans = {(start, further) for start in starts for further in range(above[start], upto[start])}
    for end in ends:
        spans.update((first, end - first) for first in range(end + 1) if above[first] <= end - first < upto[first])
    return spans


def without_overlaps(spans: Mapping[Span, float]) -> set[Span]:
    """The spans without those that share a word with a more probable one, an earlier one, or a shorter one.

    >>> sorted(without_overlaps({("ORG", 0, 3): 0.8, ("LOC", 2, 3): 0.9, ("PER", 4, 5): 0.6}))
    [('LOC', 2, 3), ('PER', 4, 5)]
    """
    kept = set()
    taken = set[int]()
    for type_, first, end in sorted(spans, key=lambda span: (-spans[span], span[1], span[2], span[0])):
        if taken.isdisjoint(range(first, end)):
            kept.add((type_, first, end))
            taken.update(range(first, end))
    return kept
