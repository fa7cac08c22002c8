"""Guesses for tables: TSV and CSV, JSON lines, Parquet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from dice_ray.data.guess.base import MOST_BAD, NUM_ROWS, READER, Guess, attempt, is_json, opening
from dice_ray.data.guess.choose import LABELS, PAIRS, TEXTS, Chosen, choose, classified
from dice_ray.data.guess.lists import question_rows, tagged_rows
from dice_ray.data.readers.base import Bad, NotJsonError, lines, parsed
from dice_ray.data.readers.columns import Column
from dice_ray.data.readers.rows import first_rows
from dice_ray.data.readers.tables import TablesConfig
from dice_ray.errors import DataError
from dice_ray.settings import Nested

DELIMITERS: Final = ("\t", ",", ";", "|")
NAMES: Final = frozenset([*LABELS, *TEXTS, *(name for pair in PAIRS for name in pair), "id", "idx", "index"])


@dataclass(frozen=True)
class Cells:
    """The cells of a table, read with and without quoting: whether it is quoted, and why."""

    rows: list[list[str]]
    quoting: bool
    why: str


def table(path: Path) -> Guess | str:
    """A table: its delimiter, quoting, header and columns."""
    if is_json(path):
        return "its first line is JSON"
    missed = "no tab, comma, semicolon or bar parts all rows into the same number of columns"
    for delimiter in DELIMITERS:
        cells = _cells(path, delimiter)
        if cells is None:
            continue
        header = _has_header(cells.rows)
        columns = choose(_named(cells.rows, header))
        if isinstance(columns, str):
            missed = columns
            continue
        written: Nested = {"quoting": cells.quoting}
        written |= {} if delimiter == "\t" else {"delimiter": delimiter}
        written |= {} if header else {"header": False}
        found = attempt(path, {"tables": written | {"columns": columns.written}})
        if found.missed:
            missed = found.missed
            continue
        named = "named by the first line" if header else "numbered from 0, as the first line is a row"
        why = {
            READER: f"{len(cells.rows[0])} columns in each row, {named}.",
            f"{READER}.tables.quoting": cells.why,
            f"{READER}.tables.columns": f"The label repeats few values, texts are long and differ.{columns.why}",
        }
        return classified(found, why)
    return missed


def _cells(path: Path, delimiter: str) -> Cells | None:
    """The first rows, with quoting where it reads as many of them."""
    (plain, num_lost), (quoted, num_lost_quoted) = (_read(path, delimiter, quoting) for quoting in (False, True))
    if quoted and (not plain or num_lost_quoted < num_lost):
        return Cells(quoted, True, "Only so do all rows have the same number of columns.")
    if plain and (not quoted or num_lost < num_lost_quoted):
        return Cells(plain, False, 'Quotes belong to the texts: taken as `"` around fields, they break rows.')
    if not plain:
        return None
    if quoted == plain:
        is_csv = delimiter != "\t"
        other = "`false` if quotes belong to the texts" if is_csv else "`true` if a quote should begin a quoted field"
        return Cells(plain, is_csv, f"No quote begins a field in the first rows; {other}.")
    return Cells(quoted, True, 'Fields stand in `"`, and all of them close; `false` if the quotes belong to the texts.')


def _read(path: Path, delimiter: str, quoting: bool) -> tuple[list[list[str]], int]:
    """The rows of the usual width, if nearly all have it and there are columns; and how many have another."""
    try:
        rows = [row for _, row in islice(TablesConfig(quoting=quoting, delimiter=delimiter).rows(path), NUM_ROWS)]
    except DataError:
        return [], 0
    if not rows or isinstance(rows[0], Bad) or len(rows[0]) < 2:
        return [], 0
    whole = [row for row in rows if not isinstance(row, Bad) and len(row) == len(rows[0])]
    num_lost = len(rows) - len(whole)
    return (whole, num_lost) if num_lost <= MOST_BAD * len(rows) else ([], 0)


def _has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names columns: by names that are known, or as its label is no label of another row."""
    if any(cell.strip().lower() in NAMES for cell in rows[0]):
        return True
    columns = choose(_named(rows[1:], header=False))
    if isinstance(columns, str):
        return False
    ((_, chosen),) = columns.written.items()
    labels = Counter(row[chosen["label"]] for row in rows[1:])
    return rows[0][chosen["label"]] not in labels


def _named(rows: Sequence[Sequence[str]], header: bool) -> list[Mapping[Column, Any]]:
    """The rows by the names of their columns; a column without a name of its own by its number."""
    names: list[Column] = list(range(len(rows[0]))) if rows else []
    if header:
        first = rows[0]
        names = [name if name and first.count(name) == 1 else number for number, name in enumerate(first)]
    return [dict(zip(names, row, strict=True)) for row in rows[header:]]


def json_lines(path: Path) -> Guess | str:
    """An object a line."""
    if opening(path) != "{":
        return "it does not begin with {"
    rows = list[Any]()
    for line, text in islice(((line, text) for line, text in lines(path) if text.strip()), NUM_ROWS):
        try:
            rows.append(parsed(text))
        except NotJsonError as error:
            if not rows:
                return f"line {line}: {error}"
    return _keyed(path, "jsonl", rows)


def parquet(path: Path) -> Guess | str:
    """A Parquet file."""
    return _keyed(path, "parquet", list(islice(first_rows(path), NUM_ROWS)))


def _keyed(path: Path, reader: str, rows: Sequence[Any]) -> Guess | str:
    """Rows with named values."""
    rows = [row for row in rows if isinstance(row, dict)]
    for guesser in (tagged_rows, question_rows) if rows else ():
        if isinstance(guess := guesser(path, reader, rows), Guess):
            return guess
    columns: Chosen | str = choose(rows)
    if isinstance(columns, str):
        return columns
    found = attempt(path, {reader: {"columns": columns.written}})
    if found.missed:
        return found.missed
    why = {
        READER: "An object with the same keys in each line." if reader == "jsonl" else "A Parquet file.",
        f"{READER}.{reader}.columns": f"The label repeats few values, texts are long and differ.{columns.why}",
    }
    return classified(found, why)
