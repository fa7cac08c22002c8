"""MRC-NER JSON: a list of sentences, each with a query for one entity type and the positions of its spans."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from dice_ray.data.readers.base import Bad, Kept, Labels, ReaderBranch, RowResult, document, shown, unreadable
from dice_ray.data.readers.conll import words_of
from dice_ray.data.records import QueryRecord, Record

Spans: TypeAlias = tuple[tuple[int, int], ...]


class MrcNerReaderConfig(ReaderBranch):
    """The format that the authors of "A Unified MRC Framework for NER" publish; nested spans stay nested."""

    name = "mrc_ner"

    def yields(self) -> type[Record]:
        return QueryRecord

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        root = document(path)
        if not isinstance(root, list):
            raise unreadable(path, 1, "a list of queries", shown(root))
        for number, item in enumerate(root):
            yield query_record(f"[{number}]", item, labels)


def query_record(place: str, item: Any, labels: Labels) -> RowResult:
    """The record of one query."""
    names = ("context", "query", "entity_label", "qas_id")
    if not isinstance(item, dict) or not all(isinstance(item.get(name), str) for name in names):
        return Bad(place, f"an object with texts {', '.join(names)}", shown(item))
    words = words_of(item["context"])
    spans: Spans | Bad = () if labels == "ignored" else _spans(place, item, len(words))
    if isinstance(spans, Bad):
        return spans
    group = _group(item["qas_id"], words)
    return Kept(place, QueryRecord(item["qas_id"], tuple(words), item["query"], item["entity_label"], spans, group))


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
    return tuple((start, end + 1) for start, end in pairs)


def _pairs(values: Any) -> list[tuple[int, int]] | None:
    """The first and last word of each span in a `span_position`, such as "0;2"; None if it is malformed."""
    if not isinstance(values, list):
        return None
    matches = [
        re.fullmatch(r"([0-9]{1,9});([0-9]{1,9})", value) if isinstance(value, str) else None for value in values
    ]
    pairs = [(int(match[1]), int(match[2])) for match in matches if match]
    return pairs if len(pairs) == len(values) else None


def _group(id_: str, words: list[str]) -> str:
    """Identifies a sentence: its id without the query number, and a hash of its words.

    The id alone is not enough: what follows its last dot need not be the number of the query.
    """
    hashed = hashlib.sha256(" ".join(words).encode(errors="surrogatepass")).hexdigest()[:16]
    return f"{id_.rpartition('.')[0] or id_}.{hashed}"


def _positions(values: Any, size: int) -> list[int] | None:
    """The values if they are word indices in a sentence of this size, else None."""
    are_indices = isinstance(values, list) and all(type(value) is int and 0 <= value < size for value in values)
    return values if are_indices else None
