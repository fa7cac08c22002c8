"""The queries of NER as reading comprehension: shipped ones, and those to a sentence, with their gold spans.

Tagged sentences, nested spans and files of queries are taken alike.
"""

# ruff: noqa: RUF001 - Chinese punctuation

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from dice_ray.data.records import NestedRecord, QueryRecord, TaggedRecord
from dice_ray.errors import DataError
from dice_ray.metrics.spans import Span, spans_of
from dice_ray.tasks.answers import Answers
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
    """The types of a record, whose tags must be in IOB2."""
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


def query_id(record: SpanRecord, index: int) -> str:
    """The id of a query of a record in MRC-NER's format."""
    return record.id if isinstance(record, QueryRecord) else f"{record.id}.{index + 1}"


def mrc_json(record: SpanRecord, index: int, type_: str, query: str, spans: Iterable[Span]) -> dict[str, Any]:
    """A query of a record and the predicted spans of its type, in the format of MRC-NER: ends are last words."""
    places = sorted((first, end - 1) for of, first, end in spans if of == type_)
    return {
        "context": " ".join(record.words),
        "end_position": [last for _, last in places],
        "entity_label": type_,
        "qas_id": query_id(record, index),
        "query": query,
        "start_position": [first for first, _ in places],
    }


def query_answer(id_: str, num_words: int, answers: Answers) -> set[tuple[int, int]]:
    """The spans of an answer in that format: first word, and the one after the last; none if they cannot be read."""
    firsts, lasts = (answers.by_id[id_].get(f"{name}_position") for name in ("start", "end"))
    if isinstance(firsts, list) and isinstance(lasts, list) and len(firsts) == len(lasts):
        spans = [*zip(firsts, lasts, strict=True)]
        if all(type(first) is type(last) is int and 0 <= first <= last < num_words for first, last in spans):
            return {(first, last + 1) for first, last in spans}
    answers.unread(id_, f"{firsts} to {lasts}")
    return set()


QUERIES: Mapping[str, Mapping[str, str]] = {
    "conll03": {
        "PER": "Which people are named: first names, family names, nicknames?",
        "LOC": "Which places are named: countries, cities, regions, rivers, mountains, buildings?",
        "ORG": "Which organizations are named: companies, agencies, parties, clubs, teams, institutions?",
        "MISC": "What else has a name: nationalities, languages, religions, events, titles of works, products?",
    },
    "ontonotes5": {
        "PERSON": "Which people are named, real or invented?",
        "NORP": "Which nationalities, religious groups or political groups are named?",
        "FAC": "Which structures that people built are named: buildings, airports, roads, bridges?",
        "ORG": "Which companies, agencies, institutions or other organizations are named?",
        "GPE": "Which countries, states or cities are named?",
        "LOC": "Which places without a government are named: mountains, rivers, seas, continents, regions?",
        "PRODUCT": "Which products are named: vehicles, weapons, devices, foods, no services?",
        "EVENT": "Which events are named: storms, battles, wars, games, festivals?",
        "WORK_OF_ART": "Which titles of books, films, songs or other works are mentioned?",
        "LAW": "Which laws, treaties or other legal documents are named?",
        "LANGUAGE": "Which languages are named?",
        "DATE": "Which dates, days, years, ages or periods of a day or longer are mentioned?",
        "TIME": "Which times of a day, or periods shorter than a day, are mentioned?",
        "PERCENT": "Which percentages are mentioned, with their sign or word?",
        "MONEY": "Which amounts of money are mentioned, with their currency?",
        "QUANTITY": "Which measurements are mentioned: weights, distances, sizes, with their unit?",
        "ORDINAL": "Which ordinal numbers are mentioned: first, second, third?",
        "CARDINAL": "Which other numbers are mentioned, of none of the kinds of dates, money, shares or measures?",
    },
    "msra": {
        "PER": "文中提到了哪些人的姓名？",
        "LOC": "文中提到了哪些地点：国家、省市、山川、街道、景点？",
        "ORG": "文中提到了哪些机构：政府部门、公司、学校、团体？",
    },
    "ontonotes4": {
        "PER": "文中提到了哪些人物的名字，真实或虚构？",
        "GPE": "文中提到了哪些有政府的地区：国家、省、市、县？",
        "LOC": "文中提到了哪些没有政府的地点：山脉、河流、海洋、大洲、区域？",
        "ORG": "文中提到了哪些组织：公司、机关、党派、学校、媒体？",
    },
    "wnut17": {
        "person": "Which people are named, real or invented, also by a nickname or a handle?",
        "location": "Which places are named: countries, cities, streets, venues, landmarks?",
        "corporation": "Which companies are named, as those who act, not as what they sell?",
        "product": "Which things that can be bought or used are named: devices, programs, foods, vehicles?",
        "creative-work": "Which titles of films, songs, books, series or games are mentioned?",
        "group": "Which bands, teams, clubs or other groups that are no companies are named?",
    },
    "weibo": {
        "PER.NAM": "文中提到了哪些人的姓名或昵称？",
        "PER.NOM": "文中用哪些普通名词指人，例如朋友、老师、男人？",
        "LOC.NAM": "文中提到了哪些有专名的地点：山川、街道、场馆？",
        "LOC.NOM": "文中用哪些普通名词指地点，例如家乡、路边？",
        "ORG.NAM": "文中提到了哪些有专名的机构：公司、学校、球队？",
        "ORG.NOM": "文中用哪些普通名词指机构，例如公司、学校？",
        "GPE.NAM": "文中提到了哪些国家、省、市的专名？",
        "GPE.NOM": "文中用哪些普通名词指国家或城市，例如祖国、全国？",
    },
}
"""The shipped queries by data set and type."""
