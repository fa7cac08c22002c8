"""MRC-NER JSON: a sentence, a query for one type, and the first and last words of its spans."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dice_ray.data.readers.base import Bad, Found, Kept, Labels, ReaderBranch, document, shown, unreadable
from dice_ray.data.readers.conll import words_of
from dice_ray.data.records import QueryRecord, Record


class MrcNerConfig(ReaderBranch):
    """The list of queries that the authors of "A Unified MRC Framework for NER" publish; nested spans stay nested."""

    name = "mrc_ner"

    def yields(self) -> type[Record]:
        return QueryRecord

    def read(self, path: Path, labels: Labels = "read") -> Iterator[Found]:
        root = document(path)
        if not isinstance(root, list):
            raise unreadable(path, 1, "a list of queries", shown(root))
        for number, item in enumerate(root):
            yield _query(f"[{number}]", item, labels)


def _query(place: str, item: Any, labels: Labels) -> Found:
    names = ("context", "query", "entity_label", "qas_id")
    if not isinstance(item, dict) or not all(isinstance(item.get(name), str) for name in names):
        return Bad(place, f"an object with texts {', '.join(names)}", shown(item))
    words = words_of(item["context"])
    given = {"start_position": [], "end_position": []} if labels == "ignored" else item
    starts, ends = (_positions(given.get(name), len(words)) for name in ("start_position", "end_position"))
    if starts is None or ends is None or len(starts) != len(ends):
        expected = f"as many start_position as end_position, from 0 to {len(words) - 1}"
        return Bad(place, expected, f"{shown(item.get('start_position'))} and {shown(item.get('end_position'))}")
    spans = tuple((start, end + 1) for start, end in zip(starts, ends, strict=True))
    if any(start >= end for start, end in spans):
        return Bad(place, "each start_position at or before its end_position", f"{shown(starts)} and {shown(ends)}")
    group = _sentence(item["qas_id"], words)
    return Kept(place, QueryRecord(item["qas_id"], tuple(words), item["query"], item["entity_label"], spans, group))


def _sentence(id_: str, words: list[str]) -> str:
    """What names a sentence: its id without the number of the query, and its words, as an id may end in another number.

    The words are hashed.
    """
    hashed = hashlib.sha256(" ".join(words).encode(errors="surrogatepass")).hexdigest()[:16]
    return f"{id_.rpartition('.')[0] or id_}.{hashed}"


def _positions(values: Any, size: int) -> list[int] | None:
    """The values if they are the numbers of words in a sentence of this size."""
    sound = isinstance(values, list) and all(type(value) is int and 0 <= value < size for value in values)
    return values if sound else None
