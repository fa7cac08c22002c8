"""Converts span tags of all usual schemes to IOB2; plain tags stay as they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from dice_ray.data.readers.base import Bad, Kept, RowPlace, RowResult
from dice_ray.data.records import TaggedRecord
from dice_ray.errors import shown

TagKind: TypeAlias = Literal["spans", "plain"]
"""`spans`: IOB1, IOB2, BIOES, BMES or BILOU, recognised by their letters. `plain`: such as parts of speech."""

SPAN_TAG = re.compile(r"O|[BIESMLU](-.+)?")


def iob2(tags: Sequence[str]) -> list[str]:
    """Convert tags to IOB2 by conlleval's rule: a span begins at B, S and U, after O, E, S, L and U, and at a new type.

    >>> iob2(["I-PER", "I-PER", "B-PER", "O", "S-LOC", "E-LOC"])
    ['B-PER', 'I-PER', 'B-PER', 'O', 'B-LOC', 'B-LOC']
    """
    converted = []
    open_type: str | None = None
    for tag in tags:
        letter, type_ = tag[0], tag[1:]
        if letter == "O":
            converted.append("O")
            open_type = None
            continue
        converted.append(f"{'B' if letter in 'BSU' or type_ != open_type else 'I'}{type_}")
        open_type = None if letter in "ESLU" else type_
    return converted


def in_document(row: RowResult, line: int | None) -> RowResult:
    """The row of a sentence in the document whose mark stands on this line, if any does."""
    if line is None or not isinstance(row, Kept) or not isinstance(row.record, TaggedRecord):
        return row
    return replace(row, record=replace(row.record, document=str(line)), document=line)


def tagged_record(
    place: RowPlace, words: Sequence[str], tags: Sequence[str] | None, kind: TagKind, id: str | None = None
) -> RowResult:
    """The record of a sentence, or a bad row if a word or tag is malformed.

    Without tags (labels ignored) the record has none; without an id, the place is the id.
    """
    if tags is None:
        record = TaggedRecord(id or str(place), tuple(words), ())
        return Kept(place, record) if all(words) else Bad(place, "no empty word", shown(" ".join(words)))
    if not all(words) or not all(tags):
        return Bad(place, "a word and a tag, neither of them empty", shown(" ".join(words)))
    if kind == "spans":
        if unknown := [tag for tag in tags if not SPAN_TAG.fullmatch(tag)]:
            return Bad(place, "tags of spans as O, B-TYPE, I-TYPE (or `tags: plain`)", shown(unknown[0]))
        tags = iob2(tags)
    return Kept(place, TaggedRecord(str(place) if id is None else id, tuple(words), tuple(tags)))
