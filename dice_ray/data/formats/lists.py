"""Columns that hold lists, as on the hub: words with tags, texts with spans, and questions with answers."""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias

from dice_ray.data.formats.base import NO_WORDS, READER, UNLABELLED, Attempt, Bad, Drop, Guess, Kept, Labels, RowResult
from dice_ray.data.formats.columns import ColumnsBranch, whole
from dice_ray.data.formats.questions import Several, answered_question, guess_questions
from dice_ray.data.formats.span_files import annotated
from dice_ray.data.formats.spans import SpanSettings, guess_spans
from dice_ray.data.formats.tags import TagKind, guess_tagging, is_tag_set, named, tag_kind, tagged_record, tags_of
from dice_ray.data.records import QuestionRecord, TaggedRecord
from dice_ray.errors import shown
from dice_ray.settings import Nested

ReadColumns: TypeAlias = Callable[[Nested], Attempt]
"""Reads the first rows with this value of the reader's `columns`."""
_TAGS: Final = re.compile(r"tag|label|ner|pos", re.IGNORECASE)
"""The names of columns of tags: others may hold anything that a word has, such as its head or its language."""


class _ListColumns(ColumnsBranch, ABC):
    """The columns of one kind of record, some of which hold lists."""

    id: str | None = None

    @classmethod
    @abstractmethod
    def fits(cls, rows: Sequence[Mapping[str, Any]], read: ReadColumns, path: str) -> Guess | str:
        """The columns of the first rows, or why they hold no such records; `path` is that of the reader's `columns`."""

    @classmethod
    def _written(cls, **settings: Any) -> Nested:
        """The value of `columns`: the settings that are not the default ones."""
        defaults = cls()
        return {cls.name: {name: value for name, value in settings.items() if value != getattr(defaults, name)}}


class TaggedColumns(_ListColumns):
    """A list of words and a list of tags.

    Attributes:
        words: The column of the words: a list; in a table also a text with spaces between the words.
        tags: The column of the tags: a list of strings or numbers; in a table also a text with spaces between them.
        scheme: What the tags mark.
        names: The tags that numbers mean, 0 first; must be empty for class labels, which store their names.
    """

    name = "tagged"
    record_type = TaggedRecord
    uses = ("id", "words", "tags")

    words: str = "tokens"
    tags: str = "tags"
    scheme: TagKind = "spans"
    names: tuple[str, ...] = ()

    def row(self, line: int, values: Mapping[str, Any]) -> RowResult:
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
        found = named(line, tags, self.names, len(words))
        return found if isinstance(found, Bad) else tagged_record(line, words, found, self.scheme, values.get("id"))

    @classmethod
    def fits(cls, rows: Sequence[Mapping[str, Any]], read: ReadColumns, path: str) -> Guess | str:
        """The words of a sentence and as many tags: the last column of spans, else the first of plain tags.

        A text is the list of its pieces between spaces.
        """
        columns = {
            column: [row[column].split() if isinstance(row[column], str) else row[column] for row in rows]
            for column in rows[0]
            if all(isinstance(row.get(column), list | str) for row in rows)
        }
        lengths = {column: [*map(len, cells)] for column, cells in columns.items()}
        texts = [
            column
            for column, cells in columns.items()
            if all(type(item) is str for cell in cells for item in cell)
            and any(lengths[column] == length for other, length in lengths.items() if other != column)
        ]
        if not texts:
            return "no two columns of equally long lists, of which one has texts"
        num_words = {column: len({word for cell in columns[column] for word in cell}) for column in texts}
        # A list before a text, which may hold the same words.
        words = max(texts, key=lambda column: (num_words[column], isinstance(rows[0][column], list)))
        attempts, names = dict[str, Attempt](), dict[str, list[str]]()
        reason = f"beside the lists {words!r} no column of as many tags"
        for column, cells in columns.items():
            if column == words or lengths[column] != lengths[words] or not _may_be_tags(rows, column, cells):
                continue
            result = read(cls._written(words=words, tags=column, scheme="plain"))
            # Without names: class labels of `datasets` have some.
            if result.reason and _TAGS.search(column) and len(numbers := _numbers(cells)) > 1:
                names[column] = numbers
                result = read(cls._written(words=words, tags=column, scheme="plain", names=numbers))
            if result.reason:
                reason = result.reason
            elif is_tag_set(tags := tags_of(result.records)) and len(set(tags)) > 1:
                attempts[column] = result
        # Numbers may be anything that a word has, such as its head: only where no column has texts for tags.
        if with_texts := {column: result for column, result in attempts.items() if column not in names}:
            attempts = with_texts
        if not attempts:
            return reason
        kinds = {column: tag_kind(tags_of(result.records)) for column, result in attempts.items()}
        spans = [column for column, kind in kinds.items() if kind != "plain"]
        column = spans[-1] if spans else next(iter([*filter(_TAGS.search, attempts), *attempts]))
        others = [other for other in attempts if other != column]
        notes = [f"Other candidate columns: {', '.join(map(repr, others))}."] if others else []
        if numbers := names.get(column, []):
            notes.append(
                "The file has numbers for tags, and no names: words are scored. To score spans, write their names as "
                f"`names: [O, B-PER, ...]` for 0 to {len(numbers) - 1}, without `scheme`, and `task: tagging`."
            )
        why = {READER: "A list of words and a list of tags in each row.", path: " ".join(notes)}
        kind, result = kinds[column], attempts[column]
        if kind != "plain":
            result = read(cls._written(words=words, tags=column, scheme=kind))
        found = guess_tagging(result, kind, why)
        tags = tags_of(result.records)
        if isinstance(found, Guess) and numbers and 2 * tags.count("0") > len(tags):
            why_task = "Numbers for tags, of which 0 is taken for words of no interest, as most words have it."
            task: Nested = {"tagging": {"tags": "plain", "background": "0"}}
            return replace(found, task=task, why=found.why | {"task": why_task})
        return found


