"""SQuAD JSON: v1.1, v2.0, CMRC, QuoRef and MRQA, with or without answers, as articles or paragraphs of any nesting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from dice_ray.data.formats.base import UNLABELLED, Bad, Drop, Kept, Labels, RowPlace, RowResult, TextReaderBranch
from dice_ray.data.formats.json_rows import json_rows
from dice_ray.data.records import AnswerSpan, QuestionRecord
from dice_ray.errors import shown

MISPLACED = "an answer that does not stand at its answer_start"
SEVERAL_PLACES = "an answer without answer_start that occurs several times in its text, of which the first is taken"
CONTEXTS: Final = ("context", "context_text")
QUESTIONS: Final = ("question", "query_text")
IDS: Final = ("id", "qid", "query_id")
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
                context = _first(paragraph, CONTEXTS)
                if not isinstance(context, str):
                    yield Bad(where, "a paragraph with a `context`", shown(paragraph))
                elif not isinstance(paragraph.get("qas"), list):
                    yield Bad(where, "a paragraph with a list `qas`", shown(paragraph.get("qas")))
                else:
                    for index, item in enumerate(paragraph["qas"]):
                        found = self._question(f"{where}.qas[{index}]", item, context, where, labels)
                        yield replace(found, document=place) if isinstance(found, Kept) else found

    def _question(self, place: str, item: Any, context: str, group: str, labels: Labels) -> RowResult:
        text, id_ = (_first(item, names) if isinstance(item, dict) else None for names in (QUESTIONS, IDS))
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
            notes.add(SEVERAL_PLACES)
    if any(span.start < 0 for span in spans):
        notes.add(MISPLACED)
    grouped = (tuple(spans),) if several == "spans" and spans else tuple((span,) for span in spans)
    return Kept(place, replace(question, answers=grouped), tuple(sorted(notes)))


def _paragraphs(place: str, row: Any) -> Iterator[tuple[str, Any]]:
    """The paragraphs of an article with their paths, or a row that is one; a bad row for anything else."""
    if isinstance(row, dict) and ("qas" in row or _first(row, CONTEXTS) is not None):
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
    match answer.get("char_spans"):
        case [[first, _], *_]:
            return {"text": answer.get("text"), "answer_start": first}
        case places:
            return {"text": answer.get("text"), "answer_start": places}


def _first(values: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((values[name] for name in names if name in values), None)
