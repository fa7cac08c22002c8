"""Guesses for TSV, CSV, JSON lines and Parquet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from dice_ray.data.formats.base import Bad
from dice_ray.data.formats.columns import Column, literal
from dice_ray.data.formats.json_rows import flat, json_rows, parted, row_lists
from dice_ray.data.formats.rows import table_rows
from dice_ray.data.formats.tables import TablesConfig
from dice_ray.data.guess.base import MAX_BAD_SHARE, NUM_ROWS, READER, Attempt, Guess, attempt, first_character, is_json
from dice_ray.data.guess.choose import LABELS, NOTHING_GIVEN, PAIRS, TEXTS, Given, choose, guess_classification
from dice_ray.data.guess.folder import lists_of_splits
from dice_ray.data.guess.lists import Read, guess_lists
from dice_ray.data.guess.spans import choose_span_rows, guess_span_settings
from dice_ray.data.guess.tagged import guess_tagging
from dice_ray.data.guess.words import choose_words
from dice_ray.errors import DataError, UnknownNameError
from dice_ray.settings import Nested

DELIMITERS: Final = ("\t", ",", ";", "|")
NAMES: Final = frozenset([*LABELS, *TEXTS, *(name for pair in PAIRS for name in pair), "id", "idx", "index"])

EXPORTED: Final = frozenset(["annotator", "lead_time"])
"""What a row of Label Studio's JSON-MIN has beside data and labels, at least."""
BOOKKEEPING: Final = EXPORTED | {"annotation_id", "created_at", "updated_at"}


def guess_table(path: Path, encoding: str, given: Given = NOTHING_GIVEN) -> Guess | str:
    """A delimited table: its delimiter, quoting, header and columns."""
    if is_json(path, encoding):
        return "its first line is JSON"
    missing: UnknownNameError | None = None
    reason = (
        f"no tab, comma, semicolon or bar splits {1 - MAX_BAD_SHARE:.0%} of the rows into as many columns as the first"
    )
    for delimiter in DELIMITERS:
        cells = _cells(path, encoding, delimiter)
        if cells is None:
            continue
        rows, quoting, why_quoting = cells
        settings: Nested = {"quoting": quoting} | ({} if delimiter == "\t" else {"delimiter": delimiter})
        header = _has_header(rows, given)
        named = _named(rows, header)
        if not given.columns and (words := choose_words(named)):
            result = attempt(path, encoding, {"tables": settings | {"columns": words[0]}})
            if not result.reason:
                why = {
                    READER: "One word in each row, with its sentence and its tag.",
                    f"{READER}.tables.quoting": why_quoting,
                }
                return guess_tagging(result, words[1], why)
        if header and named and not given.columns:
            found = _guess_cells(path, encoding, settings, named)
            if isinstance(found, Guess):
                return found
        with_values, with_lists = _with_lists(named)
        try:
            chosen = choose(with_values, given)
        except UnknownNameError as error:  # it may be a table with another delimiter
            missing = missing or error
            continue
        if isinstance(chosen, str):
            reason = chosen
            continue
        columns, note = chosen
        if columns.get("text", {}).get("label") in with_lists:
            columns["text"]["lists"] = True
        written = settings | ({} if header else {"header": False})
        result = attempt(path, encoding, {"tables": written | {"columns": columns}})
        if result.reason:
            reason = result.reason
            continue
        naming = "named by the first line" if header else "numbered from 0, as the first line is a row"
        why = {
            READER: f"{len(rows[0])} columns in each row, {naming}.",
            f"{READER}.tables.quoting": why_quoting,
            f"{READER}.tables.columns": f"The label repeats few values, texts are long and differ.{note}",
        }
        return guess_classification(result, why)
    if missing is not None:
        raise missing
    return reason


def _guess_cells(path: Path, encoding: str, settings: Nested, rows: Sequence[Mapping[Column, str]]) -> Guess | str:
    """A table with a span in each row, or with lists in its cells."""

    def read(columns: Nested) -> Attempt:
        return attempt(path, encoding, {"tables": settings | {"columns": columns}})

    setting = f"{READER}.tables.columns"
    if (columns := choose_span_rows(rows)) is not None:
        return guess_span_settings(lambda more: read({"span_rows": columns | more}), f"{setting}.span_rows")
    return guess_lists(read, setting, [{str(name): literal(cell) for name, cell in row.items()} for row in rows])


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


