"""The cache of files fetched, records read and rows encoded: content-addressed entries, shared by a user's processes.

An entry is a folder `KIND-HASH` with Arrow files and an `entry.json`, where HASH is that of everything the content
depends on. Processes share it without a server and may be killed at any moment. The invariant: under its final name an
entry is complete and intact, or no reader uses it.

- *Writing.* A writer fills a folder `draft-*` of its own and renames it, which is atomic. Writers of one entry wait for
  each other, which only spares work: where a disk knows no locks, the first rename wins, and the others delete their
  drafts and open what the first one wrote.
- *Other machines.* An entry that the store of runs has is copied from there, and one that it lacks is copied to it. As
  a reader verifies its hashes, a copy that is incomplete, or has files of two machines, is not used.
- *Reading.* `entry.json` holds a hash of each file and one of itself. A reader verifies all of them (`file_hash`
  remembers those of unchanged files) and has a damaged entry (disk full, power cut, edited) replaced.
- *Killed writers.* A writer holds a `flock` on its draft, which the kernel releases when the process dies. A draft
  whose lock is free is therefore abandoned, and the next writer deletes it. A draft that cannot be locked is renamed to
  `unlocked-*`; that of a killed writer stays.
- *Deleting.* An entry is renamed away before its files are deleted, so that no reader sees half of it. A process that
  has it open keeps reading: mapped files outlive their names.
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
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pyarrow.fs import FileSelector, LocalFileSystem, copy_files

from dice_ray.data.arrow import ArrowTable
from dice_ray.errors import DataError, RunError
from dice_ray.files import file_hash, opened, store_url

_VERSION = 13
"""Increment when the same data, task and tokenizer give different records or rows, or the file format changes."""
_ENTRY = re.compile(r"(files|records|rows)-[0-9a-f]{32}")
_DRAFT = re.compile(r"draft-\w+")

_JsonObject: TypeAlias = dict[str, Any]
_Write: TypeAlias = Callable[[Path], tuple[dict[str, int], _JsonObject]]


@dataclass(frozen=True)
class _CacheEntry:
    """A complete entry, opened.

    Attributes:
        folder: The folder with its files.
        tables: Its Arrow files by name; they stay readable after the folder is deleted.
        holds: The metadata that its writer returned.
    """

    folder: Path
    tables: dict[str, ArrowTable]
    holds: _JsonObject


@dataclass(frozen=True)
class CacheEntryInfo:
    """An entry as `dice-ray cache` lists it.

    Attributes:
        kind: `files` of a URL, `records` of a data set, or `rows` of a task.
        about: The names of its data, task and encoder when it was written; empty for a damaged entry.
        rows: The number of records or rows by split.
        size: In bytes.
        used: When it was last opened, in seconds since 1970.
    """

    name: str
    kind: str
    about: dict[str, str]
    rows: dict[str, int]
    size: int
    used: float


def folder() -> Path:
    """The folder of the cache: `DICE_RAY_CACHE`, or `dice_ray` in the user's cache folder."""
    if named := os.environ.get("DICE_RAY_CACHE"):
        return Path(named).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "dice_ray"


def get_or_write(kind: str, key: _JsonObject, about: Mapping[str, str], write: _Write) -> _CacheEntry:
    """Open the entry of a key; if there is no intact one, write it first.

    Args:
        kind: `files`, `records` or `rows`.
        key: Everything the content depends on, as JSON can hold it.
        about: Names to list the entry by.
        write: Writes files (Arrow files, but for `files`) into a folder; returns the number of rows by split, and
            metadata to store.
    """
    full_key = json.dumps({"version": _VERSION, "kind": kind, "key": key}, sort_keys=True)
    path = folder() / f"{kind}-{_text_hash(full_key)[:32]}"
    for _ in range(5):  # another process may clear the cache between the rename of a draft and its opening
        if (entry := _open_entry(path, full_key)) is not None:
            if kind != "files":
                _send_copy(path)
            return entry
        with _draft() as draft, _turn(path):
            if _open_entry(path, full_key) is not None:
                continue  # another process wrote it meanwhile
            if kind == "files" or not _fetch_copy(path.name, draft) or _open_entry(draft, full_key) is None:
                _fill(draft, full_key, about, write)
            _publish(draft, path, full_key)
    raise RunError(
        f"the cache {folder()} must keep an entry until it is read, but 5 written ones were deleted or "
        "damaged at once; is another process clearing it?"
    )


def _fill(draft: Path, full_key: str, about: Mapping[str, str], write: _Write) -> None:
    for file in draft.iterdir():  # of a copy that is not intact
        file.unlink()
    # Records and rows have no cycles, and scanning all objects of torch takes half as long as writing.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        rows, holds = write(draft)
    finally:
        if was_enabled:
            gc.enable()
    files = {file.name: file_hash(file) for file in sorted(draft.iterdir())}
    # "written" and "told" are stored names: another spelling would make every existing entry unreadable.
    manifest = {"written": full_key, "about": dict(about), "rows": rows, "files": files, "holds": holds}
    stored = {"hash": _text_hash(json.dumps(manifest)), "told": manifest}
    (draft / "entry.json").write_text(json.dumps(stored), encoding="utf-8")


def list_entries() -> list[CacheEntryInfo]:
    """All entries, the most recently used first; also damaged ones and those of other versions of dice_ray."""
    entries = []
    for path in _paths(_ENTRY):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # deleted meanwhile, or a file
            manifest = _read_manifest(path) or {"about": {}, "rows": {}}
            size = sum(file.stat().st_size for file in path.iterdir())
            used = (path / "entry.json" if (path / "entry.json").exists() else path).stat().st_mtime
            kind = path.name.partition("-")[0]
            entries.append(CacheEntryInfo(path.name, kind, manifest["about"], manifest["rows"], size, used))
    return sorted(entries, key=lambda entry: -entry.used)


