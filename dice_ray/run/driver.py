"""How a run, sweep or study is driven: where Ray runs, for how long, and on which screen progress is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, TextIO, TypeAlias

from dice_ray.errors import InputError, counted
from dice_ray.settings import Flat
from dice_ray.training.evaluate import never
from dice_ray.training.loop import Evaluation, StepProgress


@dataclass(frozen=True)
class RunningTrial:
    """A trial or cell that runs now, at its last evaluation.

    Attributes:
        name: For users.
        seconds: Since it started.
        step: Optimizer steps completed; 0 before the first evaluation.
        loss: Of training since the evaluation before.
        score: On dev.
    """

    name: str
    seconds: float
    step: int = 0
    loss: float | None = None
    score: float | None = None

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """Name, step, loss and score as texts; empty ones before the first evaluation."""
        loss, score = ("" if value is None else f"{value:.4f}" for value in (self.loss, self.score))
        return self.name, str(self.step or ""), loss, score


@dataclass(frozen=True)
class TrialCounts:
    """Progress of a sweep or study, including what earlier drivers did.

    Attributes:
        best_score: The best score; of a study the highest mean of an arm.
        elapsed: Seconds since this driver started.
        best_arm: The arm of a study with that mean; empty for a sweep, and for a study on several variants.
        num_seeds: The number of cells that it is the mean of.
        seconds_left: An estimate from the trials that this driver has ended; None before the first.
        trials: Those that run now.
    """

    running: int
    done: int
    failed: int
    pruned: int
    total: int
    best_score: float | None
    best_params: Flat
    elapsed: float
    best_arm: str = ""
    num_seeds: int = 0
    seconds_left: float | None = None
    trials: tuple[RunningTrial, ...] = ()

    @property
    def is_finished(self) -> bool:
        return self.done + self.failed + self.pruned == self.total

    def __str__(self) -> str:
        """One line: the counts, and the best so far."""
        states = f"{self.done} done, {self.pruned} stopped early, {self.failed} failed of {self.total}"
        best = "" if self.best_score is None else f"; best {self.best_score:.4f}"
        if best and self.best_arm:
            best += f" of {self.best_arm}, mean of {counted(self.num_seeds, 'seed')}"
        elif best and self.best_params:
            best += f" with {self.best_params}"
        return f"{self.elapsed:.0f} s: {states}{best}"


Event: TypeAlias = StepProgress | Evaluation | TrialCounts | str
"""What a driver reports: of a run its steps and evaluations, of a sweep or study its counts, of both lines of text."""


class Screen(Protocol):
    """Shows the events of a driver, several a second."""

    def show(self, event: Event) -> None: ...


Show: TypeAlias = Callable[[TextIO], AbstractContextManager[Screen]]
"""Makes a screen on the terminal, while stdout itself is redirected to the log."""


@dataclass(frozen=True)
class Driver:
    """The settings of a driver; results do not depend on them.

    Attributes:
        address: Of a Ray cluster to join; a local Ray is started where not given.
        num_cpus: CPUs of a local Ray; all of the machine where not given.
        max_hours: A sweep or study stops after this time, and can be resumed.
        show: Makes the screen; nothing is shown where not given.
        tags: The user's, of the run in MLflow, or of the parent run of a sweep or study.
        is_stopped: Asked after each step whether to stop there, such that the work can be resumed.
    """

    address: str | None = None
    num_cpus: int | None = None
    max_hours: float | None = None
    show: Show | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    is_stopped: Callable[[], bool] = never

    def __post_init__(self) -> None:
        if self.max_hours is not None and not self.max_hours >= 0:
            raise InputError(f"max_hours must be 0 or more, got {self.max_hours}")