def _cells(path: Path, encoding: str, delimiter: str) -> tuple[list[list[str]], bool, str] | None:
    """The first rows, whether they are quoted (whichever reads more of them) and why; None if neither reads a table."""
    (plain, num_lost), (quoted, num_lost_quoted) = (
        _read(path, encoding, delimiter, quoting) for quoting in (False, True)
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
    return (
        quoted,
        True,
        'Fields are quoted with `"`, and all quotes close; `false` if the quotes are part of the texts.',
    )


def _read(path: Path, encoding: str, delimiter: str, quoting: bool) -> tuple[list[list[str]], int]:
    """The rows as wide as the first, if nearly all are and it has several columns; and the number of other rows."""
    try:
        rows = [
            row
            for _, row in islice(
                TablesConfig(encoding=encoding, quoting=quoting, delimiter=delimiter).rows(path), NUM_ROWS
            )
        ]
    except DataError:
        return [], 0
    if not rows or isinstance(rows[0], Bad) or len(rows[0]) < 2:
        return [], 0
    whole = [row for row in rows if not isinstance(row, Bad) and len(row) == len(rows[0])]
    num_lost = len(rows) - len(whole)
    return (whole, num_lost) if num_lost <= MAX_BAD_SHARE * len(rows) else ([], 0)


def _has_header(rows: Sequence[Sequence[str]], given: Given) -> bool:
    """Whether the first row is a header: it has a known column name, or its label occurs in no other row."""
    names = {name for name in given.columns if not name.isdecimal()}
    if any(cell in names for cell in rows[0]):
        return True
    for number, cell in enumerate(rows[0]):
        # A name that recurs below it is a label, such as `question`.
        if cell.strip().lower() in NAMES and all(row[number] != cell for row in rows[1:]):
            return True
    if choose_words(_named(rows, header=True)):
        return True
    chosen = choose(_named(rows[1:], header=False))
    if isinstance(chosen, str):
        return False
    (columns,) = chosen[0].values()
    return "label" not in columns or all(row[columns["label"]] != rows[0][columns["label"]] for row in rows[1:])


def _named(rows: Sequence[Sequence[str]], header: bool) -> list[Mapping[Column, Any]]:
    """The rows by column name; by number for a column without a unique name."""
    names: list[Column] = list(range(len(rows[0]))) if rows else []
    if header:
        first = rows[0]
        names = [name if name and first.count(name) == 1 else number for number, name in enumerate(first)]
    return [dict(zip(names, row, strict=True)) for row in rows[header:]]


def guess_json_lines(path: Path, encoding: str, given: Given = NOTHING_GIVEN) -> Guess | str:
    """JSON lines, or a document with a list of rows, or with one for each split."""
    if parted(path)[1] is not None:
        return _guess_rows(path, encoding, given)
    if first_character(path, encoding) not in ("{", "["):
        return "it does not begin with { or ["
    lists = lists_of_splits(keys) if len(keys := row_lists(path, encoding)) > 1 else {}
    if not lists:
        return _guess_rows(path, encoding, given)
    found = _guess_rows(path.with_name(f"{path.name}#{lists['train']}"), encoding, given)
    if isinstance(found, str):
        return found
    others = ", ".join(key for key in keys if key not in lists.values())
    why = "The lists of the splits in the document." + (f" These are not read: {others}." if others else "")
    return replace(found, lists=lists, why={f"{READER.rpartition('.')[0]}.train": why} | found.why)


def _guess_rows(path: Path, encoding: str, given: Given) -> Guess | str:
    """The guess for rows in JSON, of the whole file or of one list in it."""
    file, key = parted(path)
    rows = list[Any]()
    try:
        for _, row in islice(json_rows(file, encoding, key), NUM_ROWS):
            if not isinstance(row, Bad):
                rows.append(dict(enumerate(row)) if isinstance(row, list) else flat(row))
            elif not rows:
                return f"line {row.place}: {row.actual}"
    except DataError as error:
        if rows:  # it is JSON, which no other reader reads
            raise
        return str(error).removeprefix(f"{file}, ")
    read, setting = _reading(path, encoding, "jsonl")
    are_numbered = bool(rows) and isinstance(rows[0], dict) and 0 in rows[0]
    kind = "Lists of values, numbered from 0." if are_numbered else "Objects with the same keys."
    return guess_named_rows(read, setting, rows, given, kind)


def _without_bookkeeping(row: dict[Any, Any]) -> dict[Any, Any]:
    """A row of Label Studio's JSON-MIN without the numbers of annotators, which repeat as labels do, and the like."""
    is_export = row.keys() >= EXPORTED
    return {key: value for key, value in row.items() if key not in BOOKKEEPING} if is_export else row


def guess_columnar(path: Path, encoding: str, reader: str, given: Given = NOTHING_GIVEN) -> Guess | str:
    """A Parquet or Arrow file."""
    read, setting = _reading(path, encoding, reader)
    kind = {"parquet": "A Parquet file.", "arrow": "An Arrow file."}[reader]
    return guess_named_rows(read, setting, list(islice(table_rows(path), NUM_ROWS)), given, kind)


def _reading(path: Path, encoding: str, reader: str) -> tuple[Read, str]:
    """A function that reads the file by some columns, and the path of their setting."""
    return lambda columns: attempt(path, encoding, {reader: {"columns": columns}}), f"{READER}.{reader}.columns"


def guess_named_rows(read: Read, setting: str, rows: Sequence[Any], given: Given, kind: str = "") -> Guess | str:
    """Rows with named columns: tagged words, spans, questions, or texts with labels.

    Args:
        read: Reads the rows by some columns.
        setting: The path of the columns.
        rows: The first rows with all columns; others than objects are left out.
        given: What is not to be guessed.
        kind: The reason for the reader.
    """
    rows = [row if given.columns else _without_bookkeeping(row) for row in rows if isinstance(row, dict)]
    are_named = bool(rows) and all(isinstance(column, str) for column in rows[0])
    if are_named and not given.columns and isinstance(found := guess_lists(read, setting, rows), Guess):
        return found
    chosen = choose(rows, given)
    if isinstance(chosen, str):
        return chosen
    columns, note = chosen
    result = read(columns)
    if result.reason:
        return result.reason
    why = {READER: kind, setting: f"The label repeats few values, texts are long and differ.{note}"}
    return guess_classification(result, why)
