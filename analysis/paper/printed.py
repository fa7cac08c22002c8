"""The paper's tables as printed, read from the CSV files beside this module.

A file begins with comment lines: the table's number and caption, then what is known about its numbers, among them each
F1 that is off by over .05 from its P and R, and each difference off by over .005 from its scores. A cell is a score, or
`-` where the paper has none, followed by the printed difference to the baseline in brackets. Blocks that are printed
below each other have a first column `data`; blocks beside each other have their title in the heading.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

METRICS: Final = {"Prec.": "precision", "Rec.": "recall", "EM": "exact", "F1": "f1", "Acc": "accuracy"}
"""Our metric by the printed heading."""
_ARMS: Final = {
    "": "cross_entropy",
    "CE": "cross_entropy",
    "WeightCE": "weighted_cross_entropy",
    "FL": "focal",
    "DL": "paper_dl",
    "DSC": "paper_dsc",
}
"""Our arm for what follows the `+` in the name of a printed row."""
_IMBALANCES: Final = {
    "original": "none",
    "+ positive": "add_positive",
    "+ negative": "add_negative",
    "- negative": "drop_negative",
    "+ positive & negative": "add_both",
}
"""Our name of the altered training set, by the title of a block of Table 8, which is about QQP."""


@dataclass(frozen=True)
class Block:
    """The columns of one data set, or of one training set.

    Attributes:
        title: As printed.
        headings: The last one is the score that arms are compared by.
    """

    title: str
    headings: tuple[str, ...]

    @property
    def data(self) -> str:
        """The data set, as presets name it in `tracking.published`."""
        return "qqp" if self.title in _IMBALANCES else _data_sets()[self.title]["data"]

    @property
    def imbalance(self) -> str:
        return _IMBALANCES.get(self.title, "none")


@dataclass(frozen=True)
class PrintedRow:
    """A printed row: its cells by the title of the block and the heading."""

    model: str
    cells: Mapping[str, Mapping[str, str]]

    @property
    def base(self) -> str:
        """The model without citation and loss: `BERT-MRC`."""
        return self.model.partition(" (")[0].partition("+")[0]

    @property
    def arm(self) -> str | None:
        """Our arm for this row; None for a cited baseline."""
        return _ARMS[self.model.partition(" (")[0].partition("+")[2]] if re.match("BERT|XLNet", self.model) else None


@dataclass(frozen=True)
class PrintedTable:
    """A table of the paper.

    Attributes:
        notes: What is known about its numbers.
        is_stacked: Whether its blocks are printed below each other, each with its own rows.
    """

    number: int
    caption: str
    notes: tuple[str, ...]
    blocks: tuple[Block, ...]
    rows: tuple[PrintedRow, ...]
    is_stacked: bool


@cache
def printed_tables() -> tuple[PrintedTable, ...]:
    """Tables 3 to 10."""
    return tuple(map(_read, range(3, 11)))


def table_1() -> dict[str, dict[str, str]]:
    """The rows of Table 1, each about a training split, by the name of the preset."""
    return {row["data"]: row for row in _lines("table_1")[1]}


@cache
def published_records() -> dict[str, int]:
    """The training records of the data sets of Tables 3 to 10, as presets name them: sentences or questions."""
    return {row["data"]: int(row["records"]) for row in _data_sets().values()}


@cache
def _data_sets() -> dict[str, dict[str, str]]:
    """The name in presets and the training records, by the title of a block."""
    return {row["title"]: row for row in _lines("data_sets")[1]}


def _read(number: int) -> PrintedTable:
    (first, *notes), rows = _lines(f"table_{number}")
    is_stacked = "data" in rows[0]
    columns: dict[str, dict[str, str]] = {}
    for column in (name for name in rows[0] if name not in ("data", "model")):
        title, _, heading = column.rpartition(" ")
        for block in dict.fromkeys(row["data"] for row in rows) if is_stacked else [title]:
            columns.setdefault(block, {})[heading] = column
    printed = [
        PrintedRow(
            row["model"],
            {
                block: {heading: row[column] for heading, column in of_block.items()}
                for block, of_block in columns.items()
                if row.get("data", block) == block
            },
        )
        for row in rows
    ]
    blocks = tuple(Block(title, tuple(of_block)) for title, of_block in columns.items())
    return PrintedTable(number, first.partition(": ")[2], tuple(notes), blocks, tuple(printed), is_stacked)


def _lines(name: str) -> tuple[list[str], list[dict[str, str]]]:
    """The comments and the rows of a file."""
    lines = Path(__file__).with_name(f"{name}.csv").read_text(encoding="utf-8").splitlines()
    comments = [line.removeprefix("# ") for line in lines if line.startswith("# ")]
    return comments, list(csv.DictReader(lines[len(comments) :]))