class SpanColumns(SpanSettings, _ListColumns):
    """A text and a list of its spans of characters, in any of the forms that the reader `spans` takes.

    Attributes:
        text: The column of the text.
        spans: The column of the spans.
    """

    name = "spans"
    uses = ("id", "text", "spans")

    text: str = "text"
    spans: str = "spans"

    def row(self, line: int, values: Mapping[str, Any]) -> RowResult:
        row = {"text": values["text"], "spans": values.get("spans")}
        if "spans" in values and row["spans"] is None:
            return Drop(line, UNLABELLED)
        found = annotated(row)
        assert found is not None, "the text is a string"
        labels: Labels = "read" if "spans" in values else "ignored"
        return self.span_record(line, values.get("id", str(line)), found, labels=labels)

    @classmethod
    def fits(cls, rows: Sequence[Mapping[str, Any]], read: ReadColumns, path: str) -> Guess | str:
        def attempt(text: str, spans: str, **settings: str) -> Attempt:
            return read(cls._written(text=text, spans=spans, **settings))

        reason = "no column of lists of spans"
        texts = [column for column in rows[0] if all(isinstance(row.get(column), str) for row in rows)]
        for spans in rows[0]:
            cells = [row[spans] for row in rows if row.get(spans)]
            if spans in texts or not cells or not all(map(_may_be_spans, cells[:20])):
                continue
            for text in texts:
                found = guess_spans(partial(attempt, text, spans), f"{path}.{cls.name}")
                if isinstance(found, Guess):
                    return found
                reason = found
        return reason


