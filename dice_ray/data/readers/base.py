"""The contract of a reader: it yields a result for each row, in the order of the file and with its place.

A row is `Kept`, `Drop` or `Bad`, and none is lost silently: the load report counts all of them. A reader raises a
DataError only if the rest of the file cannot be read, such as for a wrong encoding or a missing column.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import zlib
from abc import ABC, abstractmethod
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar, Final, Literal, TypeAlias, cast

from pydantic import AfterValidator

from dice_ray.data.records import Record
from dice_ray.errors import DataError
from dice_ray.settings import Branch

UTF_8: Final = "utf-8"


RowPlace: TypeAlias = int | str
"""A line number, or the path of an item in a JSON document."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A record, and the place where it begins.

    Attributes:
        note: An oddity that does not prevent its use; notes are counted.
        document: The document that the record belongs to, where the file marks documents; drawn splits keep it whole.
    """

    place: RowPlace
    record: Record
    note: str | None = None
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
Labels: TypeAlias = Literal["read", "ignored"]
"""With `ignored`, labels are neither needed nor read: the records have none, and are used for predictions only."""


class ReaderBranch(Branch, ABC):
    """The configuration of a reader: one branch of `reader`."""

    record_type: ClassVar[type[Record]]

    def yields(self) -> type[Record]:
        """The type of the records, known before anything is read, so that a task can refuse it."""
        return self.record_type

    def files(self, path: Path) -> list[Path]:
        """All files that are read for this one, itself included."""
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


def opened(path: Path) -> BinaryIO:
    """The bytes of a file; a `.gz` file is decompressed."""
    return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def lines(path: Path, encoding: str = UTF_8) -> Iterator[tuple[int, str]]:
    """The numbered lines of a text file without line ends; a BOM is removed, and a `.gz` file decompressed.

    Only LF and CRLF end a line: U+2028, NEL and a lone CR are text. (`str.splitlines` would split at them.)
    """
    with opened(path) as file:
        number = 0
        try:
            # UTF-8 line by line, so that an error names the line: TextIOWrapper decodes blocks.
            decoded = (
                (line.decode() for line in file)
                if encoding == UTF_8
                else io.TextIOWrapper(file, encoding=encoding, newline="\n")
            )
            for number, line in enumerate(decoded, start=1):
                yield (
                    number,
                    (line if number > 1 else line.removeprefix("\ufeff")).removesuffix("\n").removesuffix("\r"),
                )
        except UnicodeDecodeError as error:
            if encoding != UTF_8:
                raise unreadable(path, number + 1, encoding, f"{error.reason}: set another `encoding`") from None
            byte = error.object[error.start]
            other = "utf-16" if number == 0 and error.object.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "latin-1"
            actual = (
                f"byte 0x{byte:02x} at position {error.start + 1}: if the file is in {other}, set `encoding: {other}` "
                f"in its reader, or convert it by `iconv -f {other} -t UTF-8`"
            )
            raise unreadable(path, number + 1, "UTF-8", actual) from None
        except UnicodeError as error:  # UTF-16 without a byte order mark
            raise unreadable(path, number + 1, encoding, f"{error}: set another `encoding`") from None
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise unreadable(path, number + 1, "a whole gzip file", str(error)) from None


def document(path: Path, encoding: str = UTF_8) -> Any:
    """The value of a JSON document."""
    try:
        return parse_json("\n".join(line for _, line in lines(path, encoding)))
    except NotJsonError as error:
        raise unreadable(path, error.line or "the file", "JSON", str(error)) from None


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

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant}, which is no JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise NotJsonError(f"{error.msg} at character {error.colno}", error.lineno) from None
    except RecursionError:
        raise NotJsonError("lists or objects nested too deep") from None
    except ValueError as error:
        raise NotJsonError(str(error).partition(":")[0].partition(";")[0]) from None


def unreadable(path: Path, place: RowPlace, expected: str, actual: str) -> DataError:
    """The error of a file that cannot be read: file, place, what was expected, what was found."""
    where = f"line {place}" if isinstance(place, int) else place
    return DataError(f"{path}, {where}: expected {expected}, found {actual}")
