"""The only way into MLflow: a thread that sends what runs report, so that no run waits for the store.

The protocol, in the order of what can go wrong:

- Only the thread sends, in the order of the calls for each run; points of a run are merged into fewer calls. It sends
  every second, or as soon as a call is full: MLflow takes 1000 metrics in one call, and Ray's own callback, which makes
  a call per metric, made sweeps 2 to 3.5 times as long.
- Each entry is in the spool before it is in the queue, under one lock, so a killed process loses nothing and the mark
  "sent" never covers an entry that the thread has not seen (see `spool.py`). One that a full disk does not take raises
  in the caller, and is sent all the same.
- A store that is *away* (no answer, 5xx, 429) keeps everything waiting: the same entry is the first to be sent in the
  next second, by this process or the next. Sending one twice is harmless (see `runs.py`).
- An answer is *in doubt* if a proxy may have given it (401, 403, 404): while a server is restarted behind one, it
  answers so for seconds. The entry waits, with all later ones of its run, and other runs are sent. `close` asks again
  for `_PATIENCE` seconds; an answer that lasts is believed, and `close` raises. The entries stay in the spool, except
  for a 404 of MLflow's own: that run was deleted.
- What a store *refuses* (another status below 500) it would refuse again: the entry is left out, the rest is sent, and
  `close` raises. But a deleted experiment refuses everything and can be restored, so after a refusal the experiment is
  looked at, and if it was deleted the entries wait.
- An error of this program ends the thread; the entries stay in the spool, and `close` raises the error.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Final

from dice_ray.errors import RunError
from dice_ray.files import without_password
from dice_ray.settings import Flat
from dice_ray.tracking.entries import (
    NUM_METRICS,
    Data,
    Describe,
    End,
    MetricPoint,
    Model,
    Open,
    Points,
    RunEntry,
    Tags,
    Text,
    merge_points,
)
from dice_ray.tracking.runs import Runs
from dice_ray.tracking.schema import Status
from dice_ray.tracking.sources import check_not_deleted
from dice_ray.tracking.spool import Spool
from dice_ray.tracking.store import is_deleted_run, is_in_doubt, is_refusal, is_store_error, message, quiet, store_uri

_SECONDS: Final = 1.0
"""Entries are sent after this time, or as soon as they fill a call."""
_PATIENCE: Final = 10.0
"""How long an answer that is in doubt must last at the end to be believed."""


class Writer:
    """Writes the runs of one experiment; every method returns at once, and `close` waits until all is stored.

    Entries that a store which is away did not take before `close` stay in the spool of the folder: the next writer
    there sends them first, and ends the runs that a killed process left open. Entries that the store refuses are left
    out, and `close` raises.

    Args:
        experiment: Created if it does not exist.
        uri: Of the store; else MLFLOW_TRACKING_URI, else `mlflow.db`.
        folder: Of the run, sweep or study. Without it nothing outlives the process, and `close` raises for a store that
            is away too.

    Attributes:
        failure: Why entries could not be stored so far; None if all could, also after failed attempts.

    Raises:
        RunError: The experiment was deleted in MLflow, or another process writes in the folder.
    """

    def __init__(self, experiment: str, uri: str | None = None, folder: Path | None = None) -> None:
        self.experiment, self.uri = experiment, store_uri(uri)
        self.failure: str | None = None
        check_not_deleted(experiment, self.uri)
        self._spool = Spool(folder, experiment, self.uri) if folder else None
        self._lock = Lock()
        self._queue: SimpleQueue[RunEntry | None] = SimpleQueue()
        self._open: dict[str, None] = {}
        self._unsent: deque[RunEntry] = deque(self._spool.unsent if self._spool else ())
        self._refusals: list[str] = []
        self._is_deleted = False
        self._doubt: str | None = None
        self._crash: Exception | None = None
        self._thread = Thread(target=self._work, name="dice_ray.tracking", daemon=True)
        self._thread.start()

    def open(self, key: str, *, name: str, params: Flat, tags: Mapping[str, str], parent: str | None = None) -> None:
        """Create the run of our id `key`, or resume it: steps and parameters that it has are not stored again."""
        self._open[key] = None
        values = {path: _as_text(value) for path, value in params.items()}
        self._add(Open(key, name, values, dict(tags), parent, _now()))

    def metrics(self, key: str, step: int, metrics: Mapping[str, float]) -> None:
        """Store values of a step, NaN included; of several for one metric and step the first counts."""
        at = _now()
        points = tuple(MetricPoint(metric, float(value), step, at) for metric, value in metrics.items())
        for start in range(0, len(points), NUM_METRICS):
            self._add(Points(key, points[start : start + NUM_METRICS]))

    def tags(self, key: str, tags: Mapping[str, str]) -> None:
        """Set tags; those of the same name are overwritten."""
        self._add(Tags(key, dict(tags)))

    def text(self, key: str, file: str, content: str) -> None:
        """Store a text file among the run's artifacts."""
        self._add(Text(key, file, content))

    def describe(self, key: str, description: str) -> None:
        """Describe the experiment of a run, in Markdown; a description that it has stays."""
        self._add(Describe(key, description))

    def data(self, key: str, name: str, digest: str, kind: str, source: Mapping[str, Any]) -> None:
        """Store which data set the run used: its name, the digest of its content, and its source."""
        self._add(Data(key, name, digest, kind, json.dumps(source, ensure_ascii=False)))

    def model(self, key: str, folder: Path, register: str) -> None:
        """Store a folder in MLflow's model format with the run, as the next version of a registered name."""
        self._add(Model(key, str(folder.absolute()), register))

    def end(self, key: str, status: Status) -> None:
        """End the run; if it is opened again, it resumes."""
        self._open.pop(key, None)
        self._add(End(key, status, _now()))

    def close(self) -> None:
        """Wait until all is stored or the store turns out to be away; runs that are still open end as KILLED.

        Raises:
            RunError: Entries were refused, or can be neither stored nor kept; the message gives the number and reason.
        """
        for key in list(self._open):
            with suppress(OSError):  # a full disk: the end is sent all the same, or made up by the next writer
                self.end(key, "KILLED")
        self._queue.put(None)  # after the ends above, so that the thread still sends them
        self._thread.join()
        if self._spool:
            self._spool.close(is_sent=not self._unsent and self._crash is None)
        if self._crash is not None:
            raise self._crash
        num_missing = len(self._unsent) + len(self._refusals)
        if self._doubt and self._spool and not self._refusals:
            raise RunError(
                f"{without_password(self.uri)} must accept the runs of the experiment {self.experiment!r}, and has "
                f"refused them for {_PATIENCE:.0f} s ({self._doubt}): {num_missing} "
                f"{'entry waits' if num_missing == 1 else 'entries wait'} in {self._spool.path}, and `dice-ray runs` "
                "delivers them once it accepts them"
            )
        if self._refusals or self._is_deleted or (self.failure and not self._spool):
            kept = f" (they wait in {self._spool.path})" if self._spool and self._unsent else ""
            raise RunError(
                f"the experiment {self.experiment!r} must be stored in {without_password(self.uri)}, "
                f"{num_missing} {'entry was' if num_missing == 1 else 'entries were'} not{kept}: {self.failure}"
            )

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Close; an error of the block is raised in any case, with the one of `close` as a note."""
        try:
            self.close()
        except RunError as close_error:
            if error is None:
                raise
            error.add_note(str(close_error))

    def _add(self, entry: RunEntry) -> None:
        # One lock around both: the spool has the order of the queue, and has an entry before the thread sees it.
        with self._lock:
            try:
                if self._spool:
                    self._spool.add(entry)
            finally:  # also where the disk is full, of which the caller learns: MLflow may take the entry
                self._queue.put(entry)

    def _work(self) -> None:
        try:
            quiet()
            runs: Runs | None = None
            is_open = True
            while is_open:
                is_open = self._gather()
                has_entries = bool(self._unsent)
                runs = self._send(runs)
                if has_entries and self._spool:
                    with self._lock:
                        # Else an entry that is in the spool, but not sent yet, would be above the mark.
                        if not self._unsent and self._queue.empty():
                            with suppress(OSError):  # a full disk: what is not marked is sent again, which is harmless
                                self._spool.mark_sent()
            deadline = time.monotonic() + _PATIENCE
            while self._doubt is not None and time.monotonic() < deadline:
                time.sleep(_SECONDS)
                runs = self._send(runs)
            if self._doubt is not None:
                self._send(runs, believes=True)
        except Exception as error:  # noqa: BLE001  an error of this program, which `close` raises
            self._crash = error

    def _gather(self) -> bool:
        """Take entries from the queue until the time is over or a call is full; False once the writer is closed."""
        deadline = time.monotonic() + _SECONDS
        num_points = 0
        while num_points < NUM_METRICS:
            try:
                entry = self._queue.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                return True
            if entry is None:
                return False
            self._unsent.append(entry)
            num_points += len(entry.points) if isinstance(entry, Points) else 0
        return True

    def _send(self, runs: Runs | None, *, believes: bool = False) -> Runs | None:
        """Send the unsent entries in order, until the store is away; returns the open experiment, if it could be.

        Args:
            runs: The open experiment.
            believes: Whether an answer that was in doubt has lasted.
        """
        self._unsent = deque(merge_points(self._unsent))
        self._doubt = None
        waiting: list[RunEntry] = []
        blocked: set[str | None] = set()
        try:
            # Opened here, not at the start: a store that is away is tried again each second.
            runs = runs or Runs(self.experiment, self.uri)
            while self._unsent:
                entry = self._unsent.popleft()
                # A child cannot be opened before its parent.
                if entry.key in blocked or (isinstance(entry, Open) and entry.parent in blocked):
                    waiting.append(entry)
                    blocked.add(entry.key)
                    continue
                try:
                    self._send_entry(runs, entry, believes)
                except Exception as error:
                    waiting.append(entry)
                    blocked.add(entry.key)
                    if not is_in_doubt(error):
                        raise
                    self._doubt = message(error)
        except RunError as error:
            self._is_deleted, self.failure = True, message(error)
        except Exception as error:
            if not is_store_error(error):
                raise
            self.failure = message(error)
            self._doubt = self.failure if is_in_doubt(error) else self._doubt
        else:
            self._is_deleted = False
            self.failure = self._doubt or (self._refusals[0] if self._refusals else None)
        finally:
            self._unsent.extendleft(reversed(waiting))
        return runs

    def _send_entry(self, runs: Runs, entry: RunEntry, believes: bool) -> None:
        from mlflow.exceptions import MlflowException

        try:
            runs.send(entry)
        except (MlflowException, RunError) as error:
            if not is_refusal(error) and not (believes and is_deleted_run(error)):
                raise
            runs.check_active()  # raises for a deleted experiment, whose entries wait for its restoration
            self._refusals.append(message(error))


def _as_text(value: Any) -> str:
    """A parameter as YAML spells it.

    >>> _as_text("focal"), _as_text(True), _as_text(None), _as_text(2e-05)
    ('focal', 'true', 'null', '2e-05')
    """
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _now() -> int:
    return time.time_ns() // 1_000_000
