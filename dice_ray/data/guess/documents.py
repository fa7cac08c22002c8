"""Guesses for documents: SQuAD and MRC-NER JSON, and sentiment trees."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from pathlib import Path

from dice_ray.data.guess.base import READER, Attempt, Guess, attempt, is_chinese, opening
from dice_ray.data.records import QueryRecord, QuestionRecord
from dice_ray.settings import Nested


def questions(path: Path) -> Guess | str:
    """SQuAD JSON: whether several answers are alternatives or wanted together, and whose evaluation scores."""
    if opening(path) != "{":
        return "it does not begin with {"
    return asked(
        lambda settings: attempt(path, {"squad": settings}),
        "A JSON object with a list `data` of paragraphs and their questions.",
        f"{READER}.squad",
    )


def asked(read: Callable[[Nested], Attempt], why: str, settings: str) -> Guess | str:
    """The guess for questions.

    Args:
        read: Reads the file by the settings of its reader.
        why: What shows that it holds questions.
        settings: The path of these settings.
    """
    found = read({})
    if found.missed:
        return found.missed
    records = [record for record in found.records if isinstance(record, QuestionRecord)]
    if not any(record.answers for record in records):
        return "no question has an answer, so there is nothing to learn from"
    if apart := _answers_stand_apart(records):
        found = read({"several": "spans"})
    task, reason = _scoring(records, apart)
    reasons = {
        READER: why,
        f"{settings}.several": "The answers to a question do not overlap, so they are taken to be wanted together; "
        "`alternatives` if they are those of several annotators.",
        "task": "Questions on texts.",
        "task.extractive_qa.scoring": reason,
    }
    return found.guess({"extractive_qa": task}, reasons)


def _scoring(records: Sequence[QuestionRecord], apart: bool) -> tuple[Nested, str]:
    """The settings of the task, and the reason for its evaluation."""
    if any(record.impossible for record in records):
        num = sum(record.impossible for record in records)
        return {"scoring": "squad_v2"}, f"{num} of {len(records)} questions have no answer."
    if apart:
        reason = "Questions with several answers; `squad_v1` with `spans: one` looks for one alone."
        return {"formulation": "token", "spans": "several", "scoring": "quoref"}, reason
    if is_chinese(record.context for record in records[:100]):
        return {"scoring": "cmrc"}, "The texts are Chinese."
    return {"scoring": "squad_v1"}, "Every question has an answer; `squad_v2` where some have none."


def _answers_stand_apart(records: Iterable[QuestionRecord]) -> bool:
    """Whether of the questions with several answers most have answers that do not overlap."""
    num_apart = num_overlap = 0
    for record in records:
        spans = {span for answer in record.answers for span in answer if span.start >= 0}
        if len(record.answers) < 2:
            continue
        meet = len(spans) < len(record.answers) or any(
            first.start < second.start + len(second.text) and second.start < first.start + len(first.text)
            for first, second in combinations(spans, 2)
        )
        num_apart, num_overlap = num_apart + (not meet), num_overlap + meet
    return num_apart > num_overlap


def queries(path: Path) -> Guess | str:
    """MRC-NER JSON: whether spans of a sentence share words."""
    if opening(path) != "[":
        return "it does not begin with ["
    found = attempt(path, {"mrc_ner": {}})
    if found.missed:
        return found.missed
    spans = defaultdict[str, set[tuple[int, int]]](set)
    for record in found.records:
        if isinstance(record, QueryRecord):
            spans[record.group].update(record.spans)
    nested = any(
        first[0] < second[1] and second[0] < first[1]
        for each in spans.values()
        for first, second in combinations(each, 2)
    )
    why = {
        READER: "A JSON list of sentences with a query and the positions of its spans.",
        "task": "Named entities, one query for each type.",
        "task.mrc_ner.spans": "Spans of one sentence share words."
        if nested
        else "No two spans of a sentence share words.",
    }
    return found.guess({"mrc_ner": {"spans": "nested" if nested else "flat"}}, why)


def trees(path: Path) -> Guess | str:
    """Sentiment trees."""
    if opening(path) != "(":
        return "it does not begin with ("
    found = attempt(path, {"trees": {}})
    if found.missed:
        return found.missed
    why = {
        READER: "A tree with a label at every node in each line: its sentences in five classes. "
        "`trees: {units: phrases}` takes every phrase, `trees: {classes: binary}` joins 0 with 1 and 3 with 4.",
        "task": "A text with one label.",
    }
    return found.guess({"text_classification": {}}, why)
