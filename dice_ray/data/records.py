"""What a reader yields: records, their splits, and the report of what was read and dropped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple, TypeAlias


@dataclass(frozen=True, slots=True)
class PairRecord:
    """Two sentences and their label, which is empty where the file has none to read."""

    id: str
    first: str
    second: str
    label: str

    @property
    def content(self) -> tuple[str, ...]:
        """What makes two records the same item, whatever their id and label."""
        return self.first, self.second


@dataclass(frozen=True, slots=True)
class TextRecord:
    """A text and its labels: one, or any number where labels do not exclude each other; none without labels to read."""

    id: str
    text: str
    labels: tuple[str, ...]

    @property
    def content(self) -> tuple[str, ...]:
        return (self.text,)


@dataclass(frozen=True, slots=True)
class TaggedRecord:
    """Words with a tag each, or without any tag; tags of spans are IOB2."""

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...]

    @property
    def content(self) -> tuple[str, ...]:
        return self.words


class Span(NamedTuple):
    """A piece of a context; its start is -1 where the text does not stand at the place that its file tells."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """A question on a context.

    Attributes:
        answers: Alternative answers, each of one span or of several that are wanted together.
        impossible: Whether the context has no answer. Without answers and not impossible, a question is unlabelled.
        group: The paragraph: questions on one are never split apart.
    """

    id: str
    question: str
    context: str
    answers: tuple[tuple[Span, ...], ...]
    impossible: bool
    group: str

    @property
    def content(self) -> tuple[str, ...]:
        return self.question, self.context


@dataclass(frozen=True, slots=True)
class QueryRecord:
    """A sentence, a query for one type of span, and the spans of that type; spans may nest or cross.

    Attributes:
        spans: The first word of each span, and the one after its last.
        group: The sentence, which has a record for each query.
    """

    id: str
    words: tuple[str, ...]
    query: str
    type: str
    spans: tuple[tuple[int, int], ...]
    group: str

    @property
    def content(self) -> tuple[str, ...]:
        return self.query, *self.words


Record: TypeAlias = PairRecord | TextRecord | TaggedRecord | QuestionRecord | QueryRecord


@dataclass(frozen=True)
class Tally:
    """How many rows were dropped or noted for one reason, and the places of the first of them."""

    count: int
    first: list[int | str]


@dataclass(frozen=True)
class ReadReport:
    """What was read from one file or generator: `rows` is `kept` and all that was dropped; the noted ones are kept."""

    origin: str
    rows: int
    kept: int
    dropped: dict[str, Tally] = field(default_factory=dict)
    noted: dict[str, Tally] = field(default_factory=dict)


@dataclass(frozen=True)
class LoadReport:
    """What was read, kept and dropped, and what became of it.

    Attributes:
        read: What was read, by split.
        sizes: The records of each split.
        drawn: How a split was drawn from the training split, by its name, of those that were.
        shared: For two splits ("train and test"), how many records of the second also stand in the first.
        cut: How many rows of each split lost text to the length limit, once they are encoded.
        altered: What was done to the training split, if anything was.
    """

    read: dict[str, ReadReport]
    sizes: dict[str, int]
    drawn: dict[str, str]
    shared: dict[str, int]
    cut: dict[str, int] = field(default_factory=dict)
    altered: str | None = None

    def plain(self) -> dict[str, Any]:
        """The report as plain values, to be stored with a run."""
        return asdict(self)

    @classmethod
    def of(cls, plain: dict[str, Any]) -> LoadReport:
        """The report of its plain values."""
        read = {
            split: ReadReport(**{**report, **{name: _tallies(report[name]) for name in ("dropped", "noted")}})
            for split, report in plain["read"].items()
        }
        return cls(**{**plain, "read": read})

    def as_json(self) -> str:
        """The same as a file."""
        return json.dumps(self.plain(), ensure_ascii=False, indent=2)

    def __str__(self) -> str:
        """A line, and one more for each thing that a reader of the results should know."""
        sizes = ", ".join(f"{self.sizes[split]} {split}" for split in ("train", "dev", "test") if split in self.sizes)
        drawn = "; ".join(f"{split} is {how}" for split, how in self.drawn.items())
        lines = [f"data: {sizes} records{f' ({drawn})' if drawn else ''}"]
        lines += [f"  train: {self.altered}"] if self.altered else []
        for read in self.read.values():
            of_rows = f"of {read.rows} rows of {read.origin}"
            lines += [f"  {tally.count} {of_rows} dropped: {_told(why, tally)}" for why, tally in read.dropped.items()]
            lines += [f"  {tally.count} {of_rows} noted: {_told(why, tally)}" for why, tally in read.noted.items()]
        for pair, count in self.shared.items():
            first, _, second = pair.partition(" and ")
            lines.append(f"  {count} of {self.sizes[second]} {second} records also stand in {first}")
        lines += [
            f"  {count} of {self.sizes[split]} {split} records cut to the longest row, max_length"
            for split, count in self.cut.items()
            if count
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class Splits:
    """A data set, read and checked.

    Attributes:
        digest: A hash of the content of all splits: equal for equal data, wherever it lies.
    """

    train: Sequence[Any]
    dev: Sequence[Any]
    test: Sequence[Any]
    report: LoadReport
    digest: str


def _told(reason: str, tally: Tally) -> str:
    places = ", ".join(f"line {place}" if isinstance(place, int) else place for place in tally.first)
    return f"{reason} ({places}{', ...' if tally.count > len(tally.first) else ''})"


def _tallies(plain: dict[str, Any]) -> dict[str, Tally]:
    return {reason: Tally(**tally) for reason, tally in plain.items()}


class Digest:
    """A hash of records in their order, the same on every machine and Python; each split is closed by `end`."""

    def __init__(self) -> None:
        self._found = hashlib.sha256()

    def add(self, records: Sequence[Record]) -> None:
        names = [item.name for item in fields(records[0])] if records else []
        written = [json.dumps([getattr(record, name) for name in names]) for record in records]
        self._found.update("".join(written).encode())

    def end(self) -> None:
        self._found.update(b"\n")

    def __str__(self) -> str:
        return self._found.hexdigest()[:16]


def digest(splits: Iterable[Sequence[Record]]) -> str:
    """The hash of whole splits."""
    found = Digest()
    for records in splits:
        found.add(records)
        found.end()
    return str(found)
