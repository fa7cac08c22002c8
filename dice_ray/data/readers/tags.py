"""Tags of spans in any of the usual schemes, brought to IOB2; plain tags as they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

from dice_ray.data.readers.base import Bad, Found, Kept, Place, shown
from dice_ray.data.records import TaggedRecord

TagKind: TypeAlias = Literal["spans", "plain"]
"""`spans`: IOB1, IOB2, BIOES, BMES, BILOU, told by their letters. `plain`: one tag a word, as parts of speech."""

SPAN_TAG = re.compile(r"O|[BIESMLU](-.+)?")


def iob2(tags: Sequence[str]) -> list[str]:
    """The same spans in IOB2, as conlleval sees them: a span begins at B, S, U, after O, and where the type changes.

    >>> iob2(["I-PER", "I-PER", "B-PER", "O", "S-LOC", "E-LOC"])
    ['B-PER', 'I-PER', 'B-PER', 'O', 'B-LOC', 'B-LOC']
    """
    found = []
    open_type: str | None = None
    for tag in tags:
        letter, type_ = tag[0], tag[1:]
        if letter == "O":
            found.append("O")
            open_type = None
            continue
        found.append(f"{'B' if letter in 'BSU' or type_ != open_type else 'I'}{type_}")
        open_type = None if letter in "ESLU" else type_
    return found


def tagged(
    place: Place, words: Sequence[str], tags: Sequence[str] | None, kind: TagKind, id: str | None = None
) -> Found:
    """The record of a sentence, or what is wrong with one of its tags; without tags where labels are ignored.

    Its id is the place where none is given.
    """
    if tags is None:
        record = TaggedRecord(id or str(place), tuple(words), ())
        return Kept(place, record) if all(words) else Bad(place, "no empty word", shown(" ".join(words)))
    if not all(words) or not all(tags):
        return Bad(place, "a word and a tag, neither of them empty", shown(" ".join(words)))
    if kind == "spans":
        if odd := [tag for tag in tags if not SPAN_TAG.fullmatch(tag)]:
            return Bad(place, "tags of spans as O, B-TYPE, I-TYPE (or `tags: plain`)", shown(odd[0]))
        tags = iob2(tags)
    return Kept(place, TaggedRecord(str(place) if id is None else id, tuple(words), tuple(tags)))
