"""The bytes of a file, decompressed if it is compressed, and the names of binary formats by their first bytes."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

COMPRESSED: Final = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"PK\x03\x04": "zip"}
OPENERS: Final[Mapping[str, Callable[..., Any]]] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
SUFFIXES: Final = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zip": "zip"}
BINARY: Final = {
    b"PAR1": "Parquet",
    b"ARROW1": "Arrow",
    b"\xff\xff\xff\xff": "Arrow",
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"7z\xbc\xaf": "7z",
    b"Rar!": "RAR",
    b"%PDF": "PDF",
    b"\x89PNG": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"\x89HDF": "HDF5",
    b"SQLite format 3": "SQLite",
    b"\xd0\xcf\x11\xe0": "Microsoft Office",
    b"x\x9c": "zlib, such as spaCy's DocBin (write a line of `doc.to_json()` for each of its documents)",
    b"\x80\x04\x95": "pickle",
    b"\x80\x05\x95": "pickle",
}
"""Formats that are neither text nor compressed text."""


def compression(path: Path) -> str | None:
    """How a file is compressed, by its first bytes, else by the end of its name."""
    return _named(path, COMPRESSED) or SUFFIXES.get(path.suffix.lower())


def binary_format(path: Path) -> str | None:
    """The name of a binary format; None for text, compressed text, and what is not known."""
    return _named(path, BINARY)


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file; a compressed one is decompressed, and a zip archive must hold one file.

    Raises:
        EOFError, OSError: The compressed file is damaged.
    """
    kind = compression(path)
    try:
        if kind == "zip":
            with zipfile.ZipFile(path) as archive:
                members = [member for member in archive.infolist() if not _is_extra(member)]
                if len(members) != 1:
                    names = ", ".join(member.filename for member in members[:5])
                    raise OSError(f"{len(members)} files ({names}): unpack it")
                with archive.open(members[0]) as file:
                    yield cast(BinaryIO, file)
            return
        with OPENERS.get(kind or "", open)(path, "rb") as file:
            yield file
    except (zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise OSError(str(error)) from error


def _is_extra(member: zipfile.ZipInfo) -> bool:
    """Whether a member is a folder, or metadata that macOS adds."""
    return member.is_dir() or member.filename.startswith("__MACOSX/") or member.filename.endswith(".DS_Store")


def _named(path: Path, formats: dict[bytes, str]) -> str | None:
    with path.open("rb") as file:
        head = file.read(16)
    return next((name for magic, name in formats.items() if head.startswith(magic)), None)
