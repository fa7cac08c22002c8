"""The events that a driver shows to the user, and the screen that shows them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TextIO, TypeAlias

from dice_ray.settings import Flat

if TYPE_CHECKING:
    from dice_ray.training.loop import Evaluation
    from dice_ray.training.loop import Progress as StepProgress


@dataclass(frozen=True)
class TrialCounts:
    """The number of trials (or cells) in each state, those of earlier drivers included.

    Attributes:
        elapsed: Seconds since this driver started.
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


Event: TypeAlias = "Evaluation | StepProgress | TrialCounts"


class Screen(Protocol):
    """Shows the events of a run, sweep or study to the user."""

    def show(self, event: Event) -> None: ...


Show: TypeAlias = Callable[[TextIO], AbstractContextManager[Screen]]
"""Opens a screen on the given terminal: the stdout that the process had before third-party output went to the log."""
