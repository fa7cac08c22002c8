"""Records that readers yield, the splits they make, and the report of what was read and dropped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, NamedTuple, TypeAlias

from pydantic import TypeAdapter

from dice_ray.errors import counted


@dataclass(frozen=True, slots=True)
class PairRecord:
    """Two sentences and their label, empty if labels were not read; the document is the group by `data.groups`."""

    id: str
    first: str
    second: str
    label: str
    document: str = field(default="", repr=False)

    @property
    def labels(self) -> tuple[str, ...]:
        """The label as a text has its labels."""
        return (self.label,) if self.label else ()

    @property
    def content(self) -> tuple[str, ...]:
        """The input without id and label; records with equal content are duplicates."""
        return self.first, self.second


@dataclass(frozen=True, slots=True)
class TextRecord:
    """A text and its labels: one, or any number in multi-label data; none if labels were not read.

    The document is the group by `data.groups`.
    """

    id: str
    text: str
    labels: tuple[str, ...]
    document: str = field(default="", repr=False)

    @property
    def content(self) -> tuple[str, ...]:
        return (self.text,)


@dataclass(frozen=True, slots=True)
class TaggedRecord:
    """Words and their tags, one each, or no tags if labels were not read; tags of spans are IOB2.

    Attributes:
        document: Identifies the document where the file marks documents; empty before the first mark.
    """

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...]
    document: str = ""

    @property
    def content(self) -> tuple[str, ...]:
        return self.words


class WordSpan(NamedTuple):
    """A span of words: its type, its first word, and the word after its last."""

    type: str
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class NestedRecord:
    """Words and their spans, which may nest or cross; no spans if labels were not read.

    Attributes:
        document: Identifies the document where the file marks documents; empty before the first mark.
    """

    id: str
    words: tuple[str, ...]
    spans: tuple[WordSpan, ...]
    document: str = ""

    @property
    def content(self) -> tuple[str, ...]:
        return self.words


class AnswerSpan(NamedTuple):
    """A piece of a context and its first character; -1 if the text is not found at the offset that the file gives."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """A question on a context.

    Attributes:
        answers: Alternative answers, each of one span or of several that belong together.
        impossible: Whether the context has no answer. A question without answers that is not impossible was read
            without its labels, for predictions.
        group: Identifies the paragraph, in files of articles by the path of the article and that of the paragraph in it
            (`data[3].paragraphs[0]`). All questions on a paragraph go into the same split.
    """

    id: str
    question: str
    context: str
    answers: tuple[tuple[AnswerSpan, ...], ...]
    impossible: bool
    group: str

    @property
    def content(self) -> tuple[str, ...]:
        return self.question, self.context

    @property
    def document(self) -> str:
        """Identifies the article, or the paragraph where articles are not known."""
        return self.group.partition(".paragraphs[")[0]


@dataclass(frozen=True, slots=True)
class QueryRecord:
    """A sentence, a query for one type of span, and the spans of that type; spans may nest or cross.

    Attributes:
        spans: The first word of each span, and the word after its last.
        group: Identifies the sentence, which has a record for each query.
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


Record: TypeAlias = PairRecord | TextRecord | TaggedRecord | NestedRecord | QuestionRecord | QueryRecord


def record_text(record: Record) -> str:
    """The input of a record in one string, for people to read.

    >>> record_text(PairRecord("1", "It rains.", "It is wet.", "yes"))
    'It rains. | It is wet.'
    """
    match record:
        case TaggedRecord(words=words) | NestedRecord(words=words):
            return " ".join(words)
        case QueryRecord(query=query, words=words):
            return f"{query} | {' '.join(words)}"
    return " | ".join(record.content)


def documents(records: Sequence[Record]) -> dict[str, str]:
    """The document of each record, by the record's id; empty if no document has several records.

    A record that is of none stands alone.
    """
    known = {each.id: each.document for each in records if not isinstance(each, QueryRecord)}
    if not any(known.values()):
        return {}
    known = {id_: document or f"record {id_}" for id_, document in known.items()}
    return known if len(set(known.values())) < len(known) else {}


def groups_of(records: Sequence[Record]) -> list[str] | None:
    """The document of each record; None if no document has several records."""
    of_record = documents(records)
    return [of_record[record.id] for record in records] if of_record else None


def where(place: int | str) -> str:
    """The place of a row as it reads in a message: a number is a line."""
    return f"line {place}" if isinstance(place, int) else place


@dataclass(frozen=True)
class RowTally:
    """How many rows were dropped or noted for one reason, and the places of the first few."""

    count: int
    first: list[int | str]

    def describe(self, reason: str) -> str:
        return f"{reason} ({', '.join(map(where, self.first))}{', ...' if self.count > len(self.first) else ''})"


MALFORMED: Final = "not "
"""The beginning of the reason for which a malformed row is dropped; what was expected follows."""


@dataclass(frozen=True)
class ReadReport:
    """What was read from one file or generator.

    Attributes:
        rows: The number of rows: those kept and those dropped.
        dropped: The dropped rows by reason.
        noted: The kept rows with an oddity, by oddity.
    """

    origin: str
    rows: int
    kept: int
    dropped: dict[str, RowTally] = field(default_factory=dict)
    noted: dict[str, RowTally] = field(default_factory=dict)

    @property
    def num_malformed(self) -> int:
        """The number of rows dropped with `on_bad_row: skip`."""
        return sum(tally.count for reason, tally in self.dropped.items() if reason.startswith(MALFORMED))

    def dropped_rows(self) -> str:
        """The dropped rows as the end of an error message."""
        return "".join(f"; {counted(tally.count, 'row')} dropped: {reason}" for reason, tally in self.dropped.items())


