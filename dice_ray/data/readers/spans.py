"""Texts with annotated spans by character, as annotation tools export them: doccano, Prodigy, spaCy, Label Studio."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from dice_ray.data.readers.base import Bad, Drop, Kept, Labels, RowResult, TextReaderBranch
from dice_ray.data.readers.json_rows import json_rows
from dice_ray.data.records import TaggedRecord
from dice_ray.errors import shown
from dice_ray.unspaced import UNSPACED

TEXTS: Final = ("text", "data", "sentence", "content")
SPANS: Final = ("spans", "entities", "label", "labels", "annotations")
STARTS: Final = ("start", "start_offset", "begin")
ENDS: Final = ("end", "end_offset", "stop")
TYPES: Final = ("label", "labels", "type", "entity", "entity_group", "tag")
WORD: Final = re.compile(rf"{UNSPACED.pattern}|[^\W_]+|[^\s]")
"""A character of a script that puts no spaces between words, a sequence of letters and digits, or a symbol."""
MISALIGNED: Final = "a span that begins or ends within a word, which is taken whole"
OVERLAPPING: Final = "spans that overlap, of which the longest are kept"


class CharacterSpan(NamedTuple):
    """A span of characters, from its first to the one after its last, and its type."""

    start: int
    end: int
    type: str


class SpansConfig(TextReaderBranch):
    """JSON lines or a JSON list of texts with their spans: `[start, end, type]`, or objects with these as keys.

    A text is split into words at spaces and symbols (into characters in Chinese, Japanese and Thai). A span that does
    not align with them is widened to whole words, and of overlapping spans the longest are kept; both are counted.
    """

    name = "spans"
    record_type = TaggedRecord

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        for line, row in json_rows(path, self.encoding):
            if isinstance(row, Bad):
                yield row
                continue
            text = text_of(row)
            if text is None:
                yield Bad(line, f"a text under one of {', '.join(TEXTS)}", shown(row))
                continue
            words = list(WORD.finditer(text))
            id_ = row["id"] if isinstance(row, dict) and type(row.get("id")) in (int, str) else line
            record = TaggedRecord(str(id_), tuple(word.group() for word in words), ())
            if not words:
                yield Drop(line, "no words")
            elif labels == "ignored":
                yield Kept(line, record)
            elif isinstance(row, dict) and row.get("answer", "accept") != "accept":
                yield Drop(line, "a text that the annotator did not accept")
            elif (spans := spans_of(row)) is None or any(not 0 <= span.start < span.end <= len(text) for span in spans):
                yield Bad(line, "spans within the text, each with start, end and type", shown(row))
            else:
                tags, note = _tags(words, spans)
                yield Kept(line, TaggedRecord(record.id, record.words, tags), note)


def text_of(row: Any) -> str | None:
    """The text of an annotated row; None if it has none."""
    if isinstance(row, list):
        return row[0] if row and isinstance(row[0], str) else None
    if not isinstance(row, dict):
        return None
    value = next((row[key] for key in TEXTS if key in row), None)
    return text_of(value) if isinstance(value, dict) else value if isinstance(value, str) else None


def spans_of(row: Any) -> list[CharacterSpan] | None:
    """The spans of an annotated row; None if it has no list of them, or one of them is malformed."""
    if isinstance(row, list):  # spaCy: a text and its annotations
        return spans_of(row[1]) if len(row) == 2 else None
    values = (
        next((row[key] for key in SPANS if isinstance(row.get(key), list)), None) if isinstance(row, dict) else None
    )
    if values is None:
        return None
    if any(isinstance(value, dict) and "result" in value for value in values):  # Label Studio: the first annotation
        values = [item.get("value") for item in values[0].get("result", []) if item.get("type") in (None, "labels")]
    spans = [_span(value) for value in values]
    return None if None in spans else [span for span in spans if span is not None]


def _span(value: Any) -> CharacterSpan | None:
    if isinstance(value, dict):
        value = [next((value[key] for key in keys if key in value), None) for keys in (STARTS, ENDS, TYPES)]
    if not isinstance(value, list) or len(value) != 3:
        return None
    start, end, types = value
    type_ = types[0] if isinstance(types, list) and types else types
    is_span = type(start) is int and type(end) is int and isinstance(type_, str) and type_
    return CharacterSpan(start, end, type_) if is_span else None


def _tags(words: Sequence[re.Match[str]], spans: Sequence[CharacterSpan]) -> tuple[tuple[str, ...], str | None]:
    """The IOB2 tags of the words, and a note on spans that do not fit them."""
    tags, note = ["O"] * len(words), None
    for span in sorted(spans, key=lambda span: (span.start - span.end, span.start)):
        inside = [place for place, word in enumerate(words) if word.start() < span.end and span.start < word.end()]
        if not inside:  # white space
            note = MISALIGNED
        elif any(tags[place] != "O" for place in inside):
            note = OVERLAPPING
        else:
            if words[inside[0]].start() < span.start or words[inside[-1]].end() > span.end:
                note = MISALIGNED
            for place in inside:
                tags[place] = f"{'B' if place == inside[0] else 'I'}-{span.type}"
    return tuple(tags), note
