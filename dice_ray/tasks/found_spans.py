"""Spans that queries found in a sentence: what some thresholds of starts and ends predict, and what these ones do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dice_ray.metrics.decisions import Numbers
from dice_ray.metrics.spans import Span
from dice_ray.tasks.base import Decoded, Row
from dice_ray.tasks.queries import SpanRecord, asked, gold_of, sentence_of
from dice_ray.tasks.span_candidates import without_overlaps
from dice_ray.tasks.start_end import UNTUNED


class FoundSpan(NamedTuple):
    """A span that some thresholds predict.

    Attributes:
        start: The probability of its first word as a start.
        end: The probability of its last word as an end.
        nearer: That of the most probable end before it, where a start takes the nearest end; else 0.
        whole: The product of the probabilities of start, end and match.
    """

    span: Span
    start: float
    end: float
    nearer: float
    whole: float


def gold_spans(records: Sequence[SpanRecord]) -> dict[str, set[Span]]:
    """The gold spans of each sentence."""
    gold: dict[str, set[Span]] = {}
    for record in records:
        gold.setdefault(sentence_of(record), set()).update(gold_of(record))
    return gold


def found_spans(
    records: Sequence[SpanRecord], rows: Sequence[Row], decoded: Decoded, classes: Sequence[str]
) -> dict[str, list[FoundSpan]]:
    """What was decoded of each sentence: six numbers for a span, as the task decodes them."""
    by_sentence: dict[str, list[FoundSpan]] = {sentence_of(record): [] for record in records}
    for row, of_row in zip(rows, decoded, strict=True):
        sentence, type_ = asked(records[row["record"]], row["question"], classes)
        for place in range(0, len(of_row), 6):
            word, further, *probabilities = of_row[place : place + 6]
            first, end = int(row["words"][int(word)]), int(row["words"][int(word + further)]) + 1
            by_sentence[sentence].append(FoundSpan((type_, first, end), *probabilities))
    return by_sentence


def predicted_spans(spans: Iterable[FoundSpan], numbers: Numbers = UNTUNED) -> list[FoundSpan]:
    """The spans above the thresholds of a decision, or untuned."""
    start, end = numbers["start"], numbers["end"]
    return [each for each in spans if each.start > start and each.nearer <= end < each.end]


def distinct(spans: Iterable[FoundSpan], *, are_flat: bool) -> set[Span]:
    """The spans of a sentence; flat ones without those that overlap more probable ones."""
    best: dict[Span, float] = {}
    for each in spans:
        best[each.span] = max(each.whole, best.get(each.span, 0.0))
    return without_overlaps(best) if are_flat else set(best)


def num_candidates(rows: Sequence[Row]) -> int:
    return sum(int(sum(row["upto"]) - sum(row["above"])) for row in rows)
