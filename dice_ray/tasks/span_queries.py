"""The queries to a sentence and their gold spans, from tagged sentences, nested spans and files of queries alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from dice_ray.data.records import NestedRecord, QueryRecord, TaggedRecord
from dice_ray.errors import DataError
from dice_ray.metrics.spans import Span, spans_of
from dice_ray.tasks.base import Row

SpanRecord: TypeAlias = TaggedRecord | NestedRecord | QueryRecord


class SpanQuery(NamedTuple):
    """A query for the spans of one type in a sentence.

    Attributes:
        type: The type of the spans.
        text: The record's own query, if it has one.
        spans: The gold spans: first word, and the one after the last.
    """

    type: str
    text: str | None
    spans: frozenset[tuple[int, int]]


def queries_of(record: SpanRecord, types: Iterable[str]) -> list[SpanQuery]:
    """The one query of a query record, or a query for each of these types to any other sentence."""
    if isinstance(record, QueryRecord):
        return [SpanQuery(record.type, record.query.strip() or None, frozenset(record.spans))]
    gold = gold_of(record)
    return [
        SpanQuery(type_, None, frozenset((first, end) for of, first, end in gold if of == type_)) for type_ in types
    ]


def gold_of(record: SpanRecord) -> set[Span]:
    """The gold spans of a record: of the type that a query is for, or all of any other sentence."""
    if isinstance(record, QueryRecord):
        return {(record.type, first, end) for first, end in record.spans}
    if isinstance(record, NestedRecord):
        return set(record.spans)
    return spans_of(record.tags)


def sentence_of(record: SpanRecord) -> str:
    """The id of a record's sentence; a file of queries has several records of one sentence."""
    return record.group if isinstance(record, QueryRecord) else record.id


def asked(record: SpanRecord, question: int, types: Sequence[str]) -> tuple[str, str]:
    """The sentence of a query, and the type that it asks for; `question` counts the queries of a record."""
    return sentence_of(record), record.type if isinstance(record, QueryRecord) else types[question]


def asked_once(records: Sequence[SpanRecord], rows: Sequence[Row], types: Sequence[str]) -> list[Row]:
    """The rows without those of queries that ask a sentence for a type again, in other words."""
    first: dict[tuple[str, str], tuple[int, int]] = {}
    kept = []
    for row in rows:
        query = row["record"], row["question"]
        if first.setdefault(asked(records[query[0]], query[1], types), query) == query:
            kept.append(row)
    return kept


def types_of(record: SpanRecord) -> set[str]:
    """The types of a record.

    Raises:
        DataError: A tag is not in IOB2.
    """
    if isinstance(record, QueryRecord):
        return {record.type}
    if isinstance(record, NestedRecord):
        return {span.type for span in record.spans}
    for tag in record.tags:
        if tag != "O" and tag[:2] not in ("B-", "I-"):
            raise DataError(
                f"mrc_ner needs tags of spans, O, B-TYPE and I-TYPE: sentence {record.id} has {tag!r}; use the task "
                "tagging for plain tags, one a word"
            )
    return {tag[2:] for tag in record.tags if tag != "O"}


def tagged_words(words: Sequence[str], spans: Iterable[Span]) -> list[tuple[str, str]]:
    """Each word with its IOB2 tag; the spans must not overlap.

    >>> tagged_words(["Ann", "Berg", "sat"], {("PER", 0, 2)})
    [('Ann', 'B-PER'), ('Berg', 'I-PER'), ('sat', 'O')]
    """
    tags = ["O"] * len(words)
    for type_, first, end in spans:
        tags[first:end] = [f"B-{type_}", *[f"I-{type_}"] * (end - first - 1)]
    return list(zip(words, tags, strict=True))


def mrc_json(record: SpanRecord, index: int, type_: str, query: str, spans: Iterable[Span]) -> dict[str, Any]:
    """A query of a record and the predicted spans of its type, in the format of MRC-NER: ends are last words."""
    places = sorted((first, end - 1) for of, first, end in spans if of == type_)
    return {
        "context": " ".join(record.words),
        "end_position": [last for _, last in places],
        "entity_label": type_,
        "qas_id": record.id if isinstance(record, QueryRecord) else f"{record.id}.{index + 1}",
        "query": query,
        "start_position": [first for first, _ in places],
    }
