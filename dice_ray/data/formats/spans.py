"""Texts with annotated spans: JSON of annotation tools, folders of brat, and PubTator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dice_ray.data.formats.annotated import PlacedText, SpanSettings
from dice_ray.data.formats.base import UNLABELLED, Bad, Drop, Labels, RowResult, TextReaderBranch
from dice_ray.data.formats.brat import brat_texts
from dice_ray.data.formats.json_rows import json_rows
from dice_ray.data.formats.json_spans import TEXTS, annotated, is_unlabelled
from dice_ray.data.formats.pubtator import is_pubtator, pubtator_texts
from dice_ray.errors import shown


class SpansConfig(SpanSettings, TextReaderBranch):
    """JSON lines or a JSON list of texts with their spans: `[start, end, type]`, or objects with these as keys.

    A text is split into words at spaces and symbols (into characters in Chinese, Japanese and Thai). A span that does
    not align with them is widened to whole words, which is counted. Where the file has words, spans are of words. A
    folder is read as brat's: texts with annotations in files `.txt` and `.ann`, whose lines become records. A file of
    PubTator (`pmid|t|title`, `pmid|a|abstract`, then a line for each span) gives a record of each title and abstract.

    Attributes:
        ends: Whether the end of a span is the place `after` its last character or word, or that of the `last` one.
        overlapping: Of spans that overlap the `longest` are kept, for the task `tagging`; or `all`, for `mrc_ner`.
    """

    name = "spans"

    def files(self, path: Path) -> list[Path]:
        if not path.is_dir():
            return [path]
        return sorted(each for each in path.iterdir() if each.suffix in (".txt", ".ann"))

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        if path.is_dir():
            texts: Iterator[PlacedText | Bad | Drop] = brat_texts(path, self.encoding, labels)
        elif is_pubtator(path, self.encoding):
            texts = pubtator_texts(path, self.encoding)
        else:
            texts = self._json_texts(path, labels)
        for text in texts:
            yield self.span_record(*text, labels=labels) if isinstance(text, PlacedText) else text

    def _json_texts(self, path: Path, labels: Labels) -> Iterator[PlacedText | Bad | Drop]:
        for line, row in json_rows(path, self.encoding):
            if isinstance(row, Bad):
                yield row
            elif isinstance(row, dict) and row.get("answer", "accept") != "accept" and labels == "read":
                yield Drop(line, "a text that the annotator did not accept")
            elif labels == "read" and is_unlabelled(row):
                yield Drop(line, UNLABELLED)
            elif (found := annotated(row)) is None:
                yield Bad(line, f"a text under one of {', '.join(TEXTS)}", shown(row))
            else:
                id_ = row["id"] if isinstance(row, dict) and type(row.get("id")) in (int, str) else line
                yield PlacedText(line, str(id_), found)
