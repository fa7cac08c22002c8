"""Guesses for rows that hold lists: words with their tags, texts with their spans, and questions with their answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias

from dice_ray.data.formats.lists import ListBranch, QuestionColumns, SpanColumns, TaggedColumns
from dice_ray.data.formats.span_files import annotated
from dice_ray.data.guess.base import READER, Attempt, Guess
from dice_ray.data.guess.documents import guess_questions
from dice_ray.data.guess.spans import guess_span_settings
from dice_ray.data.guess.tagged import guess_tagging, is_tag_set, tag_kind
from dice_ray.data.records import TaggedRecord
from dice_ray.errors import shown
from dice_ray.settings import Nested

Read: TypeAlias = Callable[[Nested], Attempt]
"""Reads the first rows with this value of the reader's `columns`."""
MIN_WORDS: Final = 2
"""Words of a text, on average, from which it may be a sentence of tagged words."""
CONTEXTS: Final = ("context", "passage", "paragraph")
QUESTIONS: Final = ("question", "query")
ANSWERS: Final = ("answers", "answer", "answer_text")
STARTS: Final = ("answer_start", "start")
TAGS: Final = re.compile(r"tag|label|ner|pos", re.IGNORECASE)
"""The names of columns of tags: others may hold anything that a word has, such as its head or its language."""
NUM_LOOKED_AT: Final = 20
"""The cells from which a column may be one of spans."""
MIN_SHARE: Final = 0.99
"""The share of answers that must stand in their contexts: those of yes and no do not."""


def guess_lists(read: Read, setting: str, rows: Sequence[Mapping[str, Any]]) -> Guess | str:
    """The first guess that fits, or the reason why the last one does not; `setting` is the path of `columns`."""
    found: Guess | str = "no rows"
    for guesser in (guess_tagged_rows, guess_span_rows, guess_question_rows):
        if isinstance(found := guesser(read, setting, rows), Guess):
            return found
    return found


def guess_tagged_rows(read: Read, setting: str, rows: Sequence[Mapping[str, Any]]) -> Guess | str:
    """Rows with the words of a sentence and as many tags: the last column of spans, else the first of plain tags."""
    columns = {
        column: [_pieces(row[column]) for row in rows]
        for column in rows[0]
        if all(isinstance(row.get(column), list | str) for row in rows)
    }
    lengths = {column: [*map(len, cells)] for column, cells in columns.items()}
    texts = [
        column
        for column, cells in columns.items()
        if all(type(item) is str for cell in cells for item in cell)
        and any(lengths[column] == of for other, of in lengths.items() if other != column)
    ]
    if not texts:
        return "no two columns of equally long lists, of which one has texts"
    # A list before a text, which may hold the same words.
    words = max(
        texts,
        key=lambda column: (
            len({word for cell in columns[column] for word in cell}),
            isinstance(rows[0][column], list),
        ),
    )
    attempts, names = dict[str, Attempt](), dict[str, list[str]]()
    reason = f"beside the lists {words!r} no column of as many tags"
    for column, cells in columns.items():
        if column == words or lengths[column] != lengths[words] or not _may_be_tags(rows, column, cells):
            continue
        result = read(_written(words, column, "plain"))
        # Without names: class labels of `datasets` have some.
        if result.reason and TAGS.search(column) and len(numbers := _numbers(cells)) > 1:
            result, names[column] = read(_written(words, column, "plain", numbers)), numbers
        if result.reason:
            reason = result.reason
        elif is_tag_set(_tags(result)) and len(set(_tags(result))) > 1:
            attempts[column] = result
    # Numbers may be anything that a word has, such as its head: only where no column has texts for tags.
    if with_texts := {column: result for column, result in attempts.items() if column not in names}:
        attempts = with_texts
    kinds = {column: tag_kind(_tags(result)) for column, result in attempts.items()}
    spans = [column for column, kind in kinds.items() if kind != "plain"]
    if not attempts:
        return reason
    column = spans[-1] if spans else next(iter([*filter(TAGS.search, attempts), *attempts]))
    others = [other for other in attempts if other != column]
    notes = [f"Other candidate columns: {', '.join(map(repr, others))}."] if others else []
    if numbers := names.get(column, []):
        notes.append(
            "The file has numbers for tags, and no names: words are scored. To score spans, write their names as "
            f"`names: [O, B-PER, ...]` for 0 to {len(numbers) - 1}, without `scheme`, and `task: tagging`."
        )
    why = {READER: "A list of words and a list of tags in each row.", setting: " ".join(notes)}
    kind = kinds[column]
    result = attempts[column] if kind == "plain" else read(_written(words, column, kind))
    found = guess_tagging(result, kind, why)
    if numbers and 2 * _tags(result).count("0") > len(_tags(result)):
        why_task = "Numbers for tags, of which 0 is taken for words of no interest, as most words have it."
        task: Nested = {"tagging": {"tags": "plain", "background": "0"}}
        return replace(found, task=task, why=found.why | {"task": why_task})
    return found


