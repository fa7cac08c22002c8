"""Columns that hold lists, as on the hub: words with tags, texts with spans, and questions with answers."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from dice_ray.data.formats.base import NO_WORDS, UNLABELLED, Bad, Drop, Kept, Labels, RowResult
from dice_ray.data.formats.questions import Several, answered_question
from dice_ray.data.formats.span_files import annotated
from dice_ray.data.formats.spans import SpanSettings
from dice_ray.data.formats.tags import TagKind, named, tagged_record
from dice_ray.data.records import QuestionRecord, Record, TaggedRecord
from dice_ray.errors import shown
from dice_ray.settings import Branch


class ListBranch(Branch, ABC):
    """The columns of one kind of record, some of which hold lists.

    Attributes:
        id: The column of the record's id; without one, the line number is the id.
    """

    record_type: ClassVar[type[Record]]
    uses: ClassVar[tuple[str, ...]]
    """The fields that name a column, the labels last."""

    id: str | None = None

    def used(self, labels: Labels = "read") -> dict[str, str]:
        """The columns that a row must have, by their use."""
        uses = ("id", *(self.uses if labels == "read" else self.uses[:-1]))
        return {use: column for use in uses if (column := getattr(self, use)) is not None}

    def yields(self) -> type[Record]:
        """The type of the records."""
        return self.record_type

    @abstractmethod
    def record(self, line: int, values: Mapping[str, Any]) -> RowResult:
        """The record of a row, from the values of its used columns; all but lists and labels are strings."""


class TaggedColumns(ListBranch):
    """A list of words and a list of tags.

    Attributes:
        words: The column of the words: a list; in a table also a text with spaces between the words.
        tags: The column of the tags: a list of strings or numbers; in a table also a text with spaces between them.
        scheme: What the tags mark.
        names: The tags that numbers mean, 0 first; must be empty for class labels, which store their names.
    """

    name = "tagged"
    record_type = TaggedRecord
    uses = ("words", "tags")

    words: str = "tokens"
    tags: str = "tags"
    scheme: TagKind = "spans"
    names: tuple[str, ...] = ()

    def record(self, line: int, values: Mapping[str, Any]) -> RowResult:
        words = values["words"]
        if not _all(words, str):
            return Bad(line, f"a list of texts as {self.words!r}", shown(words))
        if not words and not values.get("tags"):
            return Drop(line, NO_WORDS)
        if "tags" not in values:
            return tagged_record(line, words, None, self.scheme, values.get("id"))
        if (tags := values["tags"]) is None:
            return Drop(line, UNLABELLED)
        if not _all(tags, str) and not _all(tags, int):
            return Bad(line, f"a list of tags as {self.tags!r}", shown(tags))
        if len(words) != len(tags):
            return Bad(line, "as many tags as words", f"{len(tags)} tags for {len(words)} words")
        found = named(line, tags, self.names)
        return found if isinstance(found, Bad) else tagged_record(line, words, found, self.scheme, values.get("id"))


class SpanColumns(SpanSettings, ListBranch):
    """A text and a list of its spans of characters, in any of the forms that the reader `spans` takes.

    Attributes:
        text: The column of the text.
        spans: The column of the spans.
        ends: Whether the end of a span is the place `after` its last character, or that of the `last` one.
        overlapping: Of spans that overlap the `longest` are kept, for the task `tagging`; or `all`, for `mrc_ner`.
    """

    name = "spans"
    uses = ("text", "spans")

    text: str = "text"
    spans: str = "spans"

    def record(self, line: int, values: Mapping[str, Any]) -> RowResult:
        row = {"text": values["text"], "spans": values.get("spans")}
        if "spans" in values and row["spans"] is None:
            return Drop(line, UNLABELLED)
        found = annotated(row)
        assert found is not None, "the text is a string"
        labels: Labels = "read" if "spans" in values else "ignored"
        return self.span_record(line, values.get("id", str(line)), found, labels=labels)


class QuestionColumns(ListBranch):
    """A question on a context, as SQuAD is stored on the hub.

    Attributes:
        question: The column of the question.
        context: The column of the context; all questions on a context go into the same split.
        answers: The column of the answers: an object with the lists `text` and `answer_start`, or a list of objects. An
            empty list means that the context has no answer; null means that the question is unlabelled. A text is one
            answer, which is looked for in the context if there is no column of its start.
        start: The column of the first character of an answer that is a text.
        several: The meaning of several answers to a question, as in the reader `squad`.
    """

    name = "question"
    record_type = QuestionRecord
    uses = ("question", "context", "answers")

    id: str | None = "id"
    question: str = "question"
    context: str = "context"
    answers: str = "answers"
    start: str | None = None
    several: Several = "alternatives"

    def used(self, labels: Labels = "read") -> dict[str, str]:
        start = {"start": self.start} if labels == "read" and self.start is not None else {}
        return super().used(labels) | start

    def record(self, line: int, values: Mapping[str, Any]) -> RowResult:
        answers = _answers(values.get("answers"), values.get("start"))
        if isinstance(answers, str):
            return Bad(line, f"{answers} as {self.answers!r}", shown(values["answers"]))
        context = values["context"]
        group = hashlib.sha256(context.encode(errors="surrogatepass")).hexdigest()[:16]
        question = QuestionRecord(
            values.get("id", str(line)), values["question"], context, (), impossible=answers == [], group=group
        )
        if "answers" not in values:
            return Kept(line, question)
        return answered_question(line, question, answers or [], self.several)


def _answers(value: Any, start: Any) -> list[Any] | str | None:
    """The answers as in SQuAD's files, None for an unlabelled question, or what was expected of malformed ones."""
    if isinstance(value, str):
        if start is None:
            return [value]
        number = int(start) if isinstance(start, str) and start.isdecimal() else start
        return [{"text": value, "answer_start": number}]
    if value is None or isinstance(value, list):
        return value
    if not isinstance(value, dict) or not {"text", "answer_start"} <= value.keys():
        return "an object with the lists `text` and `answer_start`"
    texts, starts = value["text"], value["answer_start"]
    if texts is None and starts is None:
        return None
    if not isinstance(texts, list) or not isinstance(starts, list) or len(texts) != len(starts):
        return "an object with the lists `text` and `answer_start`, equally long,"
    return [{"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)]


def _all(values: Any, kind: type) -> bool:
    # `type() is`, as a bool is an int too.
    return isinstance(values, Sequence) and not isinstance(values, str) and all(type(value) is kind for value in values)
