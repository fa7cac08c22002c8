"""The cache: what was read and encoded once, kept as entries that are whole or not there, shared by all processes.

An entry is a folder of Arrow files and `entry.json`, named by a hash of its key. It is written under another name and
renamed whole: of several writers the last ones find it there and throw their own away. An entry whose files are not,
byte for byte, what `entry.json` says (a full disk, a power cut, another hand) is never read: it is written anew.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gc
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from dice_ray.data.arrow import Table
from dice_ray.errors import DataError, RunError

VERSION = 3
"""Raised when the same data, task and tokenizer give other records or rows than before, or other files."""
NUM_ATTEMPTS = 5
_ENTRY = re.compile(r"(records|rows)-[0-9a-f]{32}")
_DRAFT = re.compile(r"draft-\w+")

Plain: TypeAlias = dict[str, Any]
"""What JSON can hold."""


@dataclass(frozen=True)
class Entry:
    """An entry that is whole.

    Attributes:
        folder: Where its files lie.
        tables: Its Arrow files by name, opened: they stay readable whatever becomes of the folder.
        holds: What its writer returned.
    """

    folder: Path
    tables: dict[str, Table]
    holds: Plain


@dataclass(frozen=True)
class Listed:
    """An entry as `dice-ray cache` shows it.

    Attributes:
        kind: `records` of a data set, or `rows` of a task.
        about: What its data, task and tokenizer were called when it was written.
        rows: How many of its kind it holds, by split.
        size: Its bytes.
        used: When it was last opened, in seconds since 1970.
    """

    name: str
    kind: str
    about: dict[str, str]
    rows: dict[str, int]
    size: int
    used: float


def folder() -> Path:
    """Where entries lie: `DICE_RAY_CACHE`, or `dice_ray` in the user's cache folder."""
    if named := os.environ.get("DICE_RAY_CACHE"):
        return Path(named).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "dice_ray"


def entry(
    kind: str, key: Plain, about: Mapping[str, str], write: Callable[[Path], tuple[dict[str, int], Plain]]
) -> Entry:
    """The entry of a key, written first where there is none that is whole.

    Args:
        kind: `records` or `rows`.
        key: All that decides what the entry holds.
        about: Names for the list of entries.
        write: Puts Arrow files into a folder, and returns the number of rows by split and what else is to be held.
    """
    written = json.dumps({"version": VERSION, "kind": kind, "key": key}, sort_keys=True)
    place = folder() / f"{kind}-{_text_hash(written)[:32]}"
    for _ in range(NUM_ATTEMPTS):
        if (found := _opened(place, written)) is not None:
            return found
        with _draft() as draft, _no_search_for_cycles():
            rows, holds = write(draft)
            files = {file.name: file_hash(file) for file in sorted(draft.iterdir())}
            told = {"written": written, "about": dict(about), "rows": rows, "files": files, "holds": holds}
            _tell(draft, told)
            _publish(draft, place, written)
    raise RunError(
        f"the cache {folder()} changes faster than an entry can be written and read: is another clearing it?"
    )


def file_hash(path: Path) -> str:
    """A hash of a file's bytes, remembered while its size and time stay."""
    status = path.stat()
    return _hash(path.absolute(), status.st_ino, status.st_size, status.st_mtime_ns)


def listed() -> list[Listed]:
    """All entries, the last used first; those of other versions of dice_ray and damaged ones too."""
    found = []
    for place in _places(_ENTRY):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # cleared meanwhile, or no entry
            told = _told(place) or {"about": {}, "rows": {}}
            size = sum(file.stat().st_size for file in place.iterdir())
            used = (place / "entry.json" if (place / "entry.json").exists() else place).stat().st_mtime
            kind = place.name.partition("-")[0]
            found.append(Listed(place.name, kind, told["about"], told["rows"], size, used))
    return sorted(found, key=lambda one: -one.used)


def clear() -> int:
    """Delete all entries, and what killed writers left; what is open stays readable. Returns how many entries."""
    _delete_abandoned()
    return sum(_discard(place) for place in _places(_ENTRY))


@lru_cache(maxsize=1024)
def _hash(path: Path, inode: int, size: int, changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _opened(place: Path, written: str) -> Entry | None:
    """The entry if it is there, the one that was asked for, and whole."""
    try:
        told = _told(place)
        if told is None or told.get("written") != written:
            return None
        if any(file_hash(place / name) != hashed for name, hashed in told["files"].items()):
            return None
        tables = {Path(name).stem: Table(place / name) for name in told["files"]}
        with contextlib.suppress(PermissionError):  # another's cache, to be read alone
            os.utime(place / "entry.json")
    except FileNotFoundError:  # not there, or cleared meanwhile
        return None
    return Entry(place, tables, told["holds"])


def _tell(place: Path, told: Plain) -> None:
    account = {"hash": _text_hash(json.dumps(told)), "told": told}
    (place / "entry.json").write_text(json.dumps(account), encoding="utf-8")


def _told(place: Path) -> Plain | None:
    """What `entry.json` says, if it is whole."""
    try:
        account = json.loads((place / "entry.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    if not isinstance(account, dict) or account.get("hash") != _text_hash(json.dumps(account.get("told"))):
        return None
    told: Plain = account["told"]
    return told


def _text_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@contextlib.contextmanager
def _draft() -> Iterator[Path]:
    """A folder to write an entry in, locked while its writer lives; it goes unless it was renamed."""
    try:
        folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        _delete_abandoned()
        draft, lock = _locked_draft()
    except OSError as error:
        raise DataError(
            f"the cache must be a folder that can be written to, got {folder()} ({error.strerror}): "
            "set DICE_RAY_CACHE to another one"
        ) from None
    try:
        yield draft
    finally:
        os.close(lock)
        shutil.rmtree(draft, ignore_errors=True)


@contextlib.contextmanager
def _no_search_for_cycles() -> Iterator[None]:
    """Records and rows have no cycles; to look for some in all that torch holds takes half as long as the writing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _locked_draft() -> tuple[Path, int]:
    while True:
        draft = Path(tempfile.mkdtemp(prefix="draft-", dir=folder()))
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(draft, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if draft.exists():
                return draft, lock
            os.close(lock)  # taken for abandoned before it was locked


def _publish(draft: Path, place: Path, written: str) -> None:
    """Give a draft its name, unless another writer came first; what is there and not whole makes room."""
    if place.exists() and _opened(place, written) is None:
        _discard(place)
    try:
        draft.rename(place)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise


def _discard(place: Path) -> int:
    """Delete an entry at once for those who open it, and then its files; returns 0 where another did."""
    with tempfile.TemporaryDirectory(prefix="draft-", dir=folder()) as away:
        try:
            place.rename(Path(away) / place.name)
        except FileNotFoundError:
            return 0
    return 1


def _delete_abandoned() -> None:
    """Delete what writers that were killed left behind: the system has taken their locks."""
    for draft in _places(_DRAFT):
        with contextlib.suppress(FileNotFoundError, BlockingIOError):
            lock = os.open(draft, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(draft, ignore_errors=True)
            finally:
                os.close(lock)


def _places(pattern: re.Pattern[str]) -> list[Path]:
    """What lies in the cache under a name of ours."""
    if not folder().is_dir():
        return []
    return [place for place in sorted(folder().iterdir()) if pattern.fullmatch(place.name)]
