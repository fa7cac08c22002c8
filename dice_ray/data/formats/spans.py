"""Texts with annotated spans: what a span means, and the record of a text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, NamedTuple

import regex

from dice_ray.data.formats.base import (
    MAX_BAD_SHARE,
    NO_WORDS,
    READER,
    Attempt,
    Bad,
    Drop,
    Guess,
    Kept,
    Labels,
    RowResult,
)
from dice_ray.data.formats.tags import guess_tagging, in_order, tags_of
from dice_ray.data.formats.text import RowPlace
from dice_ray.data.records import NestedRecord, Record, TaggedRecord, WordSpan
from dice_ray.errors import shown
from dice_ray.settings import Nested, Settings
from dice_ray.unspaced import UNSPACED

WORD: Final = regex.compile(rf"{UNSPACED.pattern}|[\p{{L}}\p{{N}}][\p{{L}}\p{{N}}\p{{M}}\u200c\u200d]*|\S\p{{M}}*")
"""A character of a script that puts no spaces between words, letters and digits with their marks, or a symbol.

Marks are the vowel signs of Devanagari and accents that follow their letter, which `\\w` of Python's `re` leaves out.
"""
_MISALIGNED: Final = "a span that begins or ends within a word, which is taken whole"
_MISPLACED: Final = "a span whose text does not stand at its place"
_OVERLAPPING: Final = "spans that overlap, of which the longest are kept"
_IN_PIECES: Final = "a span of several pieces, which is left out"


class AnnotatedSpan(NamedTuple):
    """A span of characters or of words as the file gives it; `text` is its text if that is given."""

    start: int
    end: int
    type: str
    text: str | None = None
    in_pieces: bool = False


class Annotated(NamedTuple):
    """A text, or its words, and its spans; None for spans that are missing or malformed."""

    text: str | tuple[str, ...]
    spans: Sequence[AnnotatedSpan] | None


class SpanSettings(Settings):
    """What spans mean, for all readers of spans.

    Attributes:
        ends: Whether the end of a span is the place `after` its last character or word, or that of the `last` one.
        overlapping: Of spans that overlap the `longest` are kept, for the task `tagging`; or `all`, for `mrc_ner`.
    """

    ends: Literal["after", "last"] = "after"
    overlapping: Literal["longest", "all"] = "longest"

    def yields(self) -> type[Record]:
        return NestedRecord if self.overlapping == "all" else TaggedRecord

    def span_record(
        self, place: RowPlace, id: str, found: Annotated, document: str = "", *, labels: Labels = "read"
    ) -> RowResult:
        text = found.text
        if isinstance(text, str):
            words = [(word.start(), word.end()) for word in WORD.finditer(text)]
            written = tuple(text[start:end] for start, end in words)
        else:  # places are those of words
            words, written = [(number, number + 1) for number in range(len(text))], text
        if not written:
            return Drop(place, NO_WORDS)
        if not all(written):
            return Bad(place, "no empty word", shown(" ".join(written)))
        if labels == "ignored":
            kind = NestedRecord if self.overlapping == "all" else TaggedRecord
            return Kept(place, kind(id, written, (), document), document=document or None)
        after = 1 if self.ends == "last" else 0
        spans = None if found.spans is None else [span._replace(end=span.end + after) for span in found.spans]
        if spans is None or any(not 0 <= span.start < span.end <= len(text) for span in spans):
            return Bad(place, "spans within the text, each with start, end and type", shown(found))
        in_words, notes = _in_words(text, words, spans)
        if self.overlapping == "all":
            record: Record = NestedRecord(id, written, in_order(set(in_words)), document)
        else:
            tags, overlap = _tags(len(words), in_words)
            notes += [_OVERLAPPING] if overlap else []
            record = TaggedRecord(id, written, tags, document)
        return Kept(place, record, tuple(dict.fromkeys(notes)), document or None)


def _in_words(
    text: str | tuple[str, ...], words: Sequence[tuple[int, int]], spans: Sequence[AnnotatedSpan]
) -> tuple[list[WordSpan], list[str]]:
    """The spans in words, and notes on those that do not fit them."""
    found, notes = list[WordSpan](), list[str]()
    for span in spans:
        inside = [place for place, (start, end) in enumerate(words) if start < span.end and span.start < end]
        if span.in_pieces:
            notes.append(_IN_PIECES)
            continue
        at_place = text[span.start : span.end]
        if isinstance(at_place, str) and span.text is not None and span.text.strip() != at_place.strip():
            notes.append(_MISPLACED)
        if not inside:  # white space
            notes.append(_MISALIGNED)
            continue
        if words[inside[0]][0] < span.start or words[inside[-1]][1] > span.end:
            notes.append(_MISALIGNED)
        found.append(WordSpan(span.type, inside[0], inside[-1] + 1))
    return found, notes


def _tags(num_words: int, spans: Iterable[WordSpan]) -> tuple[tuple[str, ...], bool]:
    """The IOB2 tags of the words, and whether spans overlap, of which the longest are kept."""
    tags, overlap = ["O"] * num_words, False
    for span in sorted(spans, key=lambda span: (span.first - span.end, span.first)):
        if any(tag != "O" for tag in tags[span.first : span.end]):
            overlap = True
            continue
        tags[span.first : span.end] = [f"B-{span.type}", *[f"I-{span.type}"] * (span.end - span.first - 1)]
    return tuple(tags), overlap


def guess_spans(attempt: Callable[..., Attempt], path: str) -> Guess | str:
    """The guess for texts with spans: their ends are those that fit the words clearly better.

    `attempt` reads the sample with settings of spans, which are below `path`.
    """
    result = attempt()
    settings: Nested = {}
    if result.reason or _num_wrong(result):
        last = attempt(ends="last")
        if not last.reason and (result.reason or 2 * _num_wrong(last) < _num_wrong(result)):
            result, settings = last, {"ends": "last"}
    if result.reason:
        return result.reason
    if 2 * _num_wrong(result) > len(result.records):
        return f"in {_num_wrong(result)} of {len(result.records)} texts, spans do not fit the words"
    if set(tags_of(result.records)) <= {"O"}:
        return "no text has a span"
    why = {
        READER: "Texts with spans, which become tags of words.",
        f"{path}.ends": "Ends are the places of last words or characters: spans then fit the words.",
    }
    num_overlapping = result.noted.get(_OVERLAPPING, 0)
    if num_overlapping > MAX_BAD_SHARE * len(result.records):
        why[f"{path}.overlapping"] = (
            f"{num_overlapping} of {len(result.records)} texts have spans that overlap. Without `overlapping`, the "
            "task `tagging` reads the longest of them."
        )
        return attempt(**settings, overlapping="all").guess(why)
    return guess_tagging(result, "spans", why)


def _num_wrong(result: Attempt) -> int:
    """Rows that are malformed or whose spans do not fit the words."""
    return len(result.bad) + result.noted.get(_MISALIGNED, 0) + result.noted.get(_MISPLACED, 0)
