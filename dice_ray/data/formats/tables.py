"""Delimited tables: TSV and CSV, with or without a header, with or without quoting."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import Field

from dice_ray.data.formats.base import (
    MAX_BAD_SHARE,
    NUM_ROWS,
    READER,
    Attempt,
    Bad,
    Given,
    Guess,
    Kept,
    Labels,
    RowResult,
    Sample,
    TextReaderBranch,
)
from dice_ray.data.formats.candidates import begins_with_names, choose_columns
from dice_ray.data.formats.columns import ID, Column, PairColumns, TextColumns, literal
from dice_ray.data.formats.json_rows import is_json
from dice_ray.data.formats.lists import QuestionColumns, ReadColumns, SpanColumns, TaggedColumns, guess_lists
from dice_ray.data.formats.spans import guess_spans
from dice_ray.data.formats.tags import guess_tagging
from dice_ray.data.formats.text import spaced_words, undecoded, unreadable
from dice_ray.data.formats.words import SpanRows, WordColumns
from dice_ray.data.records import Record
from dice_ray.errors import DataError, UnknownNameError, meant, shown
from dice_ray.settings import Choice, Nested

_TableColumnsConfig: TypeAlias = Annotated[
    PairColumns | TextColumns | WordColumns | TaggedColumns | SpanColumns | SpanRows | QuestionColumns, Choice()
]
# By default `csv` refuses fields of over 131,072 characters, which documents have. Some limit must stay: with a quote
# that never closes, the rest of the file would be read into memory.
csv.field_size_limit(2**24)
_WORDS = frozenset({"words", "tags"})
_LISTS = _WORDS | {"spans", "answers", "start"}
"""The uses of columns whose cells may hold lists, as JSON or Python write them."""
_SWALLOWED = "quotes around several lines, each of which could be a row (if they are, `quoting: false`)"


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
    is_lax = True

    quoting: bool
    delimiter: str = Field("\t", min_length=1, max_length=1)
    header: bool = True
    columns: _TableColumnsConfig = PairColumns()

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
            # A file to predict need not have ids; where the data have none, a column `id` is one.
            column, width = used.pop("id", ID), len(first)
            if -width <= column < width if isinstance(column, int) else first.count(column) == 1:
                used["id"] = column
        indices = {use: self._index(path, line, first, column) for use, column in used.items()}
        cells = chain([] if self.header else [head], rows)
        whole = ((line, self._whole(line, row, len(first))) for line, row in cells)
        if isinstance(self.columns, WordColumns | SpanRows):
            yield from self.columns.sentences(
                (line, row if isinstance(row, Bad) else {use: row[index] for use, index in indices.items()})
                for line, row in whole
            )
            return
        for line, row in whole:
            if isinstance(row, Bad):
                yield row
                continue
            result = self.columns.row(line, {use: _parsed(use, row[index]) for use, index in indices.items()})
            if isinstance(result, Kept) and self._looks_swallowed(row):
                result = replace(result, notes=(*result.notes, _SWALLOWED))
            yield result

    def _whole(self, line: int, row: list[str] | Bad, width: int) -> list[str] | Bad:
        if isinstance(row, Bad) or len(row) == width:
            return row
        return Bad(line, f"{width} columns as in the first line", f"{len(row)}: {shown(self.delimiter.join(row))}")

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

    @classmethod
    def fits(cls, sample: Sample) -> Guess | str:
        """With its delimiter, quoting, header and columns."""
        if is_json(sample.first_line):
            return "its first line is JSON"
        if re.fullmatch("sep=.", sample.first_line):
            raise unreadable(sample.path, 1, "the names of the columns", f"{sample.first_line}: delete this line")
        missing: UnknownNameError | None = None
        share = f"{1 - MAX_BAD_SHARE:.0%}"
        reason = f"no tab, comma, semicolon or bar splits {share} of the rows into as many columns as the first"
        for delimiter in ("\t", ",", ";", "|"):
            if (cells := cls._cells(sample, delimiter)) is None:
                continue
            rows, quoting, why_quoting = cells
            settings: Nested = {"quoting": quoting} | ({} if delimiter == "\t" else {"delimiter": delimiter})
            try:
                found = cls._fits_rows(sample, rows, settings)
            except UnknownNameError as error:  # of a given column: it may be a table with another delimiter
                missing = missing or error
                continue
            if isinstance(found, Guess):
                return replace(found, why={f"{READER}.tables.quoting": why_quoting} | found.why)
            reason = found
        if missing is not None:
            raise missing
        return reason

    @classmethod
    def _fits_rows(cls, sample: Sample, rows: Sequence[Sequence[str]], settings: Nested) -> Guess | str:
        """The columns of a table: of words, of spans, of lists, or of texts with labels."""

        def read(columns: Nested) -> Attempt:
            return sample.attempt(cls, **settings, columns=columns)

        header, path = _has_header(rows, sample.given), f"{READER}.tables.columns"
        named = _named(rows, header)
        if not sample.given.columns and named:
            if words := WordColumns.choose(named):
                why = {READER: "One word in each row, with its sentence and its tag."}
                if isinstance(found := guess_tagging(read(words[0]), words[1], why), Guess):
                    return found
            if header and isinstance(found := _fits_cells(named, read, path), Guess):
                return found
        with_values, with_lists = _with_lists(named)
        chosen = choose_columns(with_values, sample.given)
        if isinstance(chosen, str):
            return chosen
        columns, why_columns = chosen
        if columns.get("text", {}).get("label") in with_lists:
            columns["text"]["lists"] = True
        settings |= {} if header else {"header": False}
        naming = "named by the first line" if header else "numbered from 0, as the first line is a row"
        return read(columns).guess({READER: f"{len(rows[0])} columns in each row, {naming}.", path: why_columns})

    @classmethod
    def _cells(cls, sample: Sample, delimiter: str) -> tuple[list[list[str]], bool, str] | None:
        """The first rows, whether they are quoted (whichever reads more) and why; None if neither reads a table."""
        (plain, num_lost), (quoted, num_lost_quoted) = (
            _whole_rows(cls(encoding=sample.encoding, quoting=quoting, delimiter=delimiter).rows(sample.path))
            for quoting in (False, True)
        )
        if quoted and (not plain or num_lost_quoted < num_lost):
            return quoted, True, "Without quoting, rows differ in their number of columns."
        if plain and (not quoted or num_lost < num_lost_quoted):
            return plain, False, "Quotes are part of the texts: with quoting, rows differ in their number of columns."
        if not plain:
            return None
        if quoted == plain:
            is_csv = delimiter != "\t"
            other = "`false` if quotes are part of the texts" if is_csv else "`true` if fields can be quoted"
            return plain, is_csv, f"No quote begins a field in the first rows; {other}."
        why = 'Fields are quoted with `"`, and all quotes close; `false` if the quotes are part of the texts.'
        return quoted, True, why


def _parsed(use: str, cell: str) -> Any:
    """The list in a cell, if its column may hold lists; of words and tags also as a text with spaces between them."""
    value = literal(cell) if use in _LISTS else cell
    return spaced_words(value) if use in _WORDS and isinstance(value, str) else value


def _whole_rows(rows: Iterator[tuple[int, list[str] | Bad]]) -> tuple[list[list[str]], int]:
    """The rows as wide as the first, if nearly all are and it has several columns; and the number of other rows."""
    try:
        first_rows = [row for _, row in islice(rows, NUM_ROWS)]
    except DataError:
        return [], 0
    if not first_rows or isinstance(first_rows[0], Bad) or len(first_rows[0]) < 2:
        return [], 0
    whole = [row for row in first_rows if not isinstance(row, Bad) and len(row) == len(first_rows[0])]
    num_lost = len(first_rows) - len(whole)
    return (whole, num_lost) if num_lost <= MAX_BAD_SHARE * len(first_rows) else ([], 0)


def _has_header(rows: Sequence[Sequence[str]], given: Given) -> bool:
    """Whether the first row is a header: it has a known column name, or its label occurs in no other row."""
    names = (*given.columns, *given.splits.values())
    if any(cell in names and not cell.isdecimal() for cell in rows[0]) or begins_with_names(rows):
        return True
    if WordColumns.choose(_named(rows, header=True)):
        return True
    chosen = choose_columns(_named(rows[1:], header=False))
    if isinstance(chosen, str):
        return False
    (columns,) = chosen[0].values()
    return "label" not in columns or all(row[columns["label"]] != rows[0][columns["label"]] for row in rows[1:])


def _fits_cells(rows: Sequence[Mapping[Column, str]], read: ReadColumns, path: str) -> Guess | str:
    """A table with a span in each row, or with lists in its cells."""
    if (columns := SpanRows.choose(rows)) is not None:
        return guess_spans(lambda **more: read({"span_rows": columns | more}), f"{path}.span_rows")
    return guess_lists([{str(name): literal(cell) for name, cell in row.items()} for row in rows], read, path)


def _with_lists(rows: Sequence[Mapping[Column, Any]]) -> tuple[Sequence[Mapping[Column, Any]], set[Column]]:
    """The rows with the lists of texts that cells hold, and the columns of which each cell holds one or is empty."""
    parsed = {column: [literal(row[column].strip()) for row in rows] for column in (rows[0] if rows else ())}
    lists = {
        column
        for column, cells in parsed.items()
        if any(cells)
        and all(
            cell is None or (isinstance(cell, list) and all(isinstance(item, str) for item in cell)) for cell in cells
        )
    }
    if not lists:
        return rows, lists
    return [{**row, **{column: parsed[column][number] for column in lists}} for number, row in enumerate(rows)], lists


def _named(rows: Sequence[Sequence[str]], header: bool) -> list[Mapping[Column, Any]]:
    """The rows by column name; by number for a column without a unique name."""
    names: list[Column] = list(range(len(rows[0]))) if rows else []
    if header:
        first = rows[0]
        names = [name if name and first.count(name) == 1 else number for number, name in enumerate(first)]
    return [dict(zip(names, row, strict=True)) for row in rows[header:]]
