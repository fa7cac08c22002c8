"""What a printed table is, how its rows are read, and what does not add up in them."""

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
"""What follows the `+` of a row's name: the arm that stands there."""
_CELL: Final = re.compile(r"([\d.]+|-)(?:\(([-+][\d.]+)\))?$")


@dataclass(frozen=True)
class Cell:
    """A printed score, `-` where there is none, and the printed difference to the baseline."""

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
        metrics: The columns: our metric by the heading printed.
        data: The folder that our presets read it from.
        task: Of ours that makes it, where several could.
        imbalance: The altered training set, in our name.
    """

    title: str
    metrics: dict[str, str]
    data: str
    task: str = ""
    imbalance: str = "none"


@dataclass(frozen=True)
class Row:
    """A printed row: a cell for each column of each block."""

    model: str
    cells: tuple[tuple[Cell, ...], ...]

    @property
    def base(self) -> str:
        """The model without citation and loss: `BERT-MRC`."""
        return self.model.partition(" (")[0].partition("+")[0]

    @property
    def arm(self) -> str | None:
        """The arm that stands in this row; none for a cited baseline."""
        return ARMS[self.model.partition(" (")[0].partition("+")[2]] if re.match("BERT|XLNet", self.model) else None


@dataclass(frozen=True)
class Printed:
    """A table of the paper.

    Attributes:
        stacked: Whether its blocks stand below each other, with rows of their own.
    """

    number: int
    caption: str
    blocks: tuple[Block, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    stacked: bool = False

    def footnotes(self) -> tuple[str, ...]:
        """What is known of its figures, and what does not add up in them."""
        return (*self.notes, *(str(oddity) for oddity in oddities(self)))


@dataclass(frozen=True)
class Oddity:
    """A printed figure that its neighbours do not give."""

    kind: str
    where: str
    printed: float
    given: float

    def __str__(self) -> str:
        what = "its P and R give" if self.kind == "F1" else "the printed scores give"
        sign = "" if self.kind == "F1" else "+"
        return f"As printed, {self.where}: {self.kind} {self.printed:{sign}.2f}, {what} {self.given:{sign}.2f}."


def oddities(table: Printed) -> Iterator[Oddity]:
    """F1 scores that differ from those of their own P and R by more than .05, and differences that do not add up."""
    for number, block in enumerate(table.blocks):
        baseline: tuple[Cell, ...] = ()
        for row in table.rows:
            cells, where = row.cells[number], f"{block.title} {row.model.partition(' (')[0]}"
            if not cells:
                continue
            if list(block.metrics) == list(PRF) and all(cell.value is not None for cell in cells):
                precision, recall, f1 = (float(cell.score) for cell in cells)
                given = 2 * precision * recall / (precision + recall)
                if abs(given - f1) > 0.05:
                    yield Oddity("F1", where, f1, given)
            if row.arm == "cross_entropy":
                baseline = cells
            for heading, cell, of_baseline in zip(block.metrics, cells, baseline, strict=False):
                if cell.difference:
                    given = float(cell.score) - float(of_baseline.score)
                    if abs(given - float(cell.difference)) > 0.005:
                        yield Oddity(f"{heading} difference", where, float(cell.difference), given)


def rows(text: str, *, num_columns: tuple[int, ...]) -> tuple[Row, ...]:
    """A row a line: the model, then the cells of each block, behind bars."""
    found = []
    for line in text.strip().splitlines():
        model, *blocks = (part.strip() for part in line.split("|"))
        cells = tuple(tuple(_cell(written) for written in block.split()) for block in blocks)
        assert tuple(map(len, cells)) == num_columns, f"{line} must have {num_columns} cells"
        found.append(Row(model, cells))
    return tuple(found)


def stacked(*texts: str) -> tuple[Row, ...]:
    """The rows of each block in turn, which are empty in the others."""
    found = []
    for number, text in enumerate(texts):
        for row in rows(text, num_columns=(3,)):
            found.append(Row(row.model, tuple(row.cells[0] if other == number else () for other in range(len(texts)))))
    return tuple(found)


def _cell(written: str) -> Cell:
    found = _CELL.match(written)
    assert found is not None, f"{written} must be a score and perhaps a difference"
    return Cell(found[1], found[2] or "")
