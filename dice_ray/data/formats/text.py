"""Text files: their bytes, decompressed if they are compressed, decoded, in lines or blocks; and their errors."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
import zipfile
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, TypeAlias

from dice_ray.data.records import where
from dice_ray.errors import DataError

UTF_8: Final = "utf-8"
RowPlace: TypeAlias = int | str
"""A line number, or the path of an item in a JSON document."""
SUFFIXES: Final = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zip": "zip"}
_COMPRESSED: Final = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"PK\x03\x04": "zip"}
_OPENERS: Final[Mapping[str, Callable[..., Any]]] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
_MOST_UNPACKED: Final = 200
"""A file may unpack to 16 MiB, and to this many times its size. Texts are packed to a third or a tenth, zeros of gzip
to a thousandth."""
_BLOCK: Final = 2**20
"""Characters of a text in memory at once."""
_BINARY: Final = {
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


def binary_format(path: Path) -> str | None:
    """The name of a binary format; None for text, compressed text, and what is not known."""
    return _named(path, _BINARY)


@contextmanager
def readable(path: Path, line: Callable[[], int] = lambda: 1) -> Iterator[BinaryIO]:
    """The bytes of a file, decompressed by its first bytes, whatever its name; a zip archive must hold one file.

    fsspec would decompress by the name alone, read the first file of an archive with several, and unpack any bomb. The
    error of a compressed file that is damaged, encrypted, or a bomb names the line that is read.
    """
    kind = _named(path, _COMPRESSED) or SUFFIXES.get(path.suffix.lower())
    if kind is None:
        with path.open("rb") as file:
            yield file
        return
    try:
        if kind == "zip":
            with zipfile.ZipFile(path) as archive, _only_member(archive) as member:
                yield io.BufferedReader(_Bounded(member, path), 1 << 16)
        else:
            with _OPENERS[kind](path, "rb") as unpacked:
                yield io.BufferedReader(_Bounded(unpacked, path), 1 << 16)
    # NotImplementedError: a version of zip that Python cannot unpack.
    except (EOFError, OSError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError) as error:
        raise unreadable(path, line(), f"a whole {kind} file", str(error)) from None


class _Bounded(io.RawIOBase):
    """What a file unpacks to, up to a size that no text has: a small file of zeros must not fill the memory."""

    def __init__(self, unpacked: IO[bytes], path: Path) -> None:
        self._unpacked = unpacked
        self._left = max(16 << 20, _MOST_UNPACKED * path.stat().st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._unpacked.read(len(buffer))
        self._left -= len(block)
        if self._left < 0:
            raise OSError(
                f"more than {_MOST_UNPACKED} times its size, as no text has it: unpack it yourself if it is one"
            )
        buffer[: len(block)] = block
        return len(block)


def _only_member(archive: zipfile.ZipFile) -> IO[bytes]:
    # Without folders, and metadata that macOS adds.
    members = [
        member
        for member in archive.infolist()
        if not (member.is_dir() or member.filename.startswith("__MACOSX/") or member.filename.endswith(".DS_Store"))
    ]
    if "xl/workbook.xml" in archive.namelist():
        raise OSError("a file of Excel: export it as CSV")
    if len(members) != 1:
        names = ", ".join(member.filename for member in members[:5])
        raise OSError(f"{len(members)} files ({names}): unpack it")
    try:
        return archive.open(members[0])
    except RuntimeError as error:  # encrypted, or packed as Python cannot unpack it
        raise OSError(str(error)) from error


def _named(path: Path, formats: dict[bytes, str]) -> str | None:
    with path.open("rb") as file:
        head = file.read(16)
    return next((name for magic, name in formats.items() if head.startswith(magic)), None)


def known_encoding(name: str) -> str:
    try:
        found = codecs.lookup(name)
    except LookupError:
        found = None
    if found is None or not found._is_text_encoding:
        raise ValueError("must be an encoding that Python knows, such as utf-8, latin-1, cp1252, utf-16 or gb18030")
    return UTF_8 if found.name == UTF_8 else name


def lines(path: Path, encoding: str = UTF_8) -> Iterator[tuple[int, str]]:
    """The numbered lines of a text file without line ends; a BOM is removed, and a compressed file decompressed.

    Only LF and CRLF end a line: U+2028, NEL and a lone CR are text. (`str.splitlines` would split at them.)

    A byte that is not of the encoding becomes half of a surrogate pair (`surrogateescape`): `reading.py` makes a bad
    row of a record that holds one, so that the row can be skipped. UTF-16 and UTF-32 do not support that.
    """
    number = 0
    with _as_text(path, encoding, lambda: number + 1) as (file, errors):
        # UTF-8 line by line: TextIOWrapper decodes blocks, which is slower.
        decoded = (
            (line.decode(errors=errors) for line in file)
            if encoding == UTF_8
            else io.TextIOWrapper(file, encoding=encoding, errors=errors, newline="\n")
        )
        for number, line in enumerate(decoded, start=1):
            if number == 1:
                _refuse_wide(path, line, encoding)
                line = line.removeprefix("\ufeff")
            yield number, line.removesuffix("\n").removesuffix("\r")


def blocks(path: Path, encoding: str = UTF_8) -> Iterator[str]:
    """The text of a file in blocks, decoded as its lines are."""
    line = 1
    with _as_text(path, encoding, lambda: line) as (file, errors):
        decoded = io.TextIOWrapper(file, encoding=encoding, errors=errors, newline="\n")
        block = decoded.read(_BLOCK)
        _refuse_wide(path, block[:4], encoding)
        block = block.removeprefix("\ufeff")
        while block:
            yield block
            line += block.count("\n")
            block = decoded.read(_BLOCK)


@contextmanager
def _as_text(path: Path, encoding: str, line: Callable[[], int]) -> Iterator[tuple[BinaryIO, str]]:
    """The bytes of a text file, and how to treat those that are not of the encoding; failures are errors of a line."""
    if (found := binary_format(path)) is not None:
        raise unreadable(path, "the file", "text", f"a file of {found}")
    try:
        with readable(path, line) as file:
            is_wide = codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))
            yield file, "strict" if is_wide else "surrogateescape"
    except UnicodeError as error:
        raise unreadable(path, line(), encoding, f"{error}: set another `encoding`") from None


def _refuse_wide(path: Path, first_line: str, encoding: str) -> None:
    """Raise a DataError if a line in UTF-8 begins with the byte order mark of UTF-16."""
    if encoding == UTF_8 and first_line.encode(errors="surrogateescape").startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        actual = "the byte order mark of UTF-16: set `encoding: utf-16` in its reader"
        raise unreadable(path, 1, "UTF-8", actual)


def spaced_words(text: str) -> list[str]:
    """Split a sentence into words at ASCII spaces and tabs."""
    # A third of the time that `re.split` takes.
    return [word for word in text.replace("\t", " ").split(" ") if word]


def undecoded(text: str) -> str | None:
    r"""A description of the first byte that is not of the encoding, for an error; None if the text has none.

    >>> undecoded(b"caf\xe9 au lait".decode(errors="surrogateescape"))
    "byte 0xe9 in 'caf? au lait'"
    """
    if (found := re.search("[\udc80-\udcff]", text)) is None:
        return None
    around = re.sub("[\ud800-\udfff]", "?", text[max(0, found.start() - 20) : found.end() + 20])
    return f"byte 0x{ord(found.group()) - 0xDC00:02x} in {around!r}"


class BadRowError(DataError):
    """A malformed row, which `on_bad_row: skip` would skip."""


def unreadable(path: Path, place: RowPlace, expected: str, actual: str, kind: type[DataError] = DataError) -> DataError:
    """The error of a file that cannot be read: file, place, what was expected, what was found."""
    return kind(f"{path}, {where(place)}: expected {expected}, found {actual}")
