"""What became of a fault: the outcome of one try, and the rows of the table that tries are counted in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias


@dataclass(frozen=True)
class Try:
    """One fault at one moment.

    Attributes:
        moment: What was done and when, in words.
        seconds: Until the fault was noticed, or the work went on without what was lost; None where there is none.
        lost: How much is missing that was written before or should have come: trials, runs, points.
        doubled: How much is there twice.
        faults: What else is wrong, in words.
    """

    moment: str
    seconds: float | None = None
    lost: int = 0
    doubled: int = 0
    faults: tuple[str, ...] = ()

    @property
    def survived(self) -> bool:
        return not (self.lost or self.doubled or self.faults)


Row: TypeAlias = Callable[[Path, int], Iterator[Try]]
"""Makes so many tries in a folder of its own, and returns at least so many."""
Rows: TypeAlias = Mapping[str, Row]


def sharing(tries: Sequence[Try], whole: Try) -> Iterator[Try]:
    """The tries of one sweep, with what is wrong with the sweep as a whole: none of them has survived it.

    What is lost and doubled in all is counted once, with the first one.
    """
    faults = whole.faults
    if whole.lost or whole.doubled:
        faults += (f"their sweep has lost {whole.lost} and doubled {whole.doubled}",)
    for number, each in enumerate(tries):
        lost, doubled = (each.lost, each.doubled) if number else (each.lost + whole.lost, each.doubled + whole.doubled)
        yield replace(each, lost=lost, doubled=doubled, faults=each.faults + faults)
