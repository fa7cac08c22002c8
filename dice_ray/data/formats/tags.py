"""Converts span tags of all usual schemes to IOB2; plain tags stay as they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal, TypeAlias

from dice_ray.data.formats.base import READER, Attempt, Bad, Guess, Kept, RowResult
from dice_ray.data.formats.text import RowPlace
from dice_ray.data.records import NestedRecord, Record, TaggedRecord, WordSpan
from dice_ray.errors import shown

TagKind: TypeAlias = Literal["spans", "types", "brackets", "plain"]
"""`spans`: IOB1, IOB2, BIOES, BMES or BILOU, recognised by their letters, also as `b-per`, `B_PER` and `PER-B`.
`types`: O, or a type without a letter; neighbours of one type are one span. `brackets`: `(PER*`, `*`, `*)`, `(LOC)`, as
in CoNLL-2012. `plain`: such as parts of speech."""

_LETTER_FIRST: Final = re.compile(r"([OBIESMLU])(?:[-_](.+))?", re.IGNORECASE)
_LETTER_LAST: Final = re.compile(r"(.+)[-_]([BIESMLU])")
_BRACKETS: Final = re.compile(r"(?:\(([^()*]+))?\*?(\))?")
_SEVERAL_TYPES: Final = "a tag of several types, of which the first is read"


@lru_cache(maxsize=1000)
def parsed(tag: str) -> tuple[str, str] | None:
    """The letter and the type of a span tag; None for any other tag.

    >>> parsed("B-PER"), parsed("b_per"), parsed("PER-B"), parsed("O"), parsed("NOUN")
    (('B', 'PER'), ('B', 'per'), ('B', 'PER'), ('O', ''), None)
    """
    if found := _LETTER_FIRST.fullmatch(tag):
        return found[1].upper(), found[2] or ""
    return (found[2], found[1]) if (found := _LETTER_LAST.fullmatch(tag)) else None


def _iob2(tags: Sequence[tuple[str, str]]) -> list[str]:
    """Convert parsed tags by conlleval's rule: a span begins at B, S and U, after O, E, S, L and U, and at a new type.

    >>> _iob2([("I", "PER"), ("I", "PER"), ("B", "PER"), ("O", ""), ("S", "LOC"), ("E", "LOC")])
    ['B-PER', 'I-PER', 'B-PER', 'O', 'B-LOC', 'B-LOC']
    """
    converted = []
    open_type: str | None = None
    for letter, type_ in tags:
        if letter == "O":
            converted.append("O")
            open_type = None
            continue
        begin = "B" if letter in "BSU" or type_ != open_type else "I"
        converted.append(f"{begin}-{type_}" if type_ else begin)
        open_type = None if letter in "ESLU" else type_
    return converted


def in_document(row: RowResult, line: int | None) -> RowResult:
    """The row of a sentence in the document whose mark stands on this line, if any does."""
    if line is None or not isinstance(row, Kept) or not isinstance(row.record, TaggedRecord | NestedRecord):
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
    notes: tuple[str, ...] = ()
    if kind == "types":
        tags = _iob2([("O", "") if tag in ("O", "o") else ("I", tag) for tag in tags])
    elif kind == "brackets":
        if (unbracketed := _unbracketed(tags)) is None:
            return Bad(place, "tags as (TYPE*, *, *) and (TYPE), whose brackets close", shown(" ".join(tags)))
        tags = _iob2(unbracketed)
    elif kind == "spans":
        firsts = [_first_of_several(tag) for tag in tags]
        notes = (_SEVERAL_TYPES,) if firsts != list(tags) else ()
        letters = [parsed(tag) for tag in firsts]
        if None in letters:
            unknown = firsts[letters.index(None)]
            return Bad(place, "tags of spans as O, B-TYPE, I-TYPE (or choose `plain` tags)", shown(unknown))
        tags = _iob2([letter for letter in letters if letter is not None])
    return Kept(place, TaggedRecord(str(place) if id is None else id, tuple(words), tuple(tags)), notes)


def named(place: RowPlace, tags: Sequence[str | int], names: Sequence[str], num_words: int) -> list[str] | Bad:
    """The names of tags that are numbers, also as texts, 0 first; without `names`, and of names, texts stay."""
    if len(tags) != num_words:
        return Bad(place, "as many tags as words", f"{len(tags)} tags for {num_words} words")
    if set(tags) <= set(names):
        return list(map(str, tags))
    known = {name: name for name in names} | {str(number): name for number, name in enumerate(names)}
    for tag in tags:
        if str(tag) not in known and (names or not isinstance(tag, str)):
            return Bad(place, f"numbers with a name each in `names`, which has {len(names)}", shown(tag))
    return [known.get(str(tag), str(tag)) for tag in tags]


def nested_record(place: RowPlace, words: Sequence[str], layers: Sequence[Sequence[str]], kind: TagKind) -> RowResult:
    """The record of a sentence with several layers of tags, whose spans may nest; a bad row if a layer makes one."""
    spans, notes = set[WordSpan](), set[str]()
    for tags in layers:
        row = tagged_record(place, words, tags, kind)
        if not isinstance(row, Kept) or not isinstance(row.record, TaggedRecord):
            return row
        spans.update(word_spans(row.record.tags))
        notes.update(row.notes)
    return Kept(place, NestedRecord(str(place), tuple(words), in_order(spans)), tuple(sorted(notes)))


def in_order(spans: Iterable[WordSpan]) -> tuple[WordSpan, ...]:
    """Spans by their first word, the longer of those with the same one first."""
    return tuple(sorted(spans, key=lambda span: (span.first, -span.end, span.type)))


def word_spans(tags: Sequence[str]) -> list[WordSpan]:
    """The spans of IOB2 tags, as `tagged_record` writes them.

    >>> word_spans(["B-PER", "I-PER", "O"])
    [WordSpan(type='PER', first=0, end=2)]
    """
    ends = [place for place, tag in enumerate([*tags, "O"]) if tag[0] != "I"]
    return [WordSpan(tags[first][2:], first, end) for first, end in pairwise(ends) if tags[first][0] == "B"]


def tags_of(records: Iterable[Record]) -> list[str]:
    return [tag for record in records if isinstance(record, TaggedRecord) for tag in record.tags]


def is_tag_set(tags: Iterable[str]) -> bool:
    """Whether tags have no more distinct values than a tag set has."""
    return len(set(tags)) <= 300


def tag_kind(tags: Sequence[str]) -> TagKind:
    """What a sequence of tags marks, by the tags that occur in it.

    Bare types, and B and I without a type, are spans only if most words are outside of them: a tag set of parts of
    speech may have a tag O too, and segmentation has B, M, E and S.
    """
    distinct = set(tags)
    letters = [parsed(tag) for tag in distinct]
    is_outside_most = 2 * sum(tag in ("O", "o") for tag in tags) > len(tags)
    if all(letters) and (any(letter[1] for letter in letters if letter) or (is_outside_most and len(distinct) > 1)):
        return "spans"
    are_types = all(len(tag) > 1 or tag in ("O", "o") for tag in distinct) and len(distinct) > 1
    return "types" if are_types and is_outside_most else "plain"


def guess_tagging(result: Attempt, kind: TagKind, why: dict[str, str]) -> Guess | str:
    """The guess that a reader of tagged words is the right one; or why it is not."""
    (reader,) = result.reader
    scheme = {
        "spans": "Tags of spans as O, B-TYPE, I-TYPE.",
        "types": "O, or the type of a span: neighbouring words of one type are taken for one span.",
        "brackets": "Spans in brackets: (TYPE*, *, *) and (TYPE).",
        "plain": "One tag a word, as parts of speech.",
    }[kind]
    task = scheme if kind != "plain" else f"{scheme} Set `background: TAG` if one of them is not of interest."
    reasons = {"task": task, f"{READER}.{reader}.tags": scheme}
    return result.guess(reasons | why, tags="plain" if kind == "plain" else "spans")


def _unbracketed(tags: Sequence[str]) -> list[tuple[str, str]] | None:
    """The letter and the type of each tag with brackets; None if they do not close, or nest."""
    letters, open_type = list[tuple[str, str]](), ""
    for tag in tags:
        found = _BRACKETS.fullmatch(tag)
        if not tag or found is None or (found[1] and open_type) or (found[2] and not (found[1] or open_type)):
            return None
        letters.append(("B", found[1]) if found[1] else ("I", open_type) if open_type else ("O", ""))
        open_type = "" if found[2] else found[1] or open_type
    return None if open_type else letters


@lru_cache(maxsize=1000)
def _first_of_several(tag: str) -> str:
    """The first of the span tags that commas join, as in `B-person,B-group`, else the tag itself."""
    first, *others = tag.split(",")
    return first if others and all(map(parsed, [first, *others])) else tag