_ENOUGH_ITEMS: Final = 20
"""Items of a class in a split from which its score is worth a look: one of 20 moves the recall by 5 points."""


@dataclass(frozen=True)
class Rarest:
    """The class with the fewest items in a split, and their number.

    Attributes:
        label: The class; `words` or `questions` if the score does not tell classes apart.
        count: The number of its items.
        together: Whether all items have this label and no other class is known: words, questions, or spans of one type.
    """

    label: str
    count: int
    together: bool = False


@dataclass(frozen=True)
class LoadReport:
    """What was read and dropped, and how the splits were made.

    Attributes:
        read: What was read, by split of the source.
        sizes: The number of records by split.
        drawn: How each split that was drawn from the training split was drawn.
        shared: For two splits ("train and test"), how many records of the second also occur in the first.
        cut: How many rows of each split were truncated to the length limit when encoded.
        altered: How the training split was altered, if it was.
        rarest: The rarest class of dev and test, where they were counted.
        unseen: The number of items of dev and test of each class that train lacks, where they were counted.
        groups: What was counted of the groups that a column names, a line for each.
    """

    read: dict[str, ReadReport]
    sizes: dict[str, int]
    drawn: dict[str, str]
    shared: dict[str, int]
    cut: dict[str, int] = field(default_factory=dict)
    altered: str | None = None
    rarest: dict[str, Rarest] = field(default_factory=dict)
    unseen: dict[str, dict[str, int]] = field(default_factory=dict)
    groups: list[str] = field(default_factory=list)

    def few_items(self) -> str | None:
        """A warning if the rarest class of dev or test has so few items that its score is a matter of chance."""
        few = {split: rarest for split, rarest in self.rarest.items() if rarest.count < _ENOUGH_ITEMS}
        if not few:
            return None
        found = " and ".join(f"{split} has {rarest.count} of {rarest.label!r}" for split, rarest in few.items())
        what = "items" if all(rarest.together for rarest in few.values()) else "items of the rarest class"
        *remedies, last = ["Label more of them"] + [
            f"draw a larger {split} split (data.{split}_share)"
            if split in self.drawn
            else f"give a larger {split} file"
            for split in few
        ]
        return (
            f"Warning: too few {what}: {found}, and with fewer than {_ENOUGH_ITEMS} a score depends "
            f"on chance. {', '.join(remedies)} or {last}."
        )

    def plain(self) -> dict[str, Any]:
        """The report as plain values, to be stored with a run."""
        return asdict(self)

    @classmethod
    def of(cls, plain: dict[str, Any]) -> LoadReport:
        """The inverse of `plain`."""
        return TypeAdapter(cls).validate_python(plain)

    def as_json(self) -> str:
        return json.dumps(self.plain(), ensure_ascii=False, indent=2)

    def __str__(self) -> str:
        """The warning of `few_items`, a line of sizes, and a line for each oddity that affects how results are read."""
        sizes = ", ".join(f"{self.sizes[split]} {split}" for split in ("train", "dev", "test") if split in self.sizes)
        drawn = "; ".join(f"{split} is {how}" for split, how in self.drawn.items())
        lines = [warning] if (warning := self.few_items()) else []
        lines.append(f"data: {sizes} records{f' ({drawn})' if drawn else ''}")
        lines += [f"  train: {self.altered}"] if self.altered else []
        lines += self.groups
        for read in self.read.values():
            for verb, tallies in (("dropped", read.dropped), ("noted", read.noted)):
                lines += [
                    f"  {tally.count} of {read.rows} rows of {read.origin} {verb}: {tally.describe(reason)}"
                    for reason, tally in tallies.items()
                ]
        for split, counts in self.unseen.items():
            names = ", ".join(f"{label!r} ({count})" for label, count in counts.items())
            lines.append(f"  {split} has classes that train lacks, which no run can predict: {names}")
        for pair, count in self.shared.items():
            first, _, second = pair.partition(" and ")
            lines.append(f"  {count} of {self.sizes[second]} {second} records also occur in {first}")
        lines += [
            f"  {count} of {self.sizes[split]} {split} records truncated to max_length"
            for split, count in self.cut.items()
            if count
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class Splits:
    """The splits of a data set; `test` is empty if there is none.

    Attributes:
        digest: A hash of the content of all splits: the same data have the same digest in any folder.
    """

    train: Sequence[Any]
    dev: Sequence[Any]
    test: Sequence[Any]
    report: LoadReport
    digest: str


def digest(splits: Iterable[Iterable[Record]], by: Mapping[str, int | str] | None = None) -> str:
    """A hash of the records of each split in their order, the same on every machine and Python.

    Args:
        splits: Train, dev and test; one that does not exist is empty.
        by: The columns that the splits are drawn by, if there are any: they, and the groups, are part of the hash.
    """
    result, names = hashlib.sha256(json.dumps(by).encode() if by else b""), list[str]()
    for records in splits:
        for record in records:
            # Older versions did not store the document: the digest of the same data must stay the same.
            names = names or [each.name for each in fields(record) if by or each.name != "document"]
            result.update(json.dumps([getattr(record, name) for name in names]).encode())
        result.update(b"\n")
    return result.hexdigest()[:16]
