"""Delimited tables: TSV and CSV, with or without a header, with or without quoting."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import Field

from dice_ray.data.formats.base import Bad, Kept, Labels, RowResult, TextReaderBranch, undecoded, unreadable
from dice_ray.data.formats.columns import ID, Column, PairColumns, TextColumns, literal
from dice_ray.data.formats.conll import words_of
from dice_ray.data.formats.lists import ListBranch, QuestionColumns, SpanColumns, TaggedColumns
from dice_ray.data.formats.words import SpanRows, WordColumns
from dice_ray.data.records import Record
from dice_ray.errors import meant, shown
from dice_ray.settings import Choice

TableColumnsConfig: TypeAlias = Annotated[
    PairColumns | TextColumns | WordColumns | TaggedColumns | SpanColumns | SpanRows | QuestionColumns, Choice()
]
# By default `csv` refuses fields of over 131,072 characters, which documents have. Some limit must stay: with a quote
# that never closes, the rest of the file would be read into memory.
csv.field_size_limit(2**24)
WORDS = frozenset({"words", "tags"})
LISTS = WORDS | {"spans", "answers", "start"}
"""The uses of columns whose cells may hold lists, as JSON or Python write them."""
SWALLOWED = "quotes around several lines, each of which could be a row (if they are, `quoting: false`)"


class TablesConfig(TextReaderBranch):
    """A table with one record a row.

    Attributes:
        quoting: Whether `"` quotes fields, as in CSV. It has no default, as either choice silently damages some files:
            with quoting, a table with raw quotes (MRPC) loses rows; without it, a quoted one (QQP) keeps stray quotes.
        delimiter: The character between two cells.
        header: Whether the first line names the columns; without a header they are numbered.
        columns: The columns that make a record.
    """

    name = "tables"

    quoting: bool
    delimiter: str = Field("\t", min_length=1, max_length=1)
    header: bool = True
    columns: TableColumnsConfig = PairColumns()

    def yields(self) -> type[Record]:
        return self.columns.yields()

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        rows = self.rows(path)
        head = next(rows, None)
        if head is None:
            raise unreadable(path, 1, "a table", "an empty file")
        line, first = head
        if isinstance(first, Bad):
            raise unreadable(path, first.place, first.expected, first.actual)
        used = self.columns.used(labels)
        if labels == "ignored" and self.header:
            # A file to predict need not have ids; without any in the data, those of a column `id` are repeated.
            column, width = used.get("id"), len(first)
            if not (-width <= column < width if isinstance(column, int) else first.count(str(column)) == 1):
                used.pop("id", None)
            if "id" not in used and first.count(ID) == 1:
                used["id"] = ID
        indices = {use: self._index(path, line, first, column) for use, column in used.items()}
        cells = chain([] if self.header else [head], rows)
        by_use = ((line, self._by_use(line, row, len(first), indices)) for line, row in cells)
        if isinstance(self.columns, WordColumns | SpanRows):
            yield from self.columns.sentences(by_use)
            return
        for line, values in by_use:
            if isinstance(values, Bad):
                yield values
                continue
            if isinstance(self.columns, ListBranch):
                result = self.columns.record(line, {use: _parsed(use, cell) for use, cell in values.items()})
            else:
                result = self.columns.row(line, values)
            if SWALLOWED in values and isinstance(result, Kept):
                result = replace(result, notes=(*result.notes, SWALLOWED))
            yield result

    def _by_use(self, line: int, row: list[str] | Bad, width: int, indices: Mapping[str, int]) -> dict[str, str] | Bad:
        """The used cells of a row."""
        if isinstance(row, Bad):
            return row
        if len(row) != width:
            return Bad(line, f"{width} columns as in the first line", f"{len(row)}: {shown(self.delimiter.join(row))}")
        values = {use: row[index] for use, index in indices.items()}
        return values | ({SWALLOWED: ""} if self._looks_swallowed(row) else {})

    def _looks_swallowed(self, row: list[str]) -> bool:
        """Whether a row of several lines has as many delimiters in each of them as a row has."""
        lines = self.delimiter.join(row).split("\n")
        return len(lines) > 1 and len(row) > 1 and all(line.count(self.delimiter) == len(row) - 1 for line in lines)

    def _index(self, path: Path, line: int, first: list[str], column: Column) -> int:
        if isinstance(column, int):
            if -len(first) <= column < len(first):
                return column
            raise unreadable(path, line, f"a column number {column}", f"{len(first)} columns, the first is number 0")
        if not self.header:
            raise unreadable(path, line, f"a header that names the column {column!r}", "`header: false`: use numbers")
        if first.count(column) == 1:
            return first.index(column)
        if column in first:
            raise unreadable(path, line, f"one column named {column!r}", f"{first.count(column)}")
        found = undecoded(self.delimiter.join(first)) or ", ".join(map(repr, first)) + meant(column, first)
        raise unreadable(path, line, f"a column named {column!r}", found)

    def rows(self, path: Path) -> Iterator[tuple[int, list[str] | Bad]]:
        """The rows and the line on which each begins; empty lines are skipped."""
        if not self.quoting:
            for line, text in self.lines(path):
                if text:
                    yield line, text.split(self.delimiter)
            return
        raw: list[str] = []  # the lines of the current row

        def recorded_lines() -> Iterator[str]:
            for _, text in self.lines(path):
                raw.append(text)
                yield f"{text}\n"

        # `strict`: else text after a closing quote, or a quote open to the end of the file, would pass for a field.
        parser = csv.reader(recorded_lines(), delimiter=self.delimiter, strict=True)
        # No `for` loop: after an error the parser goes on with the next line.
        while True:
            line, problem, row = parser.line_num + 1, None, list[str]()
            raw.clear()
            try:
                row = next(parser)
            except StopIteration:
                return
            except csv.Error as error:
                problem = str(error)
            if problem and len(raw) > 1:
                # A quote that does not close in its row has swallowed other rows. Skipping would lose an unknown
                # number of them, so this is an error even with `on_bad_row: skip`.
                actual = f"a quote that is open to line {parser.line_num}"
                raise unreadable(path, line, "quotes that close within their row (or `quoting: false`)", actual)
            if problem:
                yield line, Bad(line, "fields quoted as CSV (or `quoting: false`)", problem)
            elif row:
                yield line, row


def _parsed(use: str, cell: str) -> Any:
    """The list in a cell, if its column may hold lists; of words and tags also as a text with spaces between them."""
    value = literal(cell) if use in LISTS else cell
    return words_of(value) if use in WORDS and isinstance(value, str) else value
