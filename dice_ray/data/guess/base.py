"""A guess, and a reader tried on the first rows of a file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from dice_ray.data.readers import ReaderConfig
from dice_ray.data.readers.base import Bad, Kept, NotJsonError, ReaderBranch, lines, parsed
from dice_ray.data.records import Record
from dice_ray.errors import DataError
from dice_ray.settings import Nested

NUM_ROWS: Final = 20_000
"""Rows that are looked at; a sign that comes later is not seen."""
MOST_BAD: Final = 0.01
"""The share of malformed rows that a file may have."""
READER: Final = "data.source.files.reader"

_READERS: TypeAdapter[ReaderBranch] = TypeAdapter(ReaderConfig)
_HAN: Final = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True)
class Guess:
    """How a file is read and what it is for, as a preset writes it.

    Attributes:
        reader: The value of `data.source.files.reader`.
        task: The value of `task`.
        why: The reasons and the alternatives, by the path of what they are about.
        records: The first records that the reader gives.
        bad: The malformed ones among the rows looked at.
    """

    reader: Nested
    task: Nested
    why: dict[str, str]
    records: tuple[Record, ...] = field(repr=False)
    bad: tuple[Bad, ...] = ()


@dataclass(frozen=True)
class Attempt:
    """What a reader made of the first rows of a file.

    Attributes:
        missed: Why it does not read the file, if it does not.
    """

    reader: Nested
    records: tuple[Record, ...]
    bad: tuple[Bad, ...]
    missed: str

    def guess(self, task: Nested, why: dict[str, str]) -> Guess:
        return Guess(self.reader, task, why, self.records, self.bad)


def attempt(path: Path, reader: Nested) -> Attempt:
    """Read the first rows; the reader takes the file if it keeps some and nearly none is malformed."""
    records, bad = list[Record](), list[Bad]()
    try:
        for row in islice(_READERS.validate_python(reader).read(path), NUM_ROWS):
            if isinstance(row, Kept):
                records.append(row.record)
            elif isinstance(row, Bad):
                bad.append(row)
    except DataError as error:
        return Attempt(reader, (), tuple(bad), str(error).removeprefix(f"{path}, "))
    missed = ""
    if len(bad) > MOST_BAD * (len(bad) + len(records)):
        place = f"line {bad[0].place}" if isinstance(bad[0].place, int) else bad[0].place
        missed = f"{place}: expected {bad[0].expected}, found {bad[0].found}"
    elif not records:
        missed = "no row with a label"
    return Attempt(reader, tuple(records), tuple(bad), missed)


def opening(path: Path) -> str:
    """The first character that is no space."""
    return next((text.strip()[0] for _, text in lines(path) if text.strip()), "")


def is_json(path: Path) -> bool:
    """Whether the first line is a JSON object or list."""
    try:
        return isinstance(parsed(next((text for _, text in lines(path) if text.strip()), "")), dict | list)
    except NotJsonError:
        return False


def is_chinese(texts: Iterable[str]) -> bool:
    """Whether half of the characters or more are Chinese."""
    text = "".join("".join(texts).split())
    return 2 * len(_HAN.findall(text)) > len(text)
