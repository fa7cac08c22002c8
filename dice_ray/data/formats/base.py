"""The contract of a reader: it yields a result for each row, in the order of the file and with its place.

A row is `Kept`, `Drop` or `Bad`, and none is lost silently: the load report counts all of them. A reader raises a
DataError only if the rest of the file cannot be read, such as for a wrong encoding or a missing column.
"""

from __future__ import annotations

import codecs
import io
import json
import re
from abc import ABC, abstractmethod
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar, Final, Literal, TypeAlias

from pydantic import AfterValidator

from dice_ray.data.formats.opened import binary_format, compression, opened
from dice_ray.data.records import Record, where
from dice_ray.errors import DataError
from dice_ray.settings import Branch

UTF_8: Final = "utf-8"
BLOCK: Final = 2**20
"""Characters of a text in memory at once."""


RowPlace: TypeAlias = int | str
"""A line number, or the path of an item in a JSON document."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A record, and the place where it begins.

    Attributes:
        notes: Oddities that do not prevent its use; they are counted.
        document: The document that the record belongs to, where the file marks documents; drawn splits keep it whole.
    """

    place: RowPlace
    record: Record
    notes: tuple[str, ...] = ()
    document: RowPlace | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """A well-formed row that gives no record: counted, never an error."""

    place: RowPlace
    reason: str


@dataclass(frozen=True, slots=True)
class Bad:
    """A malformed row: an error, or a counted drop with `on_bad_row: skip`."""

    place: RowPlace
    expected: str
    actual: str


RowResult: TypeAlias = Kept | Drop | Bad
UNLABELLED = "no label"
NO_TEXT = "no text"
NO_WORDS = "no words"
Labels: TypeAlias = Literal["read", "ignored"]
"""With `ignored`, labels are neither needed nor read: the records have none, and are used for predictions only."""


class ReaderBranch(Branch, ABC):
    """The configuration of a reader: one branch of `reader`."""

    record_type: ClassVar[type[Record]]

    def yields(self) -> type[Record]:
        """The type of the records, known before anything is read, so that a task can refuse it."""
        return self.record_type

    def files(self, path: Path) -> list[Path]:
        """The files that are read for this path: itself first, or of a folder those in it; they may be missing."""
        return [path]

    @abstractmethod
    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        """Yield each row of the file once; raises a DataError if the rest of the file cannot be read."""


def known_encoding(name: str) -> str:
    try:
        found = codecs.lookup(name)
    except LookupError:
        found = None
    if found is None or not found._is_text_encoding:
        raise ValueError("must be an encoding that Python knows, such as utf-8, latin-1, cp1252, utf-16 or gb18030")
    return UTF_8 if found.name == UTF_8 else name


class TextReaderBranch(ReaderBranch, ABC):
    """The configuration of a reader of text files.

    Attributes:
        encoding: The encoding of the files; `dice-ray init` guesses it.
    """

    encoding: Annotated[str, AfterValidator(known_encoding)] = UTF_8

    def lines(self, path: Path) -> Iterator[tuple[int, str]]:
        """The numbered lines of a file."""
        return lines(path, self.encoding)


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
        block = decoded.read(BLOCK)
        _refuse_wide(path, block[:4], encoding)
        block = block.removeprefix("\ufeff")
        while block:
            yield block
            line += block.count("\n")
            block = decoded.read(BLOCK)


@contextmanager
def _as_text(path: Path, encoding: str, line: Callable[[], int]) -> Iterator[tuple[BinaryIO, str]]:
    """The bytes of a text file, and how to treat those that are not of the encoding; failures are errors of a line."""
    if (found := binary_format(path)) is not None:
        raise unreadable(path, "the file", "text", f"a file of {found}")
    try:
        with readable(path, line) as file:
            yield file, "strict" if is_wide(encoding) else "surrogateescape"
    except UnicodeError as error:
        raise unreadable(path, line(), encoding, f"{error}: set another `encoding`") from None


@contextmanager
def readable(path: Path, line: Callable[[], int] = lambda: 1) -> Iterator[BinaryIO]:
    """The bytes of a file; a damaged compressed file is an error of this line."""
    try:
        with opened(path) as file:
            yield file
    except (EOFError, OSError) as error:
        kind = compression(path)
        if kind is None:
            raise
        raise unreadable(path, line(), f"a whole {kind} file", str(error)) from None


def is_wide(encoding: str) -> bool:
    """Whether a character has two or four bytes in an encoding."""
    return codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))


def _refuse_wide(path: Path, first_line: str, encoding: str) -> None:
    """Raise a DataError if a line in UTF-8 begins with the byte order mark of UTF-16."""
    if encoding == UTF_8 and first_line.encode(errors="surrogateescape").startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        actual = "the byte order mark of UTF-16: set `encoding: utf-16` in its reader"
        raise unreadable(path, 1, "UTF-8", actual)


def undecoded(text: str) -> str | None:
    r"""A description of the first byte that is not of the encoding, for an error; None if the text has none.

    >>> undecoded(b"caf\xe9 au lait".decode(errors="surrogateescape"))
    "byte 0xe9 in 'caf? au lait'"
    """
    if (found := re.search("[\udc80-\udcff]", text)) is None:
        return None
    around = re.sub("[\ud800-\udfff]", "?", text[max(0, found.start() - 20) : found.end() + 20])
    return f"byte 0x{ord(found.group()) - 0xDC00:02x} in {around!r}"


class NotJsonError(ValueError):
    """What is wrong with a text that is no JSON; `line` is None if the parser gives no line."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.line = line


def parse_json(text: str) -> Any:
    """Parse JSON strictly: NaN and infinity, which Python's parser takes, are refused.

    Raises:
        NotJsonError: The text is no JSON, or is too deep or has too long a number for the parser.
    """
    try:
        return json.loads(text, parse_constant=refuse_constant)
    except json.JSONDecodeError as error:
        raise NotJsonError(f"{error.msg} at character {error.colno}", error.lineno) from None
    except RecursionError:
        raise NotJsonError("lists or objects nested too deep") from None
    except ValueError as error:
        raise NotJsonError(str(error).partition(":")[0].partition(";")[0]) from None


def refuse_constant(constant: str) -> Any:
    """Refuses NaN and infinity, for `parse_constant` of a JSON decoder."""
    raise ValueError(f"{constant}, which is no JSON")


class BadRowError(DataError):
    """A malformed row, which `on_bad_row: skip` would skip."""


def unreadable(path: Path, place: RowPlace, expected: str, actual: str, kind: type[DataError] = DataError) -> DataError:
    """The error of a file that cannot be read: file, place, what was expected, what was found."""
    return kind(f"{path}, {where(place)}: expected {expected}, found {actual}")