class QuestionColumns(_ListColumns):
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
    uses = ("id", "question", "context", "answers", "start")

    id: str | None = "id"
    question: str = "question"
    context: str = "context"
    answers: str = "answers"
    start: str | None = None
    several: Several = "alternatives"

    def row(self, line: int, values: Mapping[str, Any]) -> RowResult:
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

    @classmethod
    def fits(cls, rows: Sequence[Mapping[str, Any]], read: ReadColumns, path: str) -> Guess | str:
        """A question, its context and its answers, as SQuAD is stored on the hub or in tables."""
        names = {
            "question": ("query", "question"),
            "context": ("paragraph", "passage", "context"),
            "answers": ("answer_text", "answer", "answers"),
            "start": ("start", "answer_start"),
        }
        found: Nested = {use: name for use, known in names.items() for name in known if name in rows[0]}
        if missing := [use for use in ("question", "context", "answers") if use not in found]:
            return f"no column for the {missing[0]}"
        texts = [(str(row.get(found["context"])), row[found["answers"]]) for row in rows if row.get(found["answers"])]
        answers = [(context, answer) for context, answer in texts if not isinstance(answer, list | dict)]
        num_there = sum(isinstance(answer, str) and answer in context for context, answer in answers)
        if num_there < 0.99 * len(answers):  # as those of yes and no
            return f"answers such as {shown(answers[0][1])} are not in their contexts"
        if not answers:
            found.pop("start", None)
        if "id" not in rows[0]:
            found["id"] = None
        why = "A question, its context and its answers in each row."
        return guess_questions(lambda **settings: read(cls._written(**found, **settings)), why, f"{path}.{cls.name}")


def _answers(value: Any, start: Any) -> list[Any] | str | None:
    """The answers as in SQuAD's files, None for an unlabelled question, or what was expected of malformed ones."""
    if isinstance(value, str):
        if start is None:
            return [value]
        return [{"text": value, "answer_start": _start(start)}]
    if value is None or isinstance(value, list):
        return value
    if not isinstance(value, dict) or not {"text", "answer_start"} <= value.keys():
        return "an object with the lists `text` and `answer_start`"
    texts, starts = value["text"], value["answer_start"]
    if texts is None and starts is None:
        return None
    if not isinstance(texts, list) or not isinstance(starts, list) or len(texts) != len(starts):
        return "an object with the lists `text` and `answer_start`, equally long,"
    return [
        {"text": text, "answer_start": start if isinstance(start, str) else _start(start)}
        for text, start in zip(texts, starts, strict=True)
    ]


def _start(cell: Any) -> Any:
    """The number in a cell; of another cell its value, which is malformed."""
    return int(text) if (text := whole(cell)).isdecimal() else cell


def _all(values: Any, kind: type) -> bool:
    # `type() is`, as a bool is an int too.
    return isinstance(values, Sequence) and not isinstance(values, str) and all(type(value) is kind for value in values)


def guess_lists(rows: Sequence[Mapping[str, Any]], read: ReadColumns, path: str) -> Guess | str:
    """The first guess that fits rows, or the reason why the last one does not; as `_ListColumns.fits`."""
    found: Guess | str = "no rows"
    for columns in (TaggedColumns, SpanColumns, QuestionColumns):
        if isinstance(found := columns.fits(rows, read, path), Guess):
            break
    return found


def _may_be_tags(rows: Sequence[Mapping[str, Any]], column: str, cells: Sequence[Sequence[Any]]) -> bool:
    """Whether cells may be tags: lists of texts or numbers, or texts of several span tags."""
    if all(isinstance(row[column], list) for row in rows):
        return all(type(item) in (str, int) for cell in cells for item in cell)
    tags = [tag for cell in cells for tag in cell]
    return len(tags) >= 2 * len(cells) and tag_kind(tags) == "spans"


def _numbers(cells: Sequence[Sequence[Any]]) -> list[str]:
    """The numbers up to the largest one, as names of tags that are numbers; empty if they are texts."""
    numbers = {item for cell in cells for item in cell}
    if not numbers or not all(type(number) is int and number >= 0 for number in numbers):
        return []
    return [str(number) for number in range(max(numbers) + 1)]


def _may_be_spans(cell: Any) -> bool:
    found = annotated({"text": "", "spans": cell})
    return found is not None and found.spans is not None
