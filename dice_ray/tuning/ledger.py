"""What has run: one line when a trial begins and one when it ends, on the disk before anything goes on."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from dice_ray.errors import BusyError, RunError, first_line
from dice_ray.settings import Flat
from dice_ray.tracking.schema import State


class Begun(BaseModel):
    """A trial of a sweep or a cell of a study: what it runs.

    Attributes:
        id: Its name in the ledger, in its folder and in MLflow.
        params: What the search or the arm wrote, by path.
        seed: Its `training.seed`.
        arm: The arm of a study.
        rerun_of: The trial of a sweep whose configuration runs again, with another seed.
        variant: What the arm is run on, where the study has variants.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    event: Literal["begin"] = "begin"
    id: str
    params: Flat
    seed: int
    arm: str | None = None
    rerun_of: str | None = None
    variant: str | None = None

    @property
    def called(self) -> str:
        """What users call it: a trial by its id, a cell by its variant, arm and seed."""
        parts = [self.variant, self.arm, str(self.seed)]
        return self.id if self.arm is None else "/".join(part for part in parts if part is not None)


class Ended(BaseModel):
    """What became of it.

    Attributes:
        state: By itself, stopped by the scheduler, or by an error.
        curve: The score of each evaluation, with its optimizer step.
        metrics: All metrics of the evaluations, in the order of the curve.
        test: The scores on test, of a study's cell.
        failure: Why it failed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    event: Literal["end"] = "end"
    id: str
    state: State
    curve: tuple[tuple[int, float], ...] = ()
    metrics: tuple[dict[str, float], ...] = ()
    test: dict[str, float] = {}
    failure: str | None = None

    @cached_property  # a sweep of many trials asks at each end of one
    def score(self) -> float | None:
        """The best score, that of the checkpoint kept."""
        return max((score for _, score in self.curve), default=None)


_LINE: TypeAdapter[Begun | Ended] = TypeAdapter(Begun | Ended)


@dataclass
class History:
    """What began and what ended.

    Attributes:
        begun: Every trial by its id, in the order of beginning.
        ended: Those that ended.
    """

    begun: dict[str, Begun] = field(default_factory=dict)
    ended: dict[str, Ended] = field(default_factory=dict)

    @property
    def open(self) -> list[Begun]:
        """Trials that began and have not ended, in the order of beginning."""
        return [begun for id_, begun in self.begun.items() if id_ not in self.ended]

    def searched(self) -> History:
        """The trials that the search suggested, and no rerun of one: all that a search may learn from."""
        begun = {id_: begun for id_, begun in self.begun.items() if begun.rerun_of is None}
        return History(begun, {id_: ended for id_, ended in self.ended.items() if id_ in begun})


class Ledger(History):
    """The ledger of a folder, as read and as written on."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._size = 0
        for number, line in enumerate(self._whole_lines(), start=1):
            try:
                self._take(_LINE.validate_python(json.loads(line)))
            except (ValueError, ValidationError) as error:
                raise RunError(
                    f"{path}, line {number}: must say what began or ended, got {line[:80]!r}: {first_line(error)}"
                ) from error

    def append(self, event: Begun | Ended) -> None:
        """Note an event; it is on the disk when this returns."""
        self._take(event)
        line = json.dumps(event.model_dump(), ensure_ascii=False) + "\n"
        with self.path.open("r+b" if self.path.exists() else "wb") as file:
            file.truncate(self._size)  # a torn last line of a driver that was killed
            file.seek(self._size)
            self._size += file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())

    def _take(self, event: Begun | Ended) -> None:
        if isinstance(event, Begun):
            if event.id in self.begun and event.id not in self.ended:
                raise ValueError(f"{event.id} has begun already")
            self.begun[event.id] = event
            self.ended.pop(event.id, None)
        else:
            if event.id not in self.begun or event.id in self.ended:
                raise ValueError(f"{event.id} must have begun, once for each end")
            self.ended[event.id] = event

    def _whole_lines(self) -> Iterator[str]:
        """All lines but a torn last one, which had not been noted."""
        if not self.path.exists():
            return
        whole, newline, _ = self.path.read_bytes().rpartition(b"\n")
        self._size = len(whole) + len(newline)
        if newline:
            yield from whole.decode(errors="replace").split("\n")


@contextmanager
def driving(folder: Path) -> Iterator[Ledger]:
    """The ledger of a folder, to be written by this process alone.

    Raises:
        RunError: Another process drives the folder, or the ledger is damaged.
    """
    with alone(folder):
        yield Ledger(folder / "ledger.jsonl")


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Drive a folder by this process alone; the lock goes with the process, however it ends.

    Raises:
        BusyError: Another process drives the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BusyError(f"{folder} must have one driver: another process is running it now") from error
        yield
