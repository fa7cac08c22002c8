"""Where runs are: the folder of runs on this machine, and the URL of their store, if there is one."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_VARIABLE: Final = "DICE_RAY_RUNS"
_DEFAULT: Final = "dice_ray_runs"


def store_url() -> str | None:
    """The URL of the store; None where the folder of runs is one that all machines see."""
    named = os.environ.get(_VARIABLE, "")
    return named if "://" in named else None


def runs_folder() -> Path:
    """The folder of runs: `$DICE_RAY_RUNS`, or `dice_ray_runs` in the working directory.

    If the variable is a URL, this folder has the plans and ledgers, and the checkpoints until they are in the store.
    """
    return Path(_DEFAULT if store_url() else os.environ.get(_VARIABLE) or _DEFAULT).expanduser()


@lru_cache(maxsize=4)
def opened(url: str) -> tuple[FileSystem, str]:
    """The file system of a URL, or of an absolute path, and the path in it."""
    import fsspec
    from pyarrow import ArrowInvalid
    from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem

    try:
        filesystem, path = FileSystem.from_uri(url)
    except ArrowInvalid:  # a kind of store that pyarrow does not know itself
        other, path = fsspec.core.url_to_fs(url)
        filesystem = PyFileSystem(FSSpecHandler(other))
    return filesystem, path.rstrip("/")
