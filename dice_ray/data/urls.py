"""Places of files: paths with `~` and `$VARIABLES`, and URLs, whose files each machine fetches once, into the cache.

A version of a file is what its store says of it: size, and ETag or time. A file of another version is fetched again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from string import Template
from typing import Any

from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem, PyFileSystem, copy_files

from dice_ray.data import cache
from dice_ray.errors import DataError, first_line, nearest
from dice_ray.files import is_url, name_of, opened, without_password


def expanded(text: str, setting: str = "data.source.files.folder") -> str:
    """A text with `$VARIABLES` expanded; a variable that is not set is a DataError that names the setting."""
    try:
        return Template(text).substitute(os.environ)
    except KeyError as error:
        name, to = error.args[0], " to the folder of published data: docs/presets.md says where to get them"
        must = f"the variable {name} must be set{to if name == 'DICE_RAY_DATA' else ''}"
        raise DataError(f"{setting} {text!r}: {must}") from None
    except ValueError as error:
        raise DataError(f"{setting} {text!r}: {error}; write `$$` for a dollar sign") from None


def expand_path(folder: str, setting: str = "data.source.files.folder") -> Path:
    return Path(os.path.expanduser(expanded(folder, setting)))


def local_file(file: str | Path, what: str) -> Path:
    """A file on this machine: the one at a path, or the copy of the one at a URL.

    Args:
        file: A path or URL.
        what: Its name in errors.

    Raises:
        DataError: There is no file at the URL, or this machine cannot read it.
    """
    return fetched([file], what)[0] if isinstance(file, str) and is_url(file) else Path(file)


def version(url: str, setting: str) -> list[str]:
    """What changes when the file at a URL changes.

    Raises:
        DataError: There is no such file, or this machine cannot read it.
    """
    with _explained(url, setting):
        filesystem, path = opened(url)
        info = filesystem.get_file_info(path)
        if info.type != FileType.File:
            raise FileNotFoundError(_hint(filesystem, path))
        if isinstance(filesystem, PyFileSystem):  # pyarrow passes no ETag on
            details = filesystem.handler.fs.info(path)
            others = ("atime", "islink", "ino", "nlink", "mode", "uid", "gid")  # no part of a version
            return [f"{name}={value}" for name, value in sorted(details.items()) if name not in others]
        with filesystem.open_input_file(path) as file:
            etag = (file.metadata() or {}).get("ETag", b"").decode()
        return [str(info.size), etag or str(info.mtime_ns)]


def fetched(urls: Sequence[str], setting: str) -> list[Path]:
    """The copies on this machine of files that are read together.

    Raises:
        DataError: There is no such file, or this machine cannot read it, or it changes meanwhile.
    """
    versions = [version(url, setting) for url in urls]
    names = [name_of(url) for url in urls]

    def write(folder: Path) -> tuple[dict[str, int], dict[str, Any]]:
        for url, name in zip(urls, names, strict=True):
            with _explained(url, setting):
                filesystem, path = opened(url)
                copy_files(path, str(folder / name), filesystem, LocalFileSystem())
        if [version(url, setting) for url in urls] != versions:
            raise DataError(f"{setting}: {without_password(urls[0])} must not change while it is fetched, but did")
        return {}, {}

    entry = cache.get_or_write("files", {"names": names, "versions": versions}, {"data": ", ".join(names)}, write)
    return [entry.folder / name for name in names]


def _hint(filesystem: FileSystem, path: str) -> str:
    """What the folder of a missing file holds."""
    folder, _, name = path.rpartition("/")
    infos = filesystem.get_file_info(FileSelector(folder, allow_not_found=True))
    known = sorted(info.base_name for info in infos)
    close = nearest(name, known)
    hint = f"did you mean {close!r}? " if close else ""
    return f"{hint}The folder holds: {', '.join(known[:20]) or 'no files'}."


@contextmanager
def _explained(url: str, setting: str) -> Iterator[None]:
    """Turn what file systems raise, each its own errors, into one that names setting and file."""
    must = f"{setting}: there must be a file {without_password(url)}"
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"{must}, and there is none: {first_line(error)}") from error
    except Exception as error:
        if type(error).__module__ == "builtins" and not isinstance(error, OSError | ValueError):
            raise  # an error of this program
        why = without_password(first_line(error))
        raise DataError(f"{must} that this machine may read, with credentials of its own: {why}") from error
