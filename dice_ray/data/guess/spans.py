"""Guesses for texts with annotated spans: where spans end, and whether they overlap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from dice_ray.data.formats.columns import Column
from dice_ray.data.formats.span_files import ENDS, STARTS, is_pubtator
from dice_ray.data.formats.spans import MISALIGNED, MISPLACED, OVERLAPPING
from dice_ray.data.guess.base import MAX_BAD_SHARE, READER, Attempt, Guess, attempt, first_character
from dice_ray.data.guess.tagged import guess_nested, guess_tagging
from dice_ray.data.records import TaggedRecord
from dice_ray.settings import Nested

LABEL: Final = ("label", "type", "entity_type", "tag", "entity_label", "category", "class")
TEXT: Final = ("text", "sentence", "content", "document", "context")
IDS: Final = ("id", "doc_id", "text_id", "document_id", "sentence_id")


def guess_spans(path: Path, encoding: str) -> Guess | str:
    """Texts with spans in JSON or PubTator, or a folder of brat's files."""
    may_be_json = path.is_dir() or first_character(path, encoding) in ("[", "{")
    if not may_be_json and not is_pubtator(path, encoding):
        return "it is no JSON, and begins with no title as PubTator writes it"
    return guess_span_settings(lambda settings: attempt(path, encoding, {"spans": settings}), f"{READER}.spans")


def guess_span_settings(read: Callable[[Nested], Attempt], setting: str) -> Guess | str:
    """The guess for texts with spans: their ends are those that fit the words clearly better.

    Args:
        read: Reads the file with these settings of spans.
        setting: The path of the settings.
    """
    result = read({})
    settings: Nested = {}
    if result.reason or _num_wrong(result):
        last = read({"ends": "last"})
        if not last.reason and (result.reason or 2 * _num_wrong(last) < _num_wrong(result)):
            result, settings = last, {"ends": "last"}
    if result.reason:
        return result.reason
    if 2 * _num_wrong(result) > len(result.records):
        return f"in {_num_wrong(result)} of {len(result.records)} texts, spans do not fit the words"
    if all(set(record.tags) == {"O"} for record in result.records if isinstance(record, TaggedRecord)):
        return "no text has a span"
    why = {
        READER: "Texts with spans, which become tags of words.",
        f"{setting}.ends": "Ends are the places of last words or characters: spans then fit the words.",
    }
    num_overlapping = result.noted.get(OVERLAPPING, 0)
    if num_overlapping > MAX_BAD_SHARE * len(result.records):
        why[f"{setting}.overlapping"] = f"{num_overlapping} of {len(result.records)} texts have spans that overlap."
        alternative = "Without `overlapping`, the task `tagging` reads the longest of spans that overlap."
        return guess_nested(read(settings | {"overlapping": "all"}), alternative, why)
    return guess_tagging(result, "spans", why)


def choose_span_rows(rows: Sequence[Mapping[Column, str]]) -> Nested | None:
    """The value of the reader's `columns` for a table with a span in each row; None for any other table."""
    names = {str(column).lower(): column for column in (rows[0] if rows else ())}
    uses = {"text": TEXT, "start": STARTS, "end": ENDS, "label": LABEL, "id": IDS}
    found = {use: next((names[name] for name in known if name in names), None) for use, known in uses.items()}
    if any(found[use] is None for use in ("text", "start", "end", "label")):
        return None
    places = [row[column] for row in rows for column in (found["start"], found["end"]) if column is not None]
    if not all(not place.strip() or place.strip().removesuffix(".0").isdecimal() for place in places):
        return None
    return {
        use: column
        for use, column in found.items()
        if (column is not None and column != use) or (use == "id" and column)
    }


def _num_wrong(result: Attempt) -> int:
    """Rows that are malformed or whose spans do not fit the words."""
    return len(result.bad) + result.noted.get(MISALIGNED, 0) + result.noted.get(MISPLACED, 0)
