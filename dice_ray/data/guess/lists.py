"""Guesses for rows whose values are lists: words with their tags, and questions with their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dice_ray.data.guess.base import READER, Attempt, Guess, attempt
from dice_ray.data.guess.documents import asked
from dice_ray.data.guess.tagged import are_spans, few, tagging
from dice_ray.data.readers.lists import QuestionColumns
from dice_ray.data.records import TaggedRecord
from dice_ray.settings import Nested


def tagged_rows(path: Path, reader: str, rows: Sequence[Mapping[str, Any]]) -> Guess | str:
    """A list of words and one of as many tags in each row, the last such column of spans or else of plain tags."""
    lists = [column for column in rows[0] if all(isinstance(row.get(column), list) for row in rows)]
    texts = [column for column in lists if all(type(item) is str for row in rows for item in row[column])]
    if not texts:
        return "no column of lists of texts"
    words = max(texts, key=lambda column: len({word for row in rows for word in row[column]}))
    known: dict[str, Attempt] = {}
    missed = f"beside the lists {words!r} no column of as many tags"
    for column in lists:
        if column == words or any(len(row[column]) != len(row[words]) for row in rows):
            continue
        found = _read(path, reader, words, column, "plain")
        if found.missed:
            missed = found.missed
        elif few(_tags(found)):
            known[column] = found
    spans = [column for column, found in known.items() if are_spans(_tags(found))]
    if not known:
        return missed
    column = (spans or list(known))[-1]
    others = [other for other in known if other != column]
    also = f" Columns that could be meant too: {', '.join(map(repr, others))}." if others else ""
    why = {READER: "A list of words and a list of tags in each row.", f"{READER}.{reader}.columns": also.strip()}
    if spans:
        return tagging(_read(path, reader, words, column, "spans"), "spans", why)
    return tagging(known[column], "plain", why)


def question_rows(path: Path, reader: str, rows: Sequence[Mapping[str, Any]]) -> Guess | str:
    """A question, its context and its answers in each row."""
    columns = QuestionColumns()
    if missing := [name for name in (columns.question, columns.context, columns.answers) if name not in rows[0]]:
        return f"no column {missing[0]!r}"
    written: Nested = {} if columns.id in rows[0] else {"id": None}

    def read(settings: Nested) -> Attempt:
        return attempt(path, {reader: {"columns": {"question": written | settings}}})

    return asked(read, "A question, its context and its answers in each row.", f"{READER}.{reader}.columns.question")


def _read(path: Path, reader: str, words: str, tags: str, scheme: str) -> Attempt:
    written = ({} if words == "tokens" else {"words": words}) | ({} if tags == "tags" else {"tags": tags})
    written |= {} if scheme == "spans" else {"scheme": scheme}
    return attempt(path, {reader: {"columns": {"tagged": written}}})


def _tags(found: Attempt) -> set[str]:
    return {tag for record in found.records if isinstance(record, TaggedRecord) for tag in record.tags}
