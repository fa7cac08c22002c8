"""Object stores and other file systems by their URLs, the folder or store of runs, and the secrets of URLs."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

RUNS: Final = "DICE_RAY_RUNS"
"""Environment variable: the folder of runs, or the URL of their store."""
_DEFAULT: Final = "dice_ray_runs"
_SECRET: Final = re.compile(r"(?i)([?&][^=&\s]*(?:password|passwd|pwd|token|secret|key|signature|sig)=)[^&\s'\"]+")
"""A parameter of a URL whose name says that its value is secret."""


def is_url(text: str) -> bool:
    return "://" in text


def store_url() -> str | None:
    """The URL of the store; None where the folder of runs is one that all machines see."""
    named = os.environ.get(RUNS, "")
    return named if is_url(named) else None


def runs_folder() -> Path:
    """The folder of runs on this machine: `$DICE_RAY_RUNS`, or `dice_ray_runs` in the working directory.

    If the variable is a URL, this folder has the plans and ledgers, and the checkpoints until they are in the store.
    """
    return Path(_DEFAULT if store_url() else os.environ.get(RUNS) or _DEFAULT).expanduser()


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


def joined(url: str, name: str) -> str:
    """The URL of a file in a folder.

    >>> joined("s3://bucket/data?region=eu-west-1", "train.tsv")
    's3://bucket/data/train.tsv?region=eu-west-1'
    """
    base, mark, query = url.partition("?")
    return f"{base.rstrip('/')}/{name}{mark}{query}"


def parted(url: str) -> tuple[str, str]:
    """The URL of a file's folder, and the file's name.

    >>> parted("s3://bucket/data/train.tsv?region=eu-west-1")
    ('s3://bucket/data?region=eu-west-1', 'train.tsv')
    """
    base, mark, query = url.partition("?")
    folder, _, name = base.rpartition("/")
    return f"{folder}{mark}{query}", name


def name_of(url: str) -> str:
    """The last part of the path of a URL, or its host.

    >>> name_of("s3://bucket/data/mrpc/?region=eu-west-1"), name_of("s3://bucket")
    ('mrpc', 'bucket')
    """
    parts = urlsplit(url)
    return parts.path.rstrip("/").rpartition("/")[2] or str(parts.hostname)


def holds_secret(url: str) -> bool:
    """Whether a URL has a password, or a parameter whose name says that it is secret."""
    return is_url(url) and (urlsplit(url).password is not None or _SECRET.search(url) is not None)


def without_password(text: str) -> str:
    """A URL, or a message that holds one, with the user, the password and the tokens of the URL hidden.

    >>> without_password("postgresql://me:secret@host/runs")
    'postgresql://***@host/runs'
    >>> without_password("https://host/?token=secret&page=2")
    'https://host/?token=***&page=2'
    """
    return _SECRET.sub(r"\1***", re.sub(r"://[^/\s]*@", "://***@", text))
