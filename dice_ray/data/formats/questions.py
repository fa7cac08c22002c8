"""Questions on texts in JSON: SQuAD and its relatives, and MRC-NER, which asks for each type of entity."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from dice_ray.data.formats.base import (
    READER,
    UNLABELLED,
    Attempt,
    Bad,
    Drop,
    Guess,
    Kept,
    Labels,
    RowResult,
    Sample,
    TextReaderBranch,
)
from dice_ray.data.formats.json_rows import first_of, json_rows
from dice_ray.data.formats.text import RowPlace, spaced_words
from dice_ray.data.records import AnswerSpan, QueryRecord, QuestionRecord
from dice_ray.errors import shown

_MISPLACED: Final = "an answer that does not stand at its answer_start"
_SEVERAL_PLACES: Final = (
    "an answer without answer_start that occurs several times in its text, of which the first is taken"
)
_CONTEXTS: Final = ("context", "context_text")
_QUESTIONS: Final = ("question", "query_text")
_IDS: Final = ("id", "qid", "query_id")
"""The keys of SQuAD, and those of MRQA and of CMRC's own form."""
Several: TypeAlias = Literal["alternatives", "spans"]


class SquadConfig(TextReaderBranch):
    """Questions on paragraphs: in a list of articles or of paragraphs, alone or under `data`, or one of these a line.

    Attributes:
        several: The meaning of several answers to a question, which files do not state: `alternatives` of different
            annotators (SQuAD, CMRC), or `spans` that belong together (QuoRef).
    """

    name = "squad"
    record_type = QuestionRecord

    several: Several = "alternatives"

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        for number, row in json_rows(path, self.encoding):
            if isinstance(row, Bad):
                yield row
                continue
            if isinstance(row, dict) and row.keys() == {"header"}:  # MRQA's first line
                continue
            place = f"data[{number - 1}]"
            for where, paragraph in _paragraphs(place, row):
                if isinstance(paragraph, Bad):
                    yield paragraph
                    continue
                context = first_of(paragraph, _CONTEXTS)
                if not isinstance(context, str):
                    yield Bad(where, "a paragraph with a `context`", shown(paragraph))
                elif not isinstance(paragraph.get("qas"), list):
                    yield Bad(where, "a paragraph with a list `qas`", shown(paragraph.get("qas")))
                else:
                    for index, item in enumerate(paragraph["qas"]):
                        found = self._question(f"{where}.qas[{index}]", item, context, where, labels)
                        yield replace(found, document=place) if isinstance(found, Kept) else found

    def _question(self, place: str, item: Any, context: str, group: str, labels: Labels) -> RowResult:
        text, id_ = (first_of(item, names) if isinstance(item, dict) else None for names in (_QUESTIONS, _IDS))
        if not isinstance(text, str):
            return Bad(place, "a `question`", shown(item))
        if not isinstance(id_, str | int):
            return Bad(place, "an `id`", shown(id_))
        if labels == "ignored":
            return Kept(place, QuestionRecord(str(id_), text, context, (), False, group))
        impossible = item.get("is_impossible", False)
        answers = [] if impossible else _answers(item)
        if not isinstance(impossible, bool) or not isinstance(answers, list):
            return Bad(place, "`answers` in a list and `is_impossible` true or false", shown(item.get("answers")))
        question = QuestionRecord(str(id_), text, context, (), impossible, group)
        return answered_question(place, question, answers, self.several)

    @classmethod
    def fits(cls, sample: Sample) -> Guess | str:
        if not sample.first_line.startswith(("{", "[")):
            return "it does not begin with { or ["
        why = "Paragraphs and their questions in JSON."
        return guess_questions(partial(sample.attempt, cls), why, f"{READER}.squad")


def answered_question(place: RowPlace, question: QuestionRecord, answers: list[Any], several: Several) -> RowResult:
    """The question with its answers: a drop if it has none although it is not impossible, bad if one is malformed."""
    if not answers and not question.impossible:
        return Drop(place, UNLABELLED)
    spans, notes = [], set[str]()
    for answer in answers:
        found = {"text": answer} if isinstance(answer, str) else answer
        if not isinstance(found, dict) or not isinstance(found.get("text"), str) or not found["text"]:
            return Bad(place, "answers with a `text`", shown(answer))
        text = found["text"]
        start = found["answer_start"] if "answer_start" in found else question.context.find(text)
        if not isinstance(start, int) or isinstance(start, bool):
            return Bad(place, "answers with a number `answer_start`", shown(start))
        # `startswith` would take a negative start from the end of the context.
        is_there = start >= 0 and question.context.startswith(text, start)
        spans.append(AnswerSpan(text, start if is_there else -1))
        if "answer_start" not in found and question.context.count(text) > 1:
            notes.add(_SEVERAL_PLACES)
    if any(span.start < 0 for span in spans):
        notes.add(_MISPLACED)
    grouped = (tuple(spans),) if several == "spans" and spans else tuple((span,) for span in spans)
    return Kept(place, replace(question, answers=grouped), tuple(sorted(notes)))


def _paragraphs(place: str, row: Any) -> Iterator[tuple[str, Any]]:
    """The paragraphs of an article with their paths, or a row that is one; a bad row for anything else."""
    if isinstance(row, dict) and ("qas" in row or first_of(row, _CONTEXTS) is not None):
        yield place, row
    elif not isinstance(row, dict) or not isinstance(row.get("paragraphs"), list):
        yield place, Bad(place, "an object with a list `paragraphs`", shown(row))
    else:
        for position, paragraph in enumerate(row["paragraphs"]):
            where = f"{place}.paragraphs[{position}]"
            is_object = isinstance(paragraph, dict)
            yield where, paragraph if is_object else Bad(where, "a paragraph with a `context`", shown(paragraph))


