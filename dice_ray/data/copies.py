"""Copies of cache entries in the store of runs, so that a machine does not read and encode what another one has.

A reader verifies the hashes of an entry. So a copy that is incomplete, or has files of two machines, is not used.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dice_ray.files import opened, store_url

FOLDER: Final = ".cache"
"""In the store; no run is called that."""


def fetch(name: str, folder: Path) -> bool:
    """Copy an entry from the store to an empty folder, if there is a store which has it; returns whether it has."""
    from pyarrow.fs import LocalFileSystem, copy_files

    sizes = _sizes(name)
    for file in sizes:
        filesystem, root = opened(str(store_url()))
        copy_files(f"{root}/{FOLDER}/{name}/{file}", str(folder / file), filesystem, LocalFileSystem())
    return bool(sizes)


def send(entry: Path) -> None:
    """Copy an entry to the store, if there is a store which lacks it."""
    from pyarrow.fs import LocalFileSystem, copy_files

    if (url := store_url()) is None or _sizes(entry.name) == {
        file.name: file.stat().st_size for file in entry.iterdir()
    }:
        return
    filesystem, root = opened(url)
    target = f"{root}/{FOLDER}/{entry.name}"
    filesystem.create_dir(target, recursive=True)
    for file in entry.iterdir():
        copy_files(str(file), f"{target}/{file.name}", LocalFileSystem(), filesystem)


def _sizes(name: str) -> dict[str, int]:
    """The files of an entry in the store; empty if there is none."""
    from pyarrow.fs import FileSelector

    if (url := store_url()) is None:
        return {}
    filesystem, root = opened(url)
    infos = filesystem.get_file_info(FileSelector(f"{root}/{FOLDER}/{name}", allow_not_found=True))
    return {info.base_name: info.size for info in infos}