def clear(unused_for: float = 0.0) -> int:
    """Delete entries that were not used for so many seconds, and what killed writers left; returns their number."""
    _delete_abandoned_drafts()
    for lock in folder().glob("lock-*"):
        lock.unlink(missing_ok=True)
    names = {entry.name for entry in list_entries() if time.time() - entry.used >= unused_for}
    return sum(_delete_entry(path) for path in _paths(_ENTRY) if not unused_for or path.name in names)


def _text_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _open_entry(path: Path, full_key: str) -> _CacheEntry | None:
    """The entry, or None if it does not exist, has another key, or is damaged."""
    try:
        manifest = _read_manifest(path)
        # The name of the folder holds only 128 bits of the hash, so the key itself is compared.
        if manifest is None or manifest.get("written") != full_key:
            return None
        if any(file_hash(path / name) != expected for name, expected in manifest["files"].items()):
            return None
        is_arrow = not path.name.startswith("files-")
        tables = {Path(name).stem: ArrowTable(path / name) for name in manifest["files"] if is_arrow}
        # The modification time of `entry.json` is the time of last use that `list_entries` shows.
        try:
            os.utime(path / "entry.json")
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):  # of another user, or on a read-only disk
                raise
    except FileNotFoundError:  # missing, or deleted meanwhile
        return None
    return _CacheEntry(path, tables, manifest["holds"])


def _read_manifest(path: Path) -> _JsonObject | None:
    """The content of `entry.json`, or None if it is missing or damaged."""
    try:
        stored = json.loads((path / "entry.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    if not isinstance(stored, dict) or stored.get("hash") != _text_hash(json.dumps(stored.get("told"))):
        return None
    manifest: _JsonObject = stored["told"]
    return manifest


@contextlib.contextmanager
def _draft() -> Iterator[Path]:
    """A folder to write an entry in, locked where the disk knows locks, and deleted on exit unless it was renamed."""
    try:
        folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        _delete_abandoned_drafts()
        draft, lock = _create_draft()
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


def _create_draft() -> tuple[Path, int]:
    while True:
        draft = Path(tempfile.mkdtemp(prefix="draft-", dir=folder()))
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(draft, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
            except OSError:  # a disk without locks, or a lock that failed: other writers must not delete the draft
                draft = draft.rename(draft.with_name(f"unlocked-{draft.name}"))
            if draft.exists():
                return draft, lock
            os.close(lock)  # another process deleted it as abandoned before it was locked


@contextlib.contextmanager
def _turn(path: Path) -> Iterator[None]:
    """Wait until no other process writes this entry."""
    lock = path.with_name(f"lock-{path.name}")
    with lock.open("w") as file:
        with contextlib.suppress(OSError):  # a disk without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)  # a waiting process has it open still; a later one finds the entry


def _publish(draft: Path, path: Path, full_key: str) -> None:
    """Rename a draft to its entry, unless another writer came first; a damaged entry is deleted before."""
    if path.exists() and _open_entry(path, full_key) is None:
        _delete_entry(path)
    try:
        draft.rename(path)
    except OSError as error:
        # Another writer was first: its entry is opened in the next attempt.
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise


def _delete_entry(path: Path) -> int:
    """Delete an entry, for readers in one step; returns 0 if another process did, else 1."""
    # Named as a draft: if this process is killed, the next writer deletes what is left.
    with tempfile.TemporaryDirectory(prefix="draft-", dir=folder()) as trash:
        try:
            path.rename(Path(trash) / path.name)
        except FileNotFoundError:
            return 0
    return 1


def _delete_abandoned_drafts() -> None:
    for draft in _paths(_DRAFT):
        with contextlib.suppress(OSError):  # it is deleted meanwhile, or the disk has no locks
            lock = os.open(draft, os.O_RDONLY)
            try:
                # A living writer holds the lock: BlockingIOError, and its draft stays.
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(draft, ignore_errors=True)
            finally:
                os.close(lock)


def _paths(pattern: re.Pattern[str]) -> list[Path]:
    """What lies in the cache and has a name of this pattern."""
    if not folder().is_dir():
        return []
    return [path for path in sorted(folder().iterdir()) if pattern.fullmatch(path.name)]


def _fetch_copy(name: str, folder: Path) -> bool:
    """Copy an entry from the store to an empty folder, if there is a store which has it; returns whether it has."""
    sizes = _sizes_in_store(name)
    for file in sizes:
        filesystem, root = opened(str(store_url()))
        copy_files(f"{root}/.cache/{name}/{file}", str(folder / file), filesystem, LocalFileSystem())
    return bool(sizes)


def _send_copy(entry: Path) -> None:
    """Copy an entry to the store, if there is a store which lacks it."""
    if (url := store_url()) is None or _sizes_in_store(entry.name) == {
        file.name: file.stat().st_size for file in entry.iterdir()
    }:
        return
    filesystem, root = opened(url)
    target = f"{root}/.cache/{entry.name}"
    filesystem.create_dir(target, recursive=True)
    for file in entry.iterdir():
        copy_files(str(file), f"{target}/{file.name}", LocalFileSystem(), filesystem)


def _sizes_in_store(name: str) -> dict[str, int]:
    """The files of an entry in the store, whose runs have other names than `.cache`; empty if there is none."""
    if (url := store_url()) is None:
        return {}
    filesystem, root = opened(url)
    infos = filesystem.get_file_info(FileSelector(f"{root}/.cache/{name}", allow_not_found=True))
    return {info.base_name: info.size for info in infos}