def _answers(item: Mapping[str, Any]) -> Any:
    """The answers to a question in SQuAD's form; MRQA has a list of the first and last characters of each."""
    answers = item.get("detected_answers", item.get("answers")) or []
    if "detected_answers" not in item or not isinstance(answers, list):
        return answers
    return [_detected(answer) if isinstance(answer, dict) else answer for answer in answers]


def _detected(answer: Mapping[str, Any]) -> Any:
    """An answer of MRQA in SQuAD's form, at the first of its places."""
    match start := answer.get("char_spans"):
        case [[first, _], *_]:
            start = first
    return {"text": answer.get("text"), "answer_start": start}


_Spans: TypeAlias = tuple[tuple[int, int], ...]


def guess_questions(attempt: Callable[..., Attempt], why: str, path: str) -> Guess | str:
    """The guess for questions, with the meaning of several answers to one.

    `attempt` reads the sample with settings of its reader, which are below `path`; `why` is the reason for the reader.
    """
    result = attempt()
    if _mostly_disjoint_answers(record for record in result.records if isinstance(record, QuestionRecord)):
        result = attempt(several="spans")
    reason = (
        "The answers to a question do not overlap, so they are taken to belong together; `alternatives` if they come "
        "from several annotators."
    )
    return result.guess({READER: why, f"{path}.several": reason})


def _mostly_disjoint_answers(records: Iterable[QuestionRecord]) -> bool:
    """Whether most questions with several answers have answers that do not overlap."""
    num_disjoint = num_overlap = 0
    for record in records:
        spans = {span for answer in record.answers for span in answer if span.start >= 0}
        if len(record.answers) < 2:
            continue
        overlap = len(spans) < len(record.answers) or any(
            first.start < second.start + len(second.text) and second.start < first.start + len(first.text)
            for first, second in combinations(spans, 2)
        )
        num_disjoint, num_overlap = num_disjoint + (not overlap), num_overlap + overlap
    return num_disjoint > num_overlap


class MrcNerReaderConfig(TextReaderBranch):
    """The format that the authors of "A Unified MRC Framework for NER" publish; nested spans stay nested."""

    name = "mrc_ner"
    record_type = QueryRecord

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        for number, item in json_rows(path, self.encoding):
            yield item if isinstance(item, Bad) else query_record(f"[{number - 1}]", item, labels)

    @classmethod
    def fits(cls, sample: Sample) -> Guess | str:
        if not sample.first_line.startswith("["):
            return "it does not begin with ["
        why = {READER: "A JSON list of sentences with a query and the positions of its spans."}
        return sample.attempt(cls).guess(why)


def query_record(place: str, item: Any, labels: Labels) -> RowResult:
    names = ("context", "query", "entity_label", "qas_id")
    if not isinstance(item, dict) or not all(isinstance(item.get(name), str) for name in names):
        return Bad(place, f"an object with texts {', '.join(names)}", shown(item))
    words = spaced_words(item["context"])
    spans: _Spans | Bad = () if labels == "ignored" else _spans(place, item, len(words))
    if isinstance(spans, Bad):
        return spans
    id_ = item["qas_id"]
    # The id without the number of the query, `3.1`, does not identify a sentence: what follows its last dot may be
    # something else. So a hash of the words is added.
    hashed = hashlib.sha256(" ".join(words).encode(errors="surrogatepass")).hexdigest()[:16]
    group = f"{id_.rpartition('.')[0] or id_}.{hashed}"
    return Kept(place, QueryRecord(id_, tuple(words), item["query"], item["entity_label"], spans, group))


def _spans(place: str, item: dict[str, Any], size: int) -> _Spans | Bad:
    """The spans of a query: its starts and ends paired in order, or as its `span_position` pairs them."""
    starts, ends = (_positions(item.get(name), size) for name in ("start_position", "end_position"))
    paired = item.get("span_position")
    if starts is None or ends is None or (paired is None and len(starts) != len(ends)):
        expected = f"as many start_position as end_position, from 0 to {size - 1}"
        return Bad(place, expected, f"{shown(item.get('start_position'))} and {shown(item.get('end_position'))}")
    pairs = list(zip(starts, ends, strict=True)) if paired is None else _pairs(paired)
    if pairs is None or {start for start, _ in pairs} != set(starts) or {end for _, end in pairs} != set(ends):
        expected = f'span_position as "first;last" of start_position {shown(starts)} and end_position {shown(ends)}'
        return Bad(place, expected, shown(paired))
    if any(start > end for start, end in pairs):
        return Bad(place, "each start_position at or before its end_position", shown(pairs))
    # The file gives the last word of a span, a record the one after it.
    return tuple((start, end + 1) for start, end in pairs)


def _pairs(values: Any) -> list[tuple[int, int]] | None:
    """The first and last word of each span in a `span_position`, such as "0;2"; None if it is malformed."""
    if not isinstance(values, list) or not all(
        isinstance(value, str) and re.fullmatch("[0-9]{1,9};[0-9]{1,9}", value) for value in values
    ):
        return None
    return [(int(first), int(last)) for first, last in (value.split(";") for value in values)]


def _positions(values: Any, size: int) -> list[int] | None:
    """The values if they are word indices in a sentence of this size, else None."""
    are_indices = isinstance(values, list) and all(type(value) is int and 0 <= value < size for value in values)
    return values if are_indices else None
