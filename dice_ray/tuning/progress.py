"""How far a sweep or study is, and what shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from dice_ray.settings import Flat


@dataclass(frozen=True)
class Progress:
    """How far a sweep or study is; what earlier drivers did is counted.

    Attributes:
        elapsed: Seconds since this driver began.
    """

    running: int
    done: int
    failed: int
    pruned: int
    total: int
    best_score: float | None
    best_params: Flat
    elapsed: float

    @property
    def is_finished(self) -> bool:
        return self.done + self.failed + self.pruned == self.total


class Screen(Protocol):
    """What shows progress to the user; it is told several times a second."""

    def update(self, state: Progress) -> None: ...
