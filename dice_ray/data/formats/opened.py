"""The bytes of a file, decompressed if it is compressed, and the names of binary formats by their first bytes."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, Final

COMPRESSED: Final = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"PK\x03\x04": "zip"}
OPENERS: Final[Mapping[str, Callable[..., Any]]] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
SUFFIXES: Final = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zip": "zip"}
SMALL: Final = 16 << 20
MOST_UNPACKED: Final = 200
"""A file may unpack to `SMALL` bytes, and to this many times its size. Texts are packed to a third or a tenth, zeros of
gzip to a thousandth."""
BLOCK: Final = 1 << 16
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
    """The bytes of a file; a compressed one is decompressed, and a zip archive must hold one file, whatever its name.

    Raises:
        EOFError, OSError: The compressed file is damaged, encrypted, or a bomb.
    """
    kind = compression(path)
    try:
        if kind == "zip":
            with zipfile.ZipFile(path) as archive:
                members = [member for member in archive.infolist() if not _is_extra(member)]
                if "xl/workbook.xml" in archive.namelist():
                    raise OSError("a file of Excel: export it as CSV")
                if len(members) != 1:
                    names = ", ".join(member.filename for member in members[:5])
                    raise OSError(f"{len(members)} files ({names}): unpack it")
                with _opened_member(archive, members[0]) as file:
                    yield _Bounded.around(file, path)
        elif kind is not None:
            with OPENERS[kind](path, "rb") as file:
                yield _Bounded.around(file, path)
        else:
            with path.open("rb") as file:
                yield file
    # NotImplementedError: a version of zip that Python cannot unpack.
    except (zlib.error, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError) as error:
        raise OSError(str(error)) from error


class _Bounded(io.RawIOBase):
    """What a file unpacks to, up to a size that no text has: a small file of zeros must not fill the memory."""

    def __init__(self, unpacked: IO[bytes], path: Path) -> None:
        self._unpacked = unpacked
        self._left = max(SMALL, MOST_UNPACKED * path.stat().st_size)

    @classmethod
    def around(cls, unpacked: IO[bytes], path: Path) -> BinaryIO:
        return io.BufferedReader(cls(unpacked, path), BLOCK)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._unpacked.read(len(buffer))
        self._left -= len(block)
        if self._left < 0:
            raise OSError(
                f"more than {MOST_UNPACKED} times its size, as no text has it: unpack it yourself if it is one"
            )
        buffer[: len(block)] = block
        return len(block)


def _opened_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> IO[bytes]:
    try:
        return archive.open(member)
    except RuntimeError as error:  # encrypted, or packed as Python cannot unpack it
        raise OSError(str(error)) from error


def _is_extra(member: zipfile.ZipInfo) -> bool:
    """Whether a member is a folder, or metadata that macOS adds."""
    return member.is_dir() or member.filename.startswith("__MACOSX/") or member.filename.endswith(".DS_Store")


def _named(path: Path, formats: dict[bytes, str]) -> str | None:
    with path.open("rb") as file:
        head = file.read(16)
    return next((name for magic, name in formats.items() if head.startswith(magic)), None)
