"""The spool: the file that keeps what a writer was given and its store may not hold yet.

The invariant: every entry is in the file before the writer's thread sees it, and the file is deleted only when the
store holds all of it. So a process that is killed, or a store that is away, loses nothing: the next writer in the
folder sends what is left before anything else. It may send what the store holds already (killed between sending and the
mark), which is harmless because entries are idempotent (see `runs.py`).

- The file only grows: a killed process leaves at most a torn last line, which is cut off. The line `sent` marks that
  the store holds everything above it. Above the last mark only runs that are still open matter, for their end.
- A line is written as a whole, or not at all where the disk is full.
- Lines are given to the system, not fsynced: the file survives the process, not a power cut. The ledger is the record
  that survives that.
- One writer at a time: the lock is held on the file itself, so it goes with the process. The previous holder may delete
  the file between our open and our lock, which the number of its links shows.
- One file per store, named by a hash of its URI: what waits for one store must not go to another.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from dice_ray.errors import BusyError, RunError, first_line
from dice_ray.files import sealed, unsealed, without_password
from dice_ray.tracking.entries import End, Model, Open, RunEntry, as_line, from_line
from dice_ray.tracking.store import store_uri

_SENT: Final = "sent"
"""The line that marks that the store holds everything above it."""


@dataclass(frozen=True)
class _UnsentSpool:
    """A spool on the disk: its driver is at work, was killed, or ended while the store was away."""

    file: Path
    experiment: str
    store: str

    @property
    def is_of_this_store(self) -> bool:
        return self.store == without_password(store_uri())


class Spool:
    """The file in a run's folder to which each entry is appended; this process is its only writer.

    Attributes:
        unsent: What an earlier process left to send; runs that it left open end as KILLED, at its last line's time.

    Raises:
        BusyError: Another process writes the file.
        RunError: The file is damaged.
    """

    def __init__(self, folder: Path, experiment: str, uri: str) -> None:
        store = without_password(uri)
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"unsent-{hashlib.sha256(store.encode()).hexdigest()[:8]}.jsonl"
        self._file = self._lock()
        # When the killed process stopped; read here, because cutting off a torn line changes it.
        modified_ms = int(1000 * os.fstat(self._file.fileno()).st_mtime)
        self._file.seek(0)
        whole, newline, _ = self._file.read().rpartition(b"\n")
        self._file.truncate(len(whole) + len(newline))
        lines: list[str] = []
        try:
            with _damage_named(self.path):
                lines = whole.decode().split("\n") if newline else []
                self.unsent = _unsent([line if line == _SENT else unsealed(line) for line in lines[1:]], modified_ms)
                for entry in self.unsent:
                    _check_inside(entry, folder)
        except RunError:
            self._file.close()
            raise
        if not lines:
            self._write(sealed(json.dumps({"experiment": experiment, "store": store})))

    def add(self, entry: RunEntry) -> None:
        """Append an entry; it is not lost if the process is killed now."""
        self._write(sealed(as_line(entry)))

    def mark_sent(self) -> None:
        """Mark that the store holds everything that was added."""
        self._write(_SENT)

    def close(self, *, is_sent: bool) -> None:
        """Release the file, and delete it if the store holds everything."""
        # Deleted while the lock is still held: a process that waits for it must find the file without a link.
        if is_sent:
            self.path.unlink(missing_ok=True)
        self._file.close()

    def _lock(self) -> io.FileIO:
        while True:
            # O_APPEND without O_TRUNC, which would empty the file of the process that holds the lock. For its owner
            # alone, since it may hold texts of the data.
            file = io.FileIO(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "a+b")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                file.close()
                raise BusyError(
                    f"the results of {self.path.parent} must be sent to MLflow by one process, and another one, such "
                    "as `dice-ray runs`, is sending them now: try again when it has ended"
                ) from error
            if os.fstat(file.fileno()).st_nlink:
                return file
            file.close()  # the previous writer deleted it after we had opened it

    def _write(self, line: str) -> None:
        left, size = memoryview(line.encode() + b"\n"), os.fstat(self._file.fileno()).st_size
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError:  # the disk is full: the next line must not follow a torn one
            self._file.truncate(size)
            raise


def spool_files(folder: Path) -> list[Path]:
    """The files of the spools below a folder, also of those that cannot be read."""
    return sorted(folder.rglob("unsent-*.jsonl"))


def unsent_spool(file: Path) -> _UnsentSpool | None:
    """The spool that a file holds; None where its first line is torn, so that it holds nothing, or it was just sent.

    A RunError where it is damaged, or cannot be read.
    """
    try:
        with file.open("rb") as lines:
            head = lines.readline()
    except FileNotFoundError:  # its writer has deleted it
        return None
    except OSError as error:
        raise RunError(f"a file of entries that MLflow lacks cannot be read: {first_line(error)}") from error
    if not head.endswith(b"\n"):
        return None
    with _damage_named(file):
        head_values = json.loads(unsealed(head.decode().rstrip("\n")))
        return TypeAdapter(_UnsentSpool).validate_python({**head_values, "file": file})


def unsent_spools(folder: Path) -> Iterator[_UnsentSpool]:
    """The spools below a folder that hold anything; raises what `unsent_spool` raises."""
    for file in spool_files(folder):
        if (spool := unsent_spool(file)) is not None:
            yield spool


@contextmanager
def _damage_named(file: Path) -> Iterator[None]:
    """Turn an error of parsing a spool's lines into a RunError that names the file."""
    try:
        yield
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise RunError(
            f"{file} must hold the entries that dice_ray has yet to send to MLflow, but is damaged "
            f"({first_line(error)}): move it away; the entries in it are lost"
        ) from error


def _check_inside(entry: RunEntry, folder: Path) -> None:
    """Raise a ValueError for a model that is elsewhere: the folder of a model is deleted once the store has it."""
    model = Path(entry.folder) if isinstance(entry, Model) else None
    if model and model.exists() and not model.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"the model {model} lies outside of {folder}")


def _unsent(lines: list[str], at: int) -> list[RunEntry]:
    """The Open of each run that was open at the last mark, the entries below it, and an End for each run left open."""
    mark = max((number for number, line in enumerate(lines) if line == _SENT), default=-1)
    still_open: dict[str, RunEntry] = {}
    for line in lines[: max(mark, 0)]:
        if line != _SENT and isinstance(entry := from_line(line), Open | End):
            still_open.pop(entry.key, None)
            if isinstance(entry, Open):
                still_open[entry.key] = entry
    entries = [*still_open.values(), *(from_line(line) for line in lines[mark + 1 :])]
    is_open = {entry.key: isinstance(entry, Open) for entry in entries if isinstance(entry, Open | End)}
    return [*entries, *(End(key, "KILLED", at) for key, is_left in is_open.items() if is_left)]
