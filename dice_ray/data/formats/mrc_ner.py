"""MRC-NER JSON: a list of sentences, each with a query for one entity type and the positions of its spans."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from dice_ray.data.formats.base import Bad, Kept, Labels, RowResult, TextReaderBranch
from dice_ray.data.formats.conll import words_of
from dice_ray.data.formats.json_rows import json_rows
from dice_ray.data.records import QueryRecord
from dice_ray.errors import shown

Spans: TypeAlias = tuple[tuple[int, int], ...]
PAIR = re.compile(r"[0-9]{1,9};[0-9]{1,9}")


class MrcNerReaderConfig(TextReaderBranch):
    """The format that the authors of "A Unified MRC Framework for NER" publish; nested spans stay nested."""

    name = "mrc_ner"
    record_type = QueryRecord

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        for number, item in json_rows(path, self.encoding):
            yield item if isinstance(item, Bad) else query_record(f"[{number - 1}]", item, labels)


def query_record(place: str, item: Any, labels: Labels) -> RowResult:
    """The record of one query."""
    names = ("context", "query", "entity_label", "qas_id")
    if not isinstance(item, dict) or not all(isinstance(item.get(name), str) for name in names):
        return Bad(place, f"an object with texts {', '.join(names)}", shown(item))
    words = words_of(item["context"])
    spans: Spans | Bad = () if labels == "ignored" else _spans(place, item, len(words))
    if isinstance(spans, Bad):
        return spans
    id_ = item["qas_id"]
    # The id without the number of the query, `3.1`, does not identify a sentence: what follows its last dot may be
    # something else. So a hash of the words is added.
    hashed = hashlib.sha256(" ".join(words).encode(errors="surrogatepass")).hexdigest()[:16]
    group = f"{id_.rpartition('.')[0] or id_}.{hashed}"
    return Kept(place, QueryRecord(id_, tuple(words), item["query"], item["entity_label"], spans, group))


def _spans(place: str, item: dict[str, Any], size: int) -> Spans | Bad:
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
    if not isinstance(values, list) or not all(isinstance(value, str) and PAIR.fullmatch(value) for value in values):
        return None
    return [(int(first), int(last)) for first, last in (value.split(";") for value in values)]


def _positions(values: Any, size: int) -> list[int] | None:
    """The values if they are word indices in a sentence of this size, else None."""
    are_indices = isinstance(values, list) and all(type(value) is int and 0 <= value < size for value in values)
    return values if are_indices else None
