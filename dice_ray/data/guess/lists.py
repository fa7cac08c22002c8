"""Guesses for rows that hold lists: words with their tags, and questions with their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dice_ray.data.guess.base import READER, Attempt, Guess, attempt
from dice_ray.data.guess.documents import guess_questions
from dice_ray.data.guess.tagged import guess_tagging, is_tag_set, tag_kind
from dice_ray.data.readers.lists import QuestionColumns
from dice_ray.data.records import TaggedRecord
from dice_ray.settings import Nested


def guess_tagged_rows(path: Path, encoding: str, reader: str, rows: Sequence[Mapping[str, Any]]) -> Guess | str:
    """Rows with a list of words and an equally long list of tags: the last column of span tags, else of plain tags."""
    lists = [column for column in rows[0] if all(isinstance(row.get(column), list) for row in rows)]
    texts = [column for column in lists if all(type(item) is str for row in rows for item in row[column])]
    if not texts:
        return "no column of lists of texts"
    words = max(texts, key=lambda column: len({word for row in rows for word in row[column]}))
    attempts: dict[str, Attempt] = {}
    reason = f"beside the lists {words!r} no column of as many tags"
    for column in lists:
        if column == words or any(len(row[column]) != len(row[words]) for row in rows):
            continue
        result = _attempt(path, encoding, reader, words, column, "plain")
        if result.reason:
            reason = result.reason
        elif is_tag_set(_tags(result)):
            attempts[column] = result
    kinds = {column: tag_kind(_tags(result)) for column, result in attempts.items()}
    spans = [column for column, kind in kinds.items() if kind != "plain"]
    if not attempts:
        return reason
    column = (spans or list(attempts))[-1]
    others = [other for other in attempts if other != column]
    alternatives = f"Other candidate columns: {', '.join(map(repr, others))}." if others else ""
    why = {READER: "A list of words and a list of tags in each row.", f"{READER}.{reader}.columns": alternatives}
    kind = kinds[column]
    result = attempts[column] if kind == "plain" else _attempt(path, encoding, reader, words, column, kind)
    return guess_tagging(result, kind, why)


def guess_question_rows(path: Path, encoding: str, reader: str, rows: Sequence[Mapping[str, Any]]) -> Guess | str:
    """Rows with a question, its context and its answers, in the columns of SQuAD on the hub."""
    columns = QuestionColumns()
    if missing := [name for name in (columns.question, columns.context, columns.answers) if name not in rows[0]]:
        return f"no column {missing[0]!r}"
    written: Nested = {} if columns.id in rows[0] else {"id": None}
    return guess_questions(
        lambda settings: attempt(path, encoding, {reader: {"columns": {"question": written | settings}}}),
        "A question, its context and its answers in each row.",
        f"{READER}.{reader}.columns.question",
    )


def _attempt(path: Path, encoding: str, reader: str, words: str, tags: str, scheme: str) -> Attempt:
    written = ({} if words == "tokens" else {"words": words}) | ({} if tags == "tags" else {"tags": tags})
    written |= {} if scheme == "spans" else {"scheme": scheme}
    return attempt(path, encoding, {reader: {"columns": {"tagged": written}}})


def _tags(result: Attempt) -> list[str]:
    return [tag for record in result.records if isinstance(record, TaggedRecord) for tag in record.tags]
