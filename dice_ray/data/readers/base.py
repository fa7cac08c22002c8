"""The contract of a reader: records, drops and bad rows in the order of the file, each with its place."""

from __future__ import annotations

import gzip
import json
import zlib
from abc import ABC, abstractmethod
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, cast

from dice_ray.data.records import Record
from dice_ray.errors import DataError
from dice_ray.settings import Branch

BOM = b"\xef\xbb\xbf"


Place: TypeAlias = int | str
"""A line, or in a JSON document the path of an item."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A record, and the place where it begins.

    Attributes:
        note: What is odd about it and does not forbid its use; notes are counted.
    """

    place: Place
    record: Record
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """A row that is sound but of no use: counted, never an error."""

    place: Place
    reason: str


@dataclass(frozen=True, slots=True)
class Bad:
    """A row that does not hold what the format promises: an error, or a counted drop where the user says so."""

    place: Place
    expected: str
    found: str


Found: TypeAlias = Kept | Drop | Bad
UNLABELLED = "no label"
Labels: TypeAlias = Literal["read", "ignored"]
"""`ignored` neither needs nor reads labels: the records have none, and serve predictions alone."""


class ReaderBranch(Branch, ABC):
    """The configuration of a reader: one branch of `reader`."""

    @abstractmethod
    def yields(self) -> type[Record]:
        """What a row becomes; a task that needs something else can say so before anything is read."""

    def files(self, path: Path) -> list[Path]:
        """Every file that is read for this one."""
        return [path]

    @abstractmethod
    def read(self, path: Path, labels: Labels = "read") -> Iterator[Found]:
        """Every row of the file once. What makes the whole file unreadable is raised as a DataError."""


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines of a UTF-8 file, without their ends; a BOM goes, a `.gz` is unpacked.

    Only LF and CRLF end a line: U+2028, NEL and a lone CR are text.
    """
    with _opened(path) as file:
        number = 0
        try:
            for number, line in enumerate(file, start=1):
                if number == 1:
                    line = line.removeprefix(BOM)
                yield number, line.decode().removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            encoding = "UTF-16" if number == 1 and error.object.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "LATIN1"
            found = (
                f"byte 0x{byte:02x} at position {error.start + 1}: if the file is in {encoding}, "
                f"`iconv -f {encoding} -t UTF-8` converts it"
            )
            raise unreadable(path, number, "UTF-8", found) from None
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise unreadable(path, number + 1, "a whole gzip file", str(error)) from None


def _opened(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def document(path: Path) -> Any:
    """A whole JSON document."""
    try:
        return parsed("\n".join(line for _, line in lines(path)))
    except NotJsonError as error:
        raise unreadable(path, error.line or "the file", "JSON", str(error)) from None


class NotJsonError(ValueError):
    """What is wrong with a text that is no JSON, and in which of its lines, where the parser tells it."""

    def __init__(self, found: str, line: int | None = None) -> None:
        super().__init__(found)
        self.line = line


def parsed(text: str) -> Any:
    """The value of a text in JSON, without NaN and infinity, which JSON does not have.

    Raises:
        NotJsonError: It is no JSON, or too long or deep for the parser.
    """
    try:
        return json.loads(text, parse_constant=_refused)
    except json.JSONDecodeError as error:
        raise NotJsonError(f"{error.msg} at character {error.colno}", error.lineno) from None
    except RecursionError:
        raise NotJsonError("lists or objects too deep in one another") from None
    except ValueError as error:
        raise NotJsonError(str(error).partition(":")[0].partition(";")[0]) from None


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant}, which is no JSON")


def unreadable(path: Path, place: Place, expected: str, found: str) -> DataError:
    """The one form of a data error: file, place, what was expected, what was found."""
    where = f"line {place}" if isinstance(place, int) else place
    return DataError(f"{path}, {where}: expected {expected}, found {found}")


def shown(text: object, width: int = 60) -> str:
    """A text as an error quotes it."""
    quoted = repr(text)
    return quoted if len(quoted) <= width else f"{quoted[: width - 3]}..."
