"""What a guess holds, and how a reader is tried on the first rows of a file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from dice_ray.data.formats import ReaderConfig
from dice_ray.data.formats.base import UTF_8, Bad, Kept, NotJsonError, ReaderBranch, RowResult, lines, parse_json
from dice_ray.data.records import Record, where
from dice_ray.errors import DataError
from dice_ray.settings import Nested

NUM_ROWS: Final = 20_000
"""The number of rows that a guess is based on."""
MAX_BAD_SHARE: Final = 0.01
"""The largest share of malformed rows."""
READER: Final = "data.source.files.reader"

_READERS: TypeAdapter[ReaderBranch] = TypeAdapter(ReaderConfig)
_HAN: Final = re.compile(r"[\u3400-\u9fff]")
_KANA: Final = re.compile(r"[\u3040-\u30ff]")


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
        reason: Why the reader does not fit the file; empty if it fits.
        noted: The number of records with an oddity, by oddity.
    """

    reader: Nested
    records: tuple[Record, ...]
    bad: tuple[Bad, ...]
    reason: str
    noted: Mapping[str, int] = field(default_factory=dict)

    def guess(self, task: Nested, why: dict[str, str]) -> Guess:
        return Guess(self.reader, task, why, self.records, self.bad)


def attempt(path: Path, encoding: str, reader: Nested) -> Attempt:
    """Read the first rows; the reader fits if it keeps some, and no more than `MAX_BAD_SHARE` are malformed."""
    if encoding != UTF_8:
        reader = {name: {"encoding": encoding} | settings for name, settings in reader.items()}
    return attempt_rows(path, reader, _READERS.validate_python(reader).read(path))


def attempt_rows(path: Path, reader: Nested, rows: Iterable[RowResult]) -> Attempt:
    """The result of a reader that has these rows."""
    records, bad, noted = list[Record](), list[Bad](), Counter[str]()
    try:
        for row in islice(rows, NUM_ROWS):
            if isinstance(row, Kept):
                records.append(row.record)
                noted.update(row.notes)
            elif isinstance(row, Bad):
                bad.append(row)
    except DataError as error:
        return Attempt(reader, (), tuple(bad), str(error).removeprefix(f"{path}, "))
    reason = ""
    if len(bad) > MAX_BAD_SHARE * (len(bad) + len(records)):
        reason = f"{where(bad[0].place)}: expected {bad[0].expected}, found {bad[0].actual}"
    elif not records:
        reason = "no row with a label"
    return Attempt(reader, tuple(records), tuple(bad), reason, noted)


def first_character(path: Path, encoding: str) -> str:
    """The first character of a file that is no white space; empty if there is none."""
    return next((text.strip()[0] for _, text in lines(path, encoding) if text.strip()), "")


def is_json(path: Path, encoding: str) -> bool:
    """Whether the first line that is not blank is a JSON object or list."""
    try:
        return isinstance(
            parse_json(next((text for _, text in lines(path, encoding) if text.strip()), "")), dict | list
        )
    except NotJsonError:
        return False


def is_chinese(texts: Iterable[str]) -> bool:
    """Whether more than half of the characters are Chinese, and few are Japanese."""
    text = "".join("".join(texts).split())
    return 2 * len(_HAN.findall(text)) > len(text) > 20 * len(_KANA.findall(text))
