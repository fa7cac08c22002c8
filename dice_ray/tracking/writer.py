"""The only way into MLflow: a thread that sends what runs say, so that no run waits for it."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Final

from dice_ray.errors import RunError, first_line
from dice_ray.settings import Flat
from dice_ray.tracking.entries import NUM_METRICS, Data, End, Entry, Model, Open, Point, Points, Tags, Text, joined
from dice_ray.tracking.runs import Runs
from dice_ray.tracking.schema import Status
from dice_ray.tracking.sources import check_not_deleted
from dice_ray.tracking.spool import Spool
from dice_ray.tracking.store import is_of_a_store, quiet, shown, store_uri

SECONDS: Final = 1.0
"""What was said is sent after this time, or as soon as it makes a full call."""


class Writer:
    """Writes the runs of one experiment; every method returns at once, and `close` waits until all is stored.

    What a store that is away has not taken until `close` lies in the run's folder: the next writer there sends it,
    before anything else, and ends the runs that a killed process left open. What a store refuses is left out, and
    `close` tells.

    Args:
        experiment: Created where it is not there.
        uri: Of the store; else MLFLOW_TRACKING_URI, else `mlflow.db`.
        folder: Of the run, sweep or study. Without it nothing outlives the process, and `close` tells what is lost.

    Attributes:
        failure: What went wrong so far, if anything did and is not mended.

    Raises:
        RunError: The experiment was deleted in MLflow, or another process writes in the folder.
    """

    def __init__(self, experiment: str, uri: str | None = None, folder: Path | None = None) -> None:
        self.experiment, self.uri = experiment, store_uri(uri)
        self.failure: str | None = None
        check_not_deleted(experiment, self.uri)
        self._spool = Spool(folder, experiment, self.uri) if folder else None
        self._telling = Lock()
        self._queue: SimpleQueue[Entry | None] = SimpleQueue()
        self._open: dict[str, None] = {}
        self._waiting: deque[Entry] = deque(self._spool.left if self._spool else ())
        self._refused: list[str] = []
        self._is_deleted = False
        self._crash: Exception | None = None
        self._thread = Thread(target=self._work, name="dice_ray.tracking", daemon=True)
        self._thread.start()

    def open(self, key: str, *, name: str, params: Flat, tags: Mapping[str, str], parent: str | None = None) -> None:
        """Begin the run of our id `key`, or go on with it: steps and parameters that it holds are not stored again."""
        self._open[key] = None
        written = {path: as_text(value) for path, value in params.items()}
        self._tell(Open(key, name, written, dict(tags), parent, _now()))

    def metrics(self, key: str, step: int, metrics: Mapping[str, float]) -> None:
        """Values of a step; the first ones of a step and metric count."""
        at = _now()
        points = tuple(Point(metric, float(value), step, at) for metric, value in metrics.items())
        for start in range(0, len(points), NUM_METRICS):
            self._tell(Points(key, points[start : start + NUM_METRICS]))

    def tags(self, key: str, tags: Mapping[str, str]) -> None:
        """Set tags over those that are there."""
        self._tell(Tags(key, dict(tags)))

    def text(self, key: str, file: str, content: str) -> None:
        """Store a text file among the run's artifacts."""
        self._tell(Text(key, file, content))

    def data(self, key: str, name: str, digest: str, kind: str, source: Mapping[str, Any]) -> None:
        """Name the data set of the run, by the digest of its content and where it came from."""
        self._tell(Data(key, name, digest, kind, json.dumps(source, ensure_ascii=False)))

    def model(self, key: str, folder: Path, register: str) -> None:
        """Store a folder in MLflow's model format with the run, as the next version of a registered name."""
        self._tell(Model(key, str(folder.absolute()), register))

    def end(self, key: str, status: Status) -> None:
        """The run ended; opened again, it goes on."""
        self._open.pop(key, None)
        self._tell(End(key, status, _now()))

    def close(self) -> None:
        """Wait until all is stored, or the store is seen to be away; runs that have not ended are ended as KILLED.

        Raises:
            RunError: Something was refused, or can neither be stored nor kept; it says what and why.
        """
        for key in list(self._open):
            self.end(key, "KILLED")
        self._queue.put(None)
        self._thread.join()
        if self._spool:
            self._spool.close(is_sent=not self._waiting and self._crash is None)
        if self._crash is not None:
            raise self._crash
        if self._refused or self._is_deleted or (self.failure and not self._spool):
            lost = len(self._waiting) + len(self._refused)
            kept = f" (they wait in {self._spool.path})" if self._spool and self._waiting else ""
            raise RunError(
                f"the experiment {self.experiment!r} must be stored in {shown(self.uri)}, "
                f"{lost} {'entry was' if lost == 1 else 'entries were'} not{kept}: {self.failure}"
            )

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Close; what could not be stored never hides what went wrong before."""
        try:
            self.close()
        except RunError as unstored:
            if error is None:
                raise
            error.add_note(str(unstored))

    def _tell(self, entry: Entry) -> None:
        with self._telling:
            if self._spool:
                self._spool.add(entry)
            self._queue.put(entry)

    def _work(self) -> None:
        try:
            quiet()
            runs: Runs | None = None
            going = True
            while going:
                going = self._gather()
                is_new = bool(self._waiting)
                runs = self._send(runs)
                if is_new:
                    self._mark_sent()
        except Exception as error:  # noqa: BLE001  a mistake of ours, which `close` raises
            self._crash = error

    def _mark_sent(self) -> None:
        with self._telling:
            if self._spool and not self._waiting and self._queue.empty():
                self._spool.mark_sent()

    def _gather(self) -> bool:
        """Take what was said until the time is over or a call is full; false when the writer is closed."""
        until = time.monotonic() + SECONDS
        num_points = 0
        while num_points < NUM_METRICS:
            try:
                entry = self._queue.get(timeout=max(0.0, until - time.monotonic()))
            except Empty:
                return True
            if entry is None:
                return False
            self._waiting.append(entry)
            num_points += len(entry.points) if isinstance(entry, Points) else 0
        return True

    def _send(self, runs: Runs | None) -> Runs | None:
        """Send in order what waits, as far as the store takes it."""
        from mlflow.exceptions import MlflowException

        self._waiting = deque(joined(self._waiting))
        try:
            runs = runs or Runs(self.experiment, self.uri)
            while self._waiting:
                try:
                    runs.send(self._waiting[0])
                except (MlflowException, RunError) as error:
                    if not _is_refusal(error):
                        raise
                    runs.check()
                    self._refused.append(_said(error))
                self._waiting.popleft()
        except RunError as error:
            self._is_deleted, self.failure = True, _said(error)
        except Exception as error:
            if not is_of_a_store(error):
                raise
            self.failure = _said(error)
        else:
            self._is_deleted, self.failure = False, self._refused[0] if self._refused else None
        return runs


def as_text(value: Any) -> str:
    """A parameter as YAML spells it.

    >>> as_text("focal"), as_text(True), as_text(None), as_text(2e-05)
    ('focal', 'true', 'null', '2e-05')
    """
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _is_refusal(error: Exception) -> bool:
    """The store is there and will say the same the next time."""
    from mlflow.exceptions import MlflowException

    if not isinstance(error, MlflowException):
        return True
    status: int = error.get_http_status_code()
    return status < 500 and status != 429


def _said(error: Exception) -> str:
    return shown(first_line(error))


def _now() -> int:
    return time.time_ns() // 1_000_000
