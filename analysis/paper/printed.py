"""The structure of a printed table of the paper, its parser, and the check that its numbers are consistent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

PRF: Final = {"Prec.": "precision", "Rec.": "recall", "F1": "f1"}
EM_F1: Final = {"EM": "exact", "F1": "f1"}
F1: Final = {"F1": "f1"}
ACC: Final = {"Acc": "accuracy"}
ARMS: Final = {"": "cross_entropy", "CE": "cross_entropy", "WeightCE": "weighted_cross_entropy", "FL": "focal"} | {
    "DL": "paper_dl",
    "DSC": "paper_dsc",
}
"""Our arm for what follows the `+` in the name of a printed row."""
_CELL: Final = re.compile(r"([\d.]+|-)(?:\(([-+][\d.]+)\))?$")


@dataclass(frozen=True)
class Cell:
    """A printed score, `-` for none, and the printed difference to the baseline."""

    score: str
    difference: str = ""

    @property
    def value(self) -> float | None:
        return None if self.score == "-" else float(self.score)

    def __str__(self) -> str:
        return f"{self.score} ({self.difference})" if self.difference else self.score


@dataclass(frozen=True)
class Block:
    """The columns of one data set, or of one training set.

    Attributes:
        title: As printed.
        metrics: The columns: our metric by the printed heading.
        data: The data set, as presets name it in `tracking.published`.
        task: Our task for it, if several fit the data.
        imbalance: Our name of the altered training set.
    """

    title: str
    metrics: dict[str, str]
    data: str
    task: str = ""
    imbalance: str = "none"


@dataclass(frozen=True)
class PrintedRow:
    """A printed row, with a cell for each column of each block."""

    model: str
    cells: tuple[tuple[Cell, ...], ...]

    @property
    def base(self) -> str:
        """The model without citation and loss: `BERT-MRC`."""
        return self.model.partition(" (")[0].partition("+")[0]

    @property
    def arm(self) -> str | None:
        """Our arm for this row; None for a cited baseline."""
        return ARMS[self.model.partition(" (")[0].partition("+")[2]] if re.match("BERT|XLNet", self.model) else None


@dataclass(frozen=True)
class PrintedTable:
    """A table of the paper.

    Attributes:
        stacked: Whether its blocks are printed below each other, each with its own rows.
    """

    number: int
    caption: str
    blocks: tuple[Block, ...]
    rows: tuple[PrintedRow, ...]
    notes: tuple[str, ...] = ()
    stacked: bool = False

    def footnotes(self) -> tuple[str, ...]:
        """What is known about its numbers, and the inconsistencies among them."""
        return (*self.notes, *map(str, inconsistencies(self)))


@dataclass(frozen=True)
class Inconsistency:
    """A printed number that differs from the one computed from its neighbours."""

    kind: str
    where: str
    printed: float
    computed: float

    def __str__(self) -> str:
        what = "its P and R give" if self.kind == "F1" else "the printed scores give"
        sign = "" if self.kind == "F1" else "+"
        return f"As printed, {self.where}: {self.kind} {self.printed:{sign}.2f}, {what} {self.computed:{sign}.2f}."


def inconsistencies(table: PrintedTable) -> Iterator[Inconsistency]:
    """F1 scores that differ by over .05 from their P and R, and differences by over .005 from their scores."""
    for number, block in enumerate(table.blocks):
        baseline: tuple[Cell, ...] = ()
        for row in table.rows:
            cells, where = row.cells[number], f"{block.title} {row.model.partition(' (')[0]}"
            if not cells:
                continue
            if list(block.metrics) == list(PRF) and all(cell.value is not None for cell in cells):
                precision, recall, f1 = (float(cell.score) for cell in cells)
                computed = 2 * precision * recall / (precision + recall)
                if abs(computed - f1) > 0.05:
                    yield Inconsistency("F1", where, f1, computed)
            if row.arm == "cross_entropy":
                baseline = cells
            for heading, cell, of_baseline in zip(block.metrics, cells, baseline, strict=False):
                if cell.difference:
                    computed = float(cell.score) - float(of_baseline.score)
                    if abs(computed - float(cell.difference)) > 0.005:
                        yield Inconsistency(f"{heading} difference", where, float(cell.difference), computed)


def rows(text: str, *, num_columns: tuple[int, ...]) -> tuple[PrintedRow, ...]:
    """Parse one row a line: the model, then the cells of each block, separated by bars."""
    parsed = []
    for line in text.strip().splitlines():
        model, *blocks = (part.strip() for part in line.split("|"))
        cells = tuple(tuple(_cell(written) for written in block.split()) for block in blocks)
        assert tuple(map(len, cells)) == num_columns, f"{line} must have {num_columns} cells"
        parsed.append(PrintedRow(model, cells))
    return tuple(parsed)


def stacked(*texts: str) -> tuple[PrintedRow, ...]:
    """Parse the rows of one block after the other; each row is empty in the other blocks."""
    parsed = []
    for number, text in enumerate(texts):
        for row in rows(text, num_columns=(3,)):
            cells = tuple(row.cells[0] if other == number else () for other in range(len(texts)))
            parsed.append(PrintedRow(row.model, cells))
    return tuple(parsed)


def _cell(written: str) -> Cell:
    match = _CELL.match(written)
    assert match is not None, f"{written} must be a score and perhaps a difference"
    return Cell(match[1], match[2] or "")
