"""Guesses for SQuAD JSON, MRC-NER JSON, trees, fastText, TREC, and folders of classes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, islice
from pathlib import Path
from typing import Final

from dice_ray.data.formats.base import lines
from dice_ray.data.formats.texts import NO_CLASS, TWO_PARTS, classes_in
from dice_ray.data.guess.base import (
    MAX_BAD_SHARE,
    NUM_ROWS,
    READER,
    Attempt,
    Guess,
    attempt,
    first_character,
    is_chinese,
)
from dice_ray.data.guess.choose import are_labels, are_texts, guess_classification
from dice_ray.data.guess.tagged import guess_tagging
from dice_ray.data.records import QueryRecord, QuestionRecord, TextRecord
from dice_ray.errors import DataError
from dice_ray.settings import Nested

NUM_SHOWN: Final = 10
"""The classes that a comment names."""


def guess_squad(path: Path, encoding: str) -> Guess | str:
    """SQuAD JSON, with the meaning of several answers and the evaluation that fits."""
    if first_character(path, encoding) not in ("{", "["):
        return "it does not begin with { or ["
    return guess_questions(
        lambda settings: attempt(path, encoding, {"squad": settings}),
        "Paragraphs and their questions in JSON.",
        f"{READER}.squad",
    )


def guess_questions(read: Callable[[Nested], Attempt], why: str, settings: str) -> Guess | str:
    """The guess for questions.

    Args:
        read: Reads the file with these settings of its reader.
        why: The reason for the reader.
        settings: The path of the settings.
    """
    result = read({})
    if result.reason:
        return result.reason
    records = [record for record in result.records if isinstance(record, QuestionRecord)]
    if not any(record.answers for record in records):
        return "no question has an answer, so there is nothing to learn from"
    if are_spans := _mostly_disjoint_answers(records):
        result = read({"several": "spans"})
    task, reason = _scoring(records, are_spans)
    reasons = {
        READER: why,
        f"{settings}.several": "The answers to a question do not overlap, so they are taken to belong together; "
        "`alternatives` if they come from several annotators.",
        "task": "Questions on texts.",
        "task.extractive_qa.scoring": reason,
    }
    return result.guess({"extractive_qa": task}, reasons)


def _scoring(records: Sequence[QuestionRecord], are_spans: bool) -> tuple[Nested, str]:
    """The settings of the task, and the reason for its scoring."""
    if any(record.impossible for record in records):
        num = sum(record.impossible for record in records)
        return {"scoring": "squad_v2"}, f"{num} of {len(records)} questions have no answer."
    if are_spans:
        reason = "Questions with several answers; `squad_v1` with `spans: one` predicts only one."
        return {"formulation": "token", "spans": "several", "scoring": "quoref"}, reason
    if is_chinese(record.context for record in records[:100]):
        return {"scoring": "cmrc"}, "The texts are Chinese."
    return {"scoring": "squad_v1"}, "Every question has an answer; `squad_v2` if some have none."


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


def guess_mrc_ner(path: Path, encoding: str) -> Guess | str:
    """MRC-NER JSON, nested if spans of a sentence share words."""
    if first_character(path, encoding) != "[":
        return "it does not begin with ["
    result = attempt(path, encoding, {"mrc_ner": {}})
    if result.reason:
        return result.reason
    spans = defaultdict[str, set[tuple[int, int]]](set)
    for record in result.records:
        if isinstance(record, QueryRecord):
            spans[record.group].update(record.spans)
    nested = any(
        first[0] < second[1] and second[0] < first[1]
        for of_sentence in spans.values()
        for first, second in combinations(of_sentence, 2)
    )
    why = {
        READER: "A JSON list of sentences with a query and the positions of its spans.",
        "task": "Named entities, one query for each type.",
        "task.mrc_ner.spans": "Spans of one sentence share words."
        if nested
        else "No two spans of a sentence share words.",
    }
    return result.guess({"mrc_ner": {"spans": "nested" if nested else "flat"}}, why)


def guess_trees(path: Path, encoding: str) -> Guess | str:
    """Sentiment trees, or trees of the Penn Treebank."""
    if first_character(path, encoding) != "(":
        return "it does not begin with ("
    result = attempt(path, encoding, {"trees": {}})
    if result.reason:
        tagged = attempt(path, encoding, {"trees": {"units": "words"}})
        why = {READER: "Trees of the Penn Treebank; the words are read with their parts of speech, without traces."}
        return result.reason if tagged.reason else guess_tagging(tagged, "plain", why)
    why = {
        READER: "A tree with a label at every node in each line; its sentences are read, in five classes. "
        "`trees: {units: phrases}` reads every phrase, `trees: {classes: binary}` merges 0 with 1 and 3 with 4.",
        "task": "A text with one label.",
    }
    return result.guess({"text_classification": {}}, why)


def guess_fasttext(path: Path, encoding: str) -> Guess | str:
    """Texts behind labels with a prefix, or behind one label of two parts."""
    first = next((text for _, text in lines(path, encoding) if text.strip()), "")
    if first.startswith("__label__"):
        result = attempt(path, encoding, {"fasttext": {}})
        return result.reason or guess_classification(result, {READER: "Each text stands behind its labels."})
    if not TWO_PARTS.match(first):
        return "it begins neither with __label__ nor with a label of two parts, such as DESC:manner"
    result = attempt(path, encoding, {"fasttext": {"label": "fine"}})
    records = [record for record in result.records if isinstance(record, TextRecord)]
    num_lines = sum(bool(text.strip()) for _, text in islice(lines(path, encoding), NUM_ROWS))
    if len(records) < (1 - MAX_BAD_SHARE) * num_lines:
        return f"{num_lines - len(records)} of {num_lines} lines do not begin with a label of two parts"
    # A record of logged values also begins with `name:value`.
    if not are_labels([record.labels[0] for record in records]) or not are_texts([record.text for record in records]):
        return "its lines begin with words with a colon, but these do not repeat as labels do, or no texts follow"
    why = {
        READER: "Each text stands behind a label with a coarse and a fine part.",
        f"{READER}.fasttext.label": "Labels are read whole; `coarse` reads the part before the colon.",
    }
    return guess_classification(result, why)


def guess_classes(folder: Path, encoding: str) -> Guess:
    """A folder of texts for each class.

    Raises:
        DataError: No text can be read.
    """
    result = attempt(folder, encoding, {"folders": {}})
    if result.reason:
        raise DataError(f"{folder}: a folder for each class must hold texts in files .txt: {result.reason}")
    names = classes_in(folder)
    unlabelled = f" Texts in {NO_CLASS} have no label, and are dropped." if NO_CLASS in names else ""
    classes = ", ".join([name for name in names if name != NO_CLASS][:NUM_SHOWN])
    why = {READER: f"A folder for each class, a text in each file: {classes}.{unlabelled}"}
    found = guess_classification(result, why)
    assert isinstance(found, Guess), "each folder is a label"
    return found