def guess_span_rows(read: Read, setting: str, rows: Sequence[Mapping[str, Any]]) -> Guess | str:
    """Rows with a text and a list of its spans."""
    reason = "no column of lists of spans"
    texts = [column for column in rows[0] if all(isinstance(row.get(column), str) for row in rows)]
    for spans in rows[0]:
        cells = [row[spans] for row in rows if row.get(spans)]
        if spans in texts or not cells or not all(map(_may_be_spans, cells[:NUM_LOOKED_AT])):
            continue
        for text in texts:
            written = _without_defaults(SpanColumns(), text=text, spans=spans)
            found = guess_span_settings(partial(_read_spans, read, written), setting)
            if isinstance(found, Guess):
                return found
            reason = found
    return reason


def guess_question_rows(read: Read, setting: str, rows: Sequence[Mapping[str, Any]]) -> Guess | str:
    """Rows with a question, its context and its answers, as SQuAD is stored on the hub or in tables."""
    defaults = QuestionColumns()
    names = {"question": QUESTIONS, "context": CONTEXTS, "answers": ANSWERS, "start": STARTS}
    found = {use: name for use, known in names.items() for name in known[::-1] if name in rows[0]}
    if missing := [use for use in ("question", "context", "answers") if use not in found]:
        return f"no column for the {missing[0]}"
    texts = [(str(row.get(found["context"])), row[found["answers"]]) for row in rows if row.get(found["answers"])]
    answers = [(context, answer) for context, answer in texts if not isinstance(answer, list | dict)]
    num_there = sum(isinstance(answer, str) and answer in context for context, answer in answers)
    if num_there < MIN_SHARE * len(answers):
        return f"answers such as {shown(answers[0][1])} are not in their contexts"
    if not answers:
        found.pop("start", None)
    written = _without_defaults(defaults, **found)
    written |= {} if defaults.id in rows[0] else {"id": None}
    return guess_questions(
        lambda settings: read({"question": written | settings}),
        "A question, its context and its answers in each row.",
        f"{setting}.question",
    )


def _pieces(value: list[Any] | str) -> list[Any]:
    """A list, or the pieces of a text between spaces."""
    return value.split() if isinstance(value, str) else value


def _may_be_tags(rows: Sequence[Mapping[str, Any]], column: str, cells: Sequence[Sequence[Any]]) -> bool:
    """Whether cells may be tags: lists of texts or numbers, or texts of several span tags."""
    if all(isinstance(row[column], list) for row in rows):
        return all(type(item) in (str, int) for cell in cells for item in cell)
    tags = [tag for cell in cells for tag in cell]
    return len(tags) >= MIN_WORDS * len(cells) and tag_kind(tags) == "spans"


def _numbers(cells: Sequence[Sequence[Any]]) -> list[str]:
    """The numbers up to the largest one, as names of tags that are numbers; empty if they are texts."""
    numbers = {item for cell in cells for item in cell}
    if not numbers or not all(type(number) is int and number >= 0 for number in numbers):
        return []
    return [str(number) for number in range(max(numbers) + 1)]


def _written(words: str, tags: str, scheme: str, names: Sequence[str] = ()) -> Nested:
    written = _without_defaults(TaggedColumns(), words=words, tags=tags, scheme=scheme)
    return {"tagged": written | ({"names": list(names)} if names else {})}


def _read_spans(read: Read, written: Nested, settings: Nested) -> Attempt:
    return read({"spans": written | settings})


def _may_be_spans(cell: Any) -> bool:
    found = annotated({"text": "", "spans": cell})
    return found is not None and found.spans is not None


def _without_defaults(columns: ListBranch, **settings: str) -> Nested:
    """The settings that are not the default ones."""
    return {name: value for name, value in settings.items() if value != getattr(columns, name)}


def _tags(result: Attempt) -> list[str]:
    return [tag for record in result.records if isinstance(record, TaggedRecord) for tag in record.tags]
