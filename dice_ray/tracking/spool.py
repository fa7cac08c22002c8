"""What a writer was told and its store may not hold yet: a file that outlives the process."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from dice_ray.errors import BusyError, RunError
from dice_ray.tracking.entries import End, Entry, Open, as_line, from_line
from dice_ray.tracking.store import shown, store_uri

_SENT: Final = "sent"
"""The line that says: the store holds all that stands above."""


@dataclass(frozen=True)
class Left:
    """A spool that lies on the disk: a driver is at work, was killed, or ended while its store was away."""

    file: Path
    experiment: str
    store: str

    @property
    def is_of_this_store(self) -> bool:
        return self.store == shown(store_uri())


class Spool:
    """The file in a run's folder to which each entry is appended, and which goes once the store holds all of them.

    There is one for each store, and one writer at a time. It only grows: `sent` marks how far the store is, and what
    stands above is read again for the runs alone that are still open.

    Attributes:
        left: What an earlier process left to be sent; its open runs are ended as KILLED.

    Raises:
        BusyError: Another process writes it.
        RunError: It is damaged.
    """

    def __init__(self, folder: Path, experiment: str, uri: str) -> None:
        store = shown(uri)
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"unsent-{hashlib.sha256(store.encode()).hexdigest()[:8]}.jsonl"
        self._file = self._locked()
        last_word = int(1000 * os.fstat(self._file.fileno()).st_mtime)
        lines = self._whole_lines()
        try:
            with _whole(self.path):
                self.left = _ended(_waiting(lines[1:]), last_word)
        except RunError:
            self._file.close()
            raise
        if not lines:
            self._write(json.dumps({"experiment": experiment, "store": store}))

    def add(self, entry: Entry) -> None:
        """Note an entry; a process that is killed now has not lost it."""
        self._write(as_line(entry))

    def mark_sent(self) -> None:
        """The store holds all that was added."""
        self._write(_SENT)

    def close(self, *, is_sent: bool) -> None:
        """Let go of the file, which goes where nothing waits in it."""
        if is_sent:
            self.path.unlink(missing_ok=True)
        self._file.close()

    def _locked(self) -> BinaryIO:
        while True:
            file = self.path.open("a+b")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                file.close()
                raise BusyError(
                    f"{self.path.parent} must have one driver: another process is running it now"
                ) from error
            if os.fstat(file.fileno()).st_nlink:
                return file
            file.close()  # the writer before us deleted it after we had opened it

    def _write(self, line: str) -> None:
        self._file.write(line.encode() + b"\n")
        self._file.flush()

    def _whole_lines(self) -> list[str]:
        """All lines but a torn last one, which is cut off."""
        self._file.seek(0)
        whole, newline, _ = self._file.read().rpartition(b"\n")
        self._file.truncate(len(whole) + len(newline))
        return whole.decode().split("\n") if newline else []


def left_in(folder: Path) -> Iterator[Left]:
    """The spools below a folder."""
    for file in sorted(folder.rglob("unsent-*.jsonl")):
        with file.open(encoding="utf-8") as lines:
            head = lines.readline()
        if head.endswith("\n"):
            with _whole(file):
                left = Left(file, **json.loads(head))
            yield left


@contextmanager
def _whole(file: Path) -> Iterator[None]:
    """Read what a spool holds; one that something else wrote on is named."""
    try:
        yield
    except (ValueError, TypeError, LookupError) as error:
        raise RunError(
            f"{file} must hold what waits to be sent to MLflow, as dice_ray wrote it, and is damaged ({error}): move "
            "it away, and what it held is lost"
        ) from error


def _waiting(lines: list[str]) -> list[Entry]:
    """What stands below the last mark, and above it what opened the runs that have not ended there."""
    last = max((number for number, line in enumerate(lines) if line == _SENT), default=-1)
    opened: dict[str, Entry] = {}
    for line in lines[: max(last, 0)]:
        if line != _SENT and isinstance(entry := from_line(line), Open | End):
            opened.pop(entry.key, None)
            if isinstance(entry, Open):
                opened[entry.key] = entry
    return [*opened.values(), *(from_line(line) for line in lines[last + 1 :])]


def _ended(entries: list[Entry], at: int) -> list[Entry]:
    """The entries, and an end for each run that they leave open."""
    is_open = {entry.key: isinstance(entry, Open) for entry in entries if isinstance(entry, Open | End)}
    return [*entries, *(End(key, "KILLED", at) for key, still in is_open.items() if still)]
