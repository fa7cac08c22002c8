"""SQuAD JSON: v1.1, v2.0, CMRC and QuoRef, with or without answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from dice_ray.data.readers.base import (
    UNLABELLED,
    Bad,
    Drop,
    Kept,
    Labels,
    RowPlace,
    RowResult,
    TextReaderBranch,
    document,
    unreadable,
)
from dice_ray.data.records import AnswerSpan, QuestionRecord
from dice_ray.errors import shown

MISPLACED = "an answer that does not stand at its answer_start"
Several: TypeAlias = Literal["alternatives", "spans"]


class SquadConfig(TextReaderBranch):
    """Questions on paragraphs.

    Attributes:
        several: The meaning of several answers to a question, which files do not state: `alternatives` of different
            annotators (SQuAD, CMRC), or `spans` that belong together (QuoRef).
    """

    name = "squad"
    record_type = QuestionRecord

    several: Several = "alternatives"

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        root = document(path, self.encoding)
        articles = root.get("data") if isinstance(root, dict) else None
        if not isinstance(articles, list):
            raise unreadable(path, 1, "an object with a list `data`", shown(root))
        for place, paragraph in _nested_items(articles, "data", "paragraphs"):
            if isinstance(paragraph, Bad):
                yield paragraph
            elif not isinstance(paragraph, dict) or not isinstance(paragraph.get("context"), str):
                yield Bad(place, "a paragraph with a `context`", shown(paragraph))
            elif not isinstance(paragraph.get("qas"), list):
                yield Bad(place, "a paragraph with a list `qas`", shown(paragraph.get("qas")))
            else:
                for number, item in enumerate(paragraph["qas"]):
                    where = f"{place}.qas[{number}]"
                    row = self._question(where, item, paragraph["context"], place, labels)
                    yield replace(row, document=place.partition(".")[0]) if isinstance(row, Kept) else row

    def _question(self, place: str, item: Any, context: str, group: str, labels: Labels) -> RowResult:
        if not isinstance(item, dict) or not isinstance(item.get("question"), str):
            return Bad(place, "a `question`", shown(item))
        if not isinstance(item.get("id"), str | int):
            return Bad(place, "an `id`", shown(item.get("id")))
        if labels == "ignored":
            return Kept(place, QuestionRecord(str(item["id"]), item["question"], context, (), False, group))
        impossible = item.get("is_impossible", False)
        answers = [] if impossible else item.get("answers") or []
        if not isinstance(impossible, bool) or not isinstance(answers, list):
            return Bad(place, "`answers` in a list and `is_impossible` true or false", shown(item.get("answers")))
        question = QuestionRecord(str(item["id"]), item["question"], context, (), impossible, group)
        return answered_question(place, question, answers, self.several)


def answered_question(place: RowPlace, question: QuestionRecord, answers: list[Any], several: Several) -> RowResult:
    """The question with its answers: a drop if it has none although it is not impossible, bad if one is malformed."""
    if not answers and not question.impossible:
        return Drop(place, UNLABELLED)
    spans = []
    for answer in answers:
        if not isinstance(answer, dict) or not isinstance(answer.get("text"), str) or not answer["text"]:
            return Bad(place, "answers with a `text`", shown(answer))
        start = answer.get("answer_start")
        if not isinstance(start, int) or isinstance(start, bool):
            return Bad(place, "answers with a number `answer_start`", shown(start))
        # `startswith` would take a negative start from the end of the context.
        is_there = start >= 0 and question.context.startswith(answer["text"], start)
        spans.append(AnswerSpan(answer["text"], start if is_there else -1))
    note = MISPLACED if any(span.start < 0 for span in spans) else None
    grouped = (tuple(spans),) if several == "spans" and spans else tuple((span,) for span in spans)
    return Kept(place, replace(question, answers=grouped), note)


def _nested_items(items: list[Any], name: str, key: str) -> Iterator[tuple[str, Any]]:
    """The items of the list `key` of each item, with their paths; a bad row for an item without that list."""
    for number, item in enumerate(items):
        inner = item.get(key) if isinstance(item, dict) else None
        if not isinstance(inner, list):
            yield f"{name}[{number}]", Bad(f"{name}[{number}]", f"an object with a list `{key}`", shown(item))
            continue
        for position, value in enumerate(inner):
            yield f"{name}[{number}].{key}[{position}]", value
