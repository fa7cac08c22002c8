"""Guesses for TSV, CSV, JSON lines and Parquet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from dice_ray.data.guess.base import MAX_BAD_SHARE, NUM_ROWS, READER, Guess, attempt, first_character, is_json
from dice_ray.data.guess.choose import LABELS, PAIRS, TEXTS, ChosenColumns, choose, guess_classification
from dice_ray.data.guess.lists import guess_question_rows, guess_tagged_rows
from dice_ray.data.readers.base import Bad, NotJsonError, lines, parse_json
from dice_ray.data.readers.columns import Column
from dice_ray.data.readers.rows import parquet_rows
from dice_ray.data.readers.tables import TablesConfig
from dice_ray.errors import DataError
from dice_ray.settings import Nested

DELIMITERS: Final = ("\t", ",", ";", "|")
NAMES: Final = frozenset([*LABELS, *TEXTS, *(name for pair in PAIRS for name in pair), "id", "idx", "index"])


@dataclass(frozen=True)
class Cells:
    """The cells of a table, whether they are quoted, and the reason."""

    rows: list[list[str]]
    quoting: bool
    why: str


def guess_table(path: Path) -> Guess | str:
    """A delimited table: its delimiter, quoting, header and columns."""
    if is_json(path):
        return "its first line is JSON"
    reason = "no tab, comma, semicolon or bar splits all rows into the same number of columns"
    for delimiter in DELIMITERS:
        cells = _cells(path, delimiter)
        if cells is None:
            continue
        header = _has_header(cells.rows)
        columns = choose(_named(cells.rows, header))
        if isinstance(columns, str):
            reason = columns
            continue
        written: Nested = {"quoting": cells.quoting}
        written |= {} if delimiter == "\t" else {"delimiter": delimiter}
        written |= {} if header else {"header": False}
        result = attempt(path, {"tables": written | {"columns": columns.written}})
        if result.reason:
            reason = result.reason
            continue
        naming = "named by the first line" if header else "numbered from 0, as the first line is a row"
        why = {
            READER: f"{len(cells.rows[0])} columns in each row, {naming}.",
            f"{READER}.tables.quoting": cells.why,
            f"{READER}.tables.columns": f"The label repeats few values, texts are long and differ.{columns.note}",
        }
        return guess_classification(result, why)
    return reason


def _cells(path: Path, delimiter: str) -> Cells | None:
    """The first rows with or without quoting, whichever reads more of them; None if neither reads a table."""
    (plain, num_lost), (quoted, num_lost_quoted) = (_read(path, delimiter, quoting) for quoting in (False, True))
    if quoted and (not plain or num_lost_quoted < num_lost):
        return Cells(quoted, True, "Without quoting, rows differ in their number of columns.")
    if plain and (not quoted or num_lost < num_lost_quoted):
        return Cells(
            plain, False, "Quotes are part of the texts: with quoting, rows differ in their number of columns."
        )
    if not plain:
        return None
    if quoted == plain:
        is_csv = delimiter != "\t"
        other = "`false` if quotes are part of the texts" if is_csv else "`true` if fields can be quoted"
        return Cells(plain, is_csv, f"No quote begins a field in the first rows; {other}.")
    return Cells(
        quoted, True, 'Fields are quoted with `"`, and all quotes close; `false` if the quotes are part of the texts.'
    )


def _read(path: Path, delimiter: str, quoting: bool) -> tuple[list[list[str]], int]:
    """The rows as wide as the first, if nearly all are and it has several columns; and the number of other rows."""
    try:
        rows = [row for _, row in islice(TablesConfig(quoting=quoting, delimiter=delimiter).rows(path), NUM_ROWS)]
    except DataError:
        return [], 0
    if not rows or isinstance(rows[0], Bad) or len(rows[0]) < 2:
        return [], 0
    whole = [row for row in rows if not isinstance(row, Bad) and len(row) == len(rows[0])]
    num_lost = len(rows) - len(whole)
    return (whole, num_lost) if num_lost <= MAX_BAD_SHARE * len(rows) else ([], 0)


def _has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row is a header: it has a known column name, or its label occurs in no other row."""
    if any(cell.strip().lower() in NAMES for cell in rows[0]):
        return True
    columns = choose(_named(rows[1:], header=False))
    if isinstance(columns, str):
        return False
    ((_, chosen),) = columns.written.items()
    return all(row[chosen["label"]] != rows[0][chosen["label"]] for row in rows[1:])


def _named(rows: Sequence[Sequence[str]], header: bool) -> list[Mapping[Column, Any]]:
    """The rows by column name; by number for a column without a unique name."""
    names: list[Column] = list(range(len(rows[0]))) if rows else []
    if header:
        first = rows[0]
        names = [name if name and first.count(name) == 1 else number for number, name in enumerate(first)]
    return [dict(zip(names, row, strict=True)) for row in rows[header:]]


def guess_json_lines(path: Path) -> Guess | str:
    """JSON lines."""
    if first_character(path) != "{":
        return "it does not begin with {"
    rows = list[Any]()
    for line, text in islice(((line, text) for line, text in lines(path) if text.strip()), NUM_ROWS):
        try:
            rows.append(parse_json(text))
        except NotJsonError as error:
            if not rows:
                return f"line {line}: {error}"
    return _guess_rows(path, "jsonl", rows)


def guess_parquet(path: Path) -> Guess | str:
    """A Parquet file."""
    return _guess_rows(path, "parquet", list(islice(parquet_rows(path), NUM_ROWS)))


def _guess_rows(path: Path, reader: str, rows: Sequence[Any]) -> Guess | str:
    """Rows with named columns: tagged words, questions, or texts with labels."""
    rows = [row for row in rows if isinstance(row, dict)]
    for guesser in (guess_tagged_rows, guess_question_rows) if rows else ():
        if isinstance(guess := guesser(path, reader, rows), Guess):
            return guess
    columns: ChosenColumns | str = choose(rows)
    if isinstance(columns, str):
        return columns
    result = attempt(path, {reader: {"columns": columns.written}})
    if result.reason:
        return result.reason
    why = {
        READER: "An object with the same keys in each line." if reader == "jsonl" else "A Parquet file.",
        f"{READER}.{reader}.columns": f"The label repeats few values, texts are long and differ.{columns.note}",
    }
    return guess_classification(result, why)
