"""What a reader yields: records, their splits, and the report of what was read and dropped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class PairRecord:
    """Two sentences and their label."""

    id: str
    first: str
    second: str
    label: str

    @property
    def content(self) -> tuple[str, ...]:
        """What makes two records the same item, whatever their id and label."""
        return self.first, self.second


Record: TypeAlias = PairRecord


@dataclass(frozen=True)
class Dropped:
    """How many rows were dropped for one reason, and the lines of the first of them."""

    count: int
    lines: list[int]


@dataclass(frozen=True)
class ReadReport:
    """What was read from one file or generator: `rows` is `kept` and all that was dropped."""

    origin: str
    rows: int
    kept: int
    dropped: dict[str, Dropped] = field(default_factory=dict)


@dataclass(frozen=True)
class LoadReport:
    """What was read, kept and dropped, and what became of it.

    Attributes:
        read: What was read, by split.
        sizes: The records of each split.
        drawn: How the dev split was drawn from the training split, if it was.
        shared: For two splits ("train and test"), how many records of the second also stand in the first.
    """

    read: dict[str, ReadReport]
    sizes: dict[str, int]
    drawn: str | None
    shared: dict[str, int]

    def plain(self) -> dict[str, Any]:
        """The report as plain values, to be stored with a run."""
        return asdict(self)

    def __str__(self) -> str:
        lines = []
        for split, read in self.read.items():
            lines.append(f"{split}: {read.kept} of {read.rows} rows kept from {read.origin}")
            for reason, dropped in read.dropped.items():
                first = ", ".join(str(line) for line in dropped.lines)
                more = ", ..." if dropped.count > len(dropped.lines) else ""
                lines.append(f"  {dropped.count} dropped: {reason} (line {first}{more})")
        if self.drawn:
            lines.append(f"dev: {self.sizes['dev']} records, {self.drawn}; {self.sizes['train']} stay in train")
        lines += [f"{pair}: {count} records stand in both" for pair, count in self.shared.items()]
        return "\n".join(lines)


@dataclass(frozen=True)
class Splits:
    """A data set, read and checked.

    Attributes:
        digest: A hash of the content of all splits: equal for equal data, wherever it lies.
    """

    train: tuple[Any, ...]
    dev: tuple[Any, ...]
    test: tuple[Any, ...]
    report: LoadReport
    digest: str


def digest(splits: Iterable[tuple[Record, ...]]) -> str:
    """A hash of the records in their order, the same on every machine and Python."""
    found = hashlib.sha256()
    for records in splits:
        names = [item.name for item in fields(records[0])] if records else []
        for record in records:
            found.update(json.dumps([getattr(record, name) for name in names]).encode())
        found.update(b"\n")
    return found.hexdigest()[:16]
