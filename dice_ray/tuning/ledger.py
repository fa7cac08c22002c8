"""What has run: an append-only file with one line when a trial starts and one when it ends.

The ledger is the only record that a sweep or study resumes from; Ray's own snapshots are not used. (Restoring Ray's
Tuner after `kill -9` lost 12 finished trials, ran 6 twice and reported 81 results twice in 6 kills of 16 trials, Ray
2.60.) Its invariants:

- A line is flushed to the disk (fsync) before anything else learns of the event. After a crash, MLflow and the trials'
  folders may be behind the ledger, never ahead of it.
- One process appends at a time (`files.lock`). The last line may be torn by a kill: it is ignored, and cut off by
  the next append. Any other line that cannot be read, or has another checksum than it was written with, is an error.
- A trial that has started and not ended is run again under the same id, in the same folder, from its last checkpoint. A
  cell that failed may start again: its second start removes its first end.

Its scores are gains (`metrics.catalogue.gain`): of a metric that is minimised, the values with a minus sign. So what
reads a ledger, Optuna and the pruners too, maximises. The metrics beside them are values, as MLflow and screens show.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from dice_ray.errors import RunError, first_line
from dice_ray.files import sealed, unsealed
from dice_ray.run.folder import LEDGER, TRIALS
from dice_ray.settings import Flat
from dice_ray.tracking.schema import State


class TrialSpec(BaseModel):
    """What a trial of a sweep or a cell of a study runs; the line of its start.

    Attributes:
        id: Its name in the ledger, in its folder and in MLflow.
        params: What the search or the arm sets, by path.
        seed: Its `training.seed`.
        arm: The arm of a study.
        rerun_of: The trial of a sweep whose configuration is run again, with another seed.
        variant: The variant of a study that has several.
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
    def name(self) -> str:
        """Its name for users, within its sweep or study."""
        return run_name(self.id, self.arm, self.seed, self.variant)


def run_name(id_: str, arm: str | None, seed: int | None, variant: str | None) -> str:
    """The name of a trial or cell for users: a trial's id, `ARM/SEED` or `VARIANT/ARM/SEED` of a cell."""
    return id_ if arm is None else "/".join(str(part) for part in (variant, arm, seed) if part is not None)


class TrialOutcome(BaseModel):
    """The result of a trial or cell; the line of its end.

    Attributes:
        state: Whether it was done, pruned (stopped early) or failed.
        curve: Optimizer step and score (the gain of the objective) of each evaluation.
        metrics: All metrics of the evaluations, in the order of the curve.
        test: The metrics on test, of a study's cell.
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

    @cached_property  # a sweep of many trials reads it at each end of one
    def score(self) -> float | None:
        """The highest score, that of the retained checkpoint; None if it failed or was never evaluated."""
        return None if self.state == "failed" else max((score for _, score in self.curve), default=None)


_LINE: TypeAdapter[TrialSpec | TrialOutcome] = TypeAdapter(TrialSpec | TrialOutcome)


@dataclass
class History:
    """Trials that have started, and the outcomes of those that have ended, by id in the order of the events."""

    specs: dict[str, TrialSpec] = field(default_factory=dict)
    outcomes: dict[str, TrialOutcome] = field(default_factory=dict)

    @property
    def ended(self) -> list[tuple[TrialSpec, TrialOutcome]]:
        """The trials that have ended, in the order of their start."""
        return [(spec, self.outcomes[id_]) for id_, spec in self.specs.items() if id_ in self.outcomes]

    @property
    def unfinished(self) -> list[TrialSpec]:
        """The trials that have started and not ended."""
        return [spec for id_, spec in self.specs.items() if id_ not in self.outcomes]

    def searched(self) -> History:
        """The trials that the search suggested, without reruns: a search learns from these alone."""
        specs = {id_: spec for id_, spec in self.specs.items() if spec.rerun_of is None}
        return History(specs, {id_: outcome for id_, outcome in self.outcomes.items() if id_ in specs})

    def is_running(self, id_: str) -> bool:
        """Whether a trial has started and not ended."""
        return id_ in self.specs and id_ not in self.outcomes


class Ledger(History):
    """The history in a folder's ledger file, read and appended to.

    Raises:
        RunError: A line other than a torn last one cannot be read.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._size = 0
        # What `with_reruns` needs: a look at all trials each time that one ends would take longer than ending it.
        self._positions: dict[str, int] = {}
        self._reruns: dict[str, list[str]] = {}
        for number, line in enumerate(self._complete_lines(), start=1):
            try:
                event = _LINE.validate_python(json.loads(unsealed(line)))
                self._check(event)
                self._add(event)
            except (ValueError, ValidationError, RecursionError) as error:
                raise RunError(
                    f"{path}, line {number}: must be the start or end of a trial, got {line[:80]!r}: "
                    f"{first_line(error)}. Restore the file from a copy, or delete this line if it is the end of a "
                    "trial, which is then run again. Of a start, delete all lines of the trial, its folder in "
                    f"{path.parent / TRIALS} and its run in MLflow, and another one is run in its place"
                ) from error

    def with_reruns(self, ids: Iterable[str]) -> History:
        """These trials and their reruns."""
        chosen = {each for id_ in ids for each in (id_, *self._reruns.get(id_, ()))}
        specs = {id_: self.specs[id_] for id_ in sorted(chosen, key=self._positions.__getitem__)}
        return History(specs, {id_: self.outcomes[id_] for id_ in specs if id_ in self.outcomes})

    def append(self, event: TrialSpec | TrialOutcome) -> None:
        """Record an event; it is on the disk when this returns, and not recorded where this raises."""
        self._check(event)
        line = (sealed(json.dumps(event.model_dump(), ensure_ascii=False)) + "\n").encode()
        with self.path.open("r+b" if self.path.exists() else "wb") as file:
            file.truncate(self._size)  # cuts off a torn last line
            file.seek(self._size)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        # Only now, since the disk may be full: the next event is then written over what was left of this one.
        self._size += len(line)
        self._add(event)

    def _check(self, event: TrialSpec | TrialOutcome) -> None:
        """Raises a ValueError for an event that cannot come after the ones before."""
        if not re.fullmatch(r"\w[\w. -]*", event.id):
            raise ValueError(f"the id of a trial must be a name of a folder, got {event.id!r}")
        if isinstance(event, TrialSpec) and self.is_running(event.id):
            raise ValueError(f"{event.id} has started already")
        if isinstance(event, TrialOutcome) and not self.is_running(event.id):
            raise ValueError(f"{event.id} must have started, once for each end")

    def _add(self, event: TrialSpec | TrialOutcome) -> None:
        if isinstance(event, TrialSpec):
            if event.id not in self.specs:
                self._positions[event.id] = len(self.specs)
                if event.rerun_of is not None:
                    self._reruns.setdefault(event.rerun_of, []).append(event.id)
            self.specs[event.id] = event
            self.outcomes.pop(event.id, None)
        else:
            self.outcomes[event.id] = event

    def _complete_lines(self) -> Iterator[str]:
        if not self.path.exists():
            return
        complete, newline, _ = self.path.read_bytes().rpartition(b"\n")
        self._size = len(complete) + len(newline)
        if newline:
            yield from complete.decode(errors="replace").split("\n")


def ledger_in(folder: Path) -> Ledger:
    """The ledger of a sweep's or study's folder; empty where there is none."""
    return Ledger(folder / LEDGER)
