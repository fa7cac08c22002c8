"""What a record asks of its sentence, and what is gold in it: from tagged sentences and from files of queries alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from dice_ray.data.records import QueryRecord, TaggedRecord
from dice_ray.errors import DataError
from dice_ray.metrics.spans import Span, spans_of

AskedRecord: TypeAlias = TaggedRecord | QueryRecord


class Asked(NamedTuple):
    """A question on a sentence: one type, its own query where the record has one, and the spans that answer it."""

    type: str
    query: str | None
    spans: frozenset[tuple[int, int]]


def asked(record: AskedRecord, types: Iterable[str]) -> list[Asked]:
    """The questions of a record: a query's own, or one for each of these types on a tagged sentence."""
    if isinstance(record, QueryRecord):
        return [Asked(record.type, record.query.strip() or None, frozenset(record.spans))]
    gold = gold_of(record)
    return [
        Asked(type_, None, frozenset((first, end) for found, first, end in gold if found == type_)) for type_ in types
    ]


def gold_of(record: AskedRecord) -> set[Span]:
    """The spans of a record: of the type that it asks for, or all that are tagged."""
    if isinstance(record, QueryRecord):
        return {(record.type, first, end) for first, end in record.spans}
    return spans_of(record.tags)


def sentence_of(record: AskedRecord) -> str:
    """The id of a record's sentence, which a file of queries has several records of."""
    return record.group if isinstance(record, QueryRecord) else record.id


def types_of(record: AskedRecord) -> set[str]:
    """The types that a record names."""
    if isinstance(record, QueryRecord):
        return {record.type}
    for tag in record.tags:
        if tag != "O" and tag[:2] not in ("B-", "I-"):
            raise DataError(
                f"mrc_ner reads the tags of spans, O, B-TYPE and I-TYPE: sentence {record.id} has {tag!r}; "
                "plain tags, one a word, are for task tagging"
            )
    return {tag[2:] for tag in record.tags if tag != "O"}


def tagged_words(words: Sequence[str], spans: Iterable[Span]) -> list[tuple[str, str]]:
    """Each word with its tag in IOB2; the spans share no word.

    >>> tagged_words(["Ann", "Berg", "sat"], {("PER", 0, 2)})
    [('Ann', 'B-PER'), ('Berg', 'I-PER'), ('sat', 'O')]
    """
    tags = ["O"] * len(words)
    for type_, first, end in spans:
        tags[first:end] = [f"B-{type_}", *[f"I-{type_}"] * (end - first - 1)]
    return list(zip(words, tags, strict=True))


def answered(record: AskedRecord, index: int, type_: str, query: str, spans: Iterable[Span]) -> dict[str, Any]:
    """A question of a record with the spans that answer it, as files of MRC-NER have them: ends are last words."""
    places = sorted((first, end - 1) for found, first, end in spans if found == type_)
    return {
        "context": " ".join(record.words),
        "end_position": [last for _, last in places],
        "entity_label": type_,
        "qas_id": record.id if isinstance(record, QueryRecord) else f"{record.id}.{index + 1}",
        "query": query,
        "start_position": [first for first, _ in places],
    }
