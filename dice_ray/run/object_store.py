"""Copies of runs in an object store, for clusters whose machines share no disk.

With a URL in `DICE_RAY_RUNS`, every machine has a folder of runs of its own, on its disk. The driver keeps plan, ledger
and log in its folder, and sends plan and ledger before anything else learns that they have changed: when its machine is
lost, another one drives the sweep or study on. What a run writes is sent to the store by the process that trains it,
after each checkpoint and before the evaluation is reported; a process that continues or reads the run fetches it first.
So the store is never older than the last result that the driver has, and its file is taken where it has changed since
the last copy, or there is none here.

A file is written under another name and then moved, so a killed process leaves no part of a file under its name. S3
shows an upload only once it is whole, and has no move: it would be a copy, of at most 5 GB.
`last.pt` is sent last: a run continues from it, and everything that it belongs with is there by then.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem, copy_files

from dice_ray.errors import RefusedError
from dice_ray.files import opened, runs_folder, store_url, without_password, write_atomically
from dice_ray.run.folder import CONFIG, ENCODER, GIVEN_UP, LEDGER, PLAN, TASK, WARM_START
from dice_ray.training.checkpoint import BEST, LAST, RESUME_FILES

_SENT: Final = ".stored"
"""For each file that both have, its state here and in the store: what has changed since is copied."""
_FILES: Final = (CONFIG, TASK, GIVEN_UP, BEST, LAST)
_FOLDERS: Final = (ENCODER, "dev", "test")


def send(folder: Path) -> None:
    """Copy what has changed in a run's folder to the store, if there is one."""
    if (place := _place(folder)) is None:
        return
    filesystem, there = place
    known = _known(folder)
    for name in _names(folder):
        if known.get(name, {}).get("here") != (here := _here(folder / name)):
            _write(filesystem, f"{there}/{name}", folder / name)
            known[name] = {"here": here, "there": _there(filesystem.get_file_info(f"{there}/{name}"))}
            write_atomically(folder / _SENT, json.dumps(known))


def fetch(folder: Path, *, checkpoints: bool = True) -> None:
    """Copy what has changed in the store to a run's folder, with or without its checkpoints, if there is a store."""
    if (place := _place(folder)) is None:
        return
    filesystem, there = place
    known = _known(folder)
    for info in filesystem.get_file_info(FileSelector(there, recursive=True, allow_not_found=True)):
        name = info.path.removeprefix(f"{there}/")
        # A key of an object store may have `..` as a part, which would be a path out of the folder.
        is_wanted = (name in _FILES or name.partition("/")[0] in _FOLDERS) and ".." not in name.split("/")
        if info.type != FileType.File or not is_wanted or (name in (BEST, LAST) and not checkpoints):
            continue
        file = folder / name
        if not file.exists() or known.get(name, {}).get("there") != _there(info):
            file.parent.mkdir(parents=True, exist_ok=True)
            unfinished = file.with_name(f"{file.name}.{os.getpid()}.tmp")
            copy_files(info.path, str(unfinished.absolute()), filesystem, LocalFileSystem())
            unfinished.replace(file)
            known[name] = {"here": _here(file), "there": _there(info)}
            write_atomically(folder / _SENT, json.dumps(known))


def send_driven(folder: Path, *names: str) -> None:
    """Copy those of these files of a sweep or study that are there to the store, if there is one."""
    if (place := _place(folder)) is not None:
        filesystem, there = place
        for name in names:
            if (folder / name).exists():
                _write(filesystem, f"{there}/{name}", folder / name)


def fetch_driven(folder: Path) -> None:
    """Copy plan and ledger from the store, if there is one, and another machine has driven the sweep or study further.

    Raises:
        RefusedError: The store has another sweep or study of this name.
    """
    if (place := _place(folder)) is None:
        return
    filesystem, root = place
    there = {}
    for info in filesystem.get_file_info([f"{root}/{name}" for name in (LEDGER, WARM_START, PLAN)]):
        if info.type == FileType.File:
            with filesystem.open_input_stream(info.path) as stream:
                there[info.base_name] = stream.read()
    ours = (folder / LEDGER).read_bytes() if (folder / LEDGER).exists() else b""
    ours, theirs = ours[: ours.rfind(b"\n") + 1], there.get(LEDGER, b"")
    if not (ours.startswith(theirs) or theirs.startswith(ours)):
        raise RefusedError(
            f"{without_password(str(store_url()))} must have the runs of one sweep or study under a name, and those of "
            f"{folder.name} are not the ones that {folder / LEDGER} has: choose another --name"
        )
    if len(theirs) > len(ours) or not (folder / PLAN).exists():
        for name, content in there.items():  # the plan last: without it, there is no sweep or study here
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(folder / name, content.decode(errors="replace"))


def drop_checkpoints(folder: Path) -> None:
    """Delete the checkpoints of a run on this machine's disk, if there is a store, which has them."""
    if _place(folder) is not None:
        for name in (*RESUME_FILES, BEST):
            (folder / name).unlink(missing_ok=True)


def delete(folder: Path, names: Iterable[str]) -> None:
    """Delete files and folders of a run in the store, if there is one."""
    if (place := _place(folder)) is None:
        return
    filesystem, there = place
    for info in filesystem.get_file_info(FileSelector(there, allow_not_found=True)):
        if info.base_name in names:
            (filesystem.delete_file if info.type == FileType.File else filesystem.delete_dir)(info.path)


def _write(filesystem: FileSystem, target: str, file: Path) -> None:
    """Copy a file to the store, where it appears as a whole."""
    filesystem.create_dir(target.rpartition("/")[0], recursive=True)
    is_s3 = filesystem.type_name == "s3"
    unfinished = target if is_s3 else f"{target}.{secrets.token_hex(4)}.tmp"
    try:
        copy_files(str(file.absolute()), unfinished, LocalFileSystem(), filesystem)
        if not is_s3:
            filesystem.move(unfinished, target)
    except BaseException:
        if not is_s3:
            with suppress(OSError):
                filesystem.delete_file(unfinished)
        raise


def _place(folder: Path) -> tuple[FileSystem, str] | None:
    """The store and the path of a run's folder in it; None without a store, and for a folder elsewhere."""
    url, here, runs = store_url(), folder.resolve(), runs_folder().resolve()
    if url is None or not here.is_relative_to(runs):
        return None
    filesystem, root = opened(url)
    return filesystem, f"{root}/{here.relative_to(runs).as_posix()}"


def _names(folder: Path) -> list[str]:
    """The files of a run that are sent; `last.pt` is the last one."""
    below = [file for each in _FOLDERS for file in sorted((folder / each).rglob("*")) if file.is_file()]
    names = [name for name in _FILES if (folder / name).exists()]
    return [*(file.relative_to(folder).as_posix() for file in below), *names]


def _known(folder: Path) -> dict[str, Any]:
    try:
        known: dict[str, Any] = json.loads((folder / _SENT).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):  # one that is damaged: all is copied again
        return {}
    return known


def _here(file: Path) -> list[int]:
    status = file.stat()
    return [status.st_mtime_ns, status.st_size]


def _there(info: Any) -> list[int]:
    return [info.mtime_ns, info.size]
