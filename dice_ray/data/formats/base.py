"""The contract of a format: how its files are read, and how `dice-ray init` recognises them.

A reader yields a result for each row, in the order of the file and with its place. A row is `Kept`, `Drop` or `Bad`,
and none is lost silently: the load report counts all of them. A reader raises a DataError only if the rest of the file
cannot be read, such as for a wrong encoding or a missing column.

A format recognises a file by reading a sample of it: `fits` returns a `Guess`, or the reason why it does not fit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

import numpy as np
from pydantic import AfterValidator

from dice_ray.data.formats.text import UTF_8, RowPlace, known_encoding, lines
from dice_ray.data.records import Record, where
from dice_ray.data.task_of import task_of
from dice_ray.errors import DataError
from dice_ray.settings import Branch, Nested

UNLABELLED: Final = "no label"
NO_TEXT: Final = "no text"
NO_WORDS: Final = "no words"
NUM_ROWS: Final = 20_000
"""The number of rows that a guess is based on."""
MAX_BAD_SHARE: Final = 0.01
"""The largest share of malformed rows in them."""
READER: Final = "data.source.files.reader"


@dataclass(frozen=True, slots=True)
class Kept:
    """A record, and the place where it begins.

    Attributes:
        notes: Oddities that do not prevent its use; they are counted.
        document: The document that the record belongs to, where the file marks documents, or its group by
            `data.groups`; drawn splits keep it whole.
        time: Where `data.time` names a column.
    """

    place: RowPlace
    record: Record
    notes: tuple[str, ...] = ()
    document: RowPlace | None = None
    time: np.datetime64 | float = 0.0


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
Labels: TypeAlias = Literal["read", "ignored"]
"""With `ignored`, labels are neither needed nor read: the records have none, and are used for predictions only."""


class ReaderBranch(Branch, ABC):
    """A format, and the settings of its reader: one branch of `reader`.

    Attributes:
        record_type: The type of its records, for a reader that has one.
        reads: The kinds of files and folders that it may read: `text`, a `list` in a JSON document, `Parquet`, `Arrow`,
            a folder of `brat`, a folder with a folder for each of several `classes`.
        is_lax: Whether it may fit a file of another format: if several such formats fit a file, the user is asked.
    """

    record_type: ClassVar[type[Record]]
    reads: ClassVar[tuple[str, ...]]
    is_lax: ClassVar[bool] = False

    def yields(self) -> type[Record]:
        """The type of the records, known before anything is read, so that a task can refuse it."""
        return self.record_type

    def files(self, path: Path) -> list[Path]:
        """The files that are read for this path: itself first, or of a folder those in it; they may be missing."""
        return [path]

    @abstractmethod
    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        """Yield each row of the file once; raises a DataError if the rest of the file cannot be read."""

    @classmethod
    @abstractmethod
    def fits(cls, sample: Sample) -> Guess | str:
        """The settings that read a file, and the task of its records; or the reason why this is not its format."""


class TextReaderBranch(ReaderBranch, ABC):
    """The configuration of a reader of text files.

    Attributes:
        encoding: The encoding of the files; `dice-ray init` guesses it.
    """

    reads: ClassVar[tuple[str, ...]] = ("text",)

    encoding: Annotated[str, AfterValidator(known_encoding)] = UTF_8

    def lines(self, path: Path) -> Iterator[tuple[int, str]]:
        return lines(path, self.encoding)


@dataclass(frozen=True)
class Given:
    """What the user says of a file, in place of a guess.

    Attributes:
        texts: The column of the texts, or the two of pairs.
        label: The column of the labels.
        id: The column of the records' ids.
        positive: The positive label.
        encoding: The encoding of the file.
        format: The name of its reader.
        splits: The columns that splits are drawn by, `groups` and `time`.
    """

    texts: tuple[str, ...] = ()
    label: str | None = None
    id: str | None = None
    positive: str | None = None
    encoding: str | None = None
    format: str | None = None
    splits: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """The named columns of the records."""
        return (*self.texts, *(name for name in (self.label, self.id) if name is not None))


NOTHING_GIVEN: Final = Given()


@dataclass(frozen=True)
class Guess:
    """The reader and the task of a file, as a preset writes them.

    Attributes:
        reader: The value of `data.source.files.reader`; or `hub` with the value of `data.source.hub`.
        task: The value of `task`.
        why: Reasons and alternatives by the path of the setting that they explain; may hold paths that are not set.
        records: The records of the first rows.
        bad: The malformed ones of these rows.
        lists: The key of the list of each split, of a JSON document with several.
    """

    reader: Nested
    task: Nested
    why: dict[str, str]
    records: tuple[Record, ...] = field(repr=False)
    bad: tuple[Bad, ...] = ()
    lists: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Attempt:
    """The result of a reader on the first rows of a file.

    Attributes:
        reader: The reader and its settings.
        reason: Why the reader does not fit the file; empty if it fits.
        noted: The number of records with an oddity, by oddity.
    """

    reader: Nested
    records: tuple[Record, ...]
    bad: tuple[Bad, ...]
    reason: str
    noted: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def on(cls, path: Path, reader: Nested, rows: Iterable[RowResult]) -> Attempt:
        """The reader fits if it keeps some of the first rows, and no more than `MAX_BAD_SHARE` are malformed."""
        records, bad, noted = list[Record](), list[Bad](), Counter[str]()
        try:
            for row in islice(rows, NUM_ROWS):
                if isinstance(row, Kept):
                    records.append(row.record)
                    noted.update(row.notes)
                elif isinstance(row, Bad):
                    bad.append(row)
        except DataError as error:
            return cls(reader, (), tuple(bad), str(error).removeprefix(f"{path}, "))
        reason = ""
        if len(bad) > MAX_BAD_SHARE * (len(bad) + len(records)):
            reason = f"{where(bad[0].place)}: expected {bad[0].expected}, found {bad[0].actual}"
        elif not records:
            reason = "no row with a label"
        return cls(reader, tuple(records), tuple(bad), reason, noted)

    def guess(self, why: dict[str, str], *, tags: Literal["spans", "plain"] = "spans") -> Guess | str:
        """The guess that the reader is the right one, for the task of its records; or why it is not."""
        if self.reason:
            return self.reason
        found = task_of(self.records, tags)
        return found if isinstance(found, str) else Guess(self.reader, found[0], found[1] | why, self.records, self.bad)


@dataclass(frozen=True)
class Sample:
    """The first rows of a file or folder whose format is guessed, and what the user says of it."""

    path: Path
    encoding: str = UTF_8
    given: Given = NOTHING_GIVEN

    @cached_property
    def first_line(self) -> str:
        """The first line that is not blank, without white space around it; empty if there is none."""
        return next((text.strip() for _, text in lines(self.path, self.encoding) if text.strip()), "")

    def attempt(self, reader: type[ReaderBranch], **settings: Any) -> Attempt:
        """Try a reader with these settings on the first rows."""
        if self.encoding != UTF_8:
            settings = {"encoding": self.encoding} | settings
        rows = reader.model_validate(settings).read(self.path)
        return Attempt.on(self.path, {reader.name: settings}, rows)
