"""How a run, sweep or study is driven: where Ray runs, for how long, and on which screen progress is shown.

A driver whose Ray has lost its head, or another process without which nothing can run, cannot end by itself: its main
thread waits within Ray for an answer and runs no signal handler, and after some time Ray ends the process without a
word to the user (Ray 2.60). So a thread watches (`watched`) and ends the process (`end_driver`).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from threading import Thread
from typing import Final, Protocol, TextIO, TypeAlias

from dice_ray.errors import InputError, RunError, counted
from dice_ray.run import cluster
from dice_ray.run.cluster import Cluster
from dice_ray.settings import Flat
from dice_ray.tracking.writer import Writer
from dice_ray.training.evaluate import never
from dice_ray.training.loop import Evaluation, StepProgress

_PATIENCE: Final = 5.0  # seconds for which the head may be unreachable


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
        best_score: The value of the best trial; of a study the best mean of an arm.
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
    def num_ended(self) -> int:
        return self.done + self.failed + self.pruned

    @property
    def is_finished(self) -> bool:
        return self.num_ended == self.total

    def __str__(self) -> str:
        """One line: the counts, and the best so far."""
        states = f"{self.done} finished, {self.pruned} stopped early, {self.failed} failed of {self.total}"
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
        notes: Lines to show first.
        is_stopped: Asked after each step whether to stop there, such that the work can be resumed.
    """

    address: str | None = None
    num_cpus: int | None = None
    max_hours: float | None = None
    show: Show | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    is_stopped: Callable[[], bool] = never

    def __post_init__(self) -> None:
        hours: object = self.max_hours
        if hours is not None and not (isinstance(hours, int | float) and hours > 0):
            raise InputError(f"max_hours must be a number above 0, got {hours!r}")


def announce(screen: Screen | None, address: str | None = None) -> None:
    """Show that Ray starts or is joined, which takes seconds; nothing where it runs in this process already."""
    if screen is not None and (address := cluster.prepare(address)) != cluster.RUNNING:
        screen.show("Starting Ray ..." if address == "local" else f"Joining Ray at {address} ...")


@contextmanager
def watched(ray: Cluster, end: Callable[[], None]) -> Iterator[None]:
    """Call `end`, in another thread, as soon as Ray is lost; until the end of the block."""
    address = ray.address
    with _ended_once(lambda: ray.lost is not None if ray.is_own else _is_silent(address), end):
        yield


@contextmanager
def _ended_once(is_lost: Callable[[], bool], end: Callable[[], None]) -> Iterator[None]:
    """Ask until the end of the block, and call `end` once the answer was yes for `_PATIENCE`."""
    has_ended = threading.Event()

    def watch() -> None:
        last_well = time.monotonic()
        while not has_ended.wait(_PATIENCE / 5):
            if not is_lost():
                last_well = time.monotonic()
            elif time.monotonic() - last_well > _PATIENCE and not has_ended.is_set():
                end()
                return

    Thread(target=watch, name="head", daemon=True).start()
    try:
        yield
    finally:
        has_ended.set()


def _is_silent(address: str) -> bool:
    """Whether nothing answers at the address of a head."""
    host, _, port = address.rpartition(":")
    try:
        cluster.check_answers(host.strip("[]"), int(port), address)
    except RunError:
        return True
    return False


def lost_message(name: str) -> str:
    """What a run trained alone ends with."""
    return f"Ray must run until {name} ends, and does not: `dice-ray resume {name}` continues it"


def end_driver(message: str, stderr: TextIO, screens: ExitStack, writer: Writer) -> None:
    """End this process with a message, and its runs in MLflow if that answers."""

    def say(text: str) -> None:
        with suppress(OSError):  # of a closed terminal
            print(text, file=stderr, flush=True)

    screens.close()
    say(message)  # first, since Ray may end this process at any moment
    closing = Thread(target=writer.close, daemon=True)
    closing.start()
    closing.join(5)  # seconds; else they wait in the spool
    if closing.is_alive():
        say("MLflow does not answer: `dice-ray runs` ends the runs there later")
    os._exit(1)
