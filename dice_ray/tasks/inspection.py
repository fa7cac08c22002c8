"""What a data set is, before anything is trained on it: how many, how unbalanced, how long, how often the same."""

from __future__ import annotations

import inspect as python_inspect
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Literal, TypeAlias

from dice_ray.data.records import (
    LoadReport,
    PairRecord,
    QueryRecord,
    QuestionRecord,
    Record,
    Splits,
    TaggedRecord,
    TextRecord,
)
from dice_ray.tasks.base import TaskBranch

Unit: TypeAlias = Literal["words", "characters"]

WITHOUT_SPACES = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]")
"""Kana and Han."""
NUM_LOOKED_AT = 1000
"""Records that tell whether a text is written without spaces."""


@dataclass(frozen=True)
class Lengths:
    """How long the records of a split are, in words or characters."""

    median: float
    percentile_95: int
    longest: int
    total: int


@dataclass(frozen=True)
class SplitFacts:
    """One split.

    Attributes:
        negatives: As the task counts them (`Inspection.convention`).
        labels: How many items have each label, the most frequent first.
        duplicates: The records whose content an earlier one has.
    """

    num_records: int
    negatives: int
    positives: int
    labels: dict[str, int]
    lengths: Lengths
    duplicates: int

    @property
    def ratio(self) -> float | None:
        """Negatives for each positive, if there is one."""
        return self.negatives / self.positives if self.positives else None


@dataclass(frozen=True)
class Inspection:
    """A data set under a task.

    Attributes:
        name: Of its preset.
        convention: What counts as negative and as positive.
        unit: What lengths are counted in.
        splits: Those that it has, by name.
        load: What was read and dropped, and what stands in two splits.
    """

    name: str
    task: str
    convention: str
    unit: Unit
    splits: dict[str, SplitFacts]
    load: LoadReport

    def plain(self) -> dict[str, Any]:
        """The same as plain values, ratios among them."""
        ratios = {split: {"ratio": facts.ratio} for split, facts in self.splits.items()}
        splits = {split: asdict(facts) | ratios[split] for split, facts in self.splits.items()}
        return asdict(self) | {"splits": splits}


def inspect(name: str, task: TaskBranch, splits: Splits) -> Inspection:
    """What the splits of a data set hold, as this task sees them."""
    held: Mapping[str, Sequence[Record]] = {"train": splits.train, "dev": splits.dev, "test": splits.test}
    unit: Unit = "characters" if _without_spaces(islice(splits.train, NUM_LOOKED_AT)) else "words"
    convention = python_inspect.getdoc(task.negatives_and_positives) or ""
    return Inspection(
        name=name,
        task=task.name,
        convention=" ".join(convention.split()),
        unit=unit,
        splits={split: _facts(task, records, unit) for split, records in held.items() if records},
        load=splits.report,
    )


def _facts(task: TaskBranch, records: Sequence[Record], unit: Unit) -> SplitFacts:
    lengths = []
    seen = set[int]()
    for record in records:
        lengths.append(_length(record, unit))
        seen.add(hash(record.content))
    negatives, positives = task.negatives_and_positives(records)
    lengths.sort()
    return SplitFacts(
        num_records=len(lengths),
        negatives=negatives,
        positives=positives,
        labels=dict(task.label_counts(records).most_common()),
        lengths=Lengths(
            median=statistics.median(lengths),
            percentile_95=lengths[max(0, -(-95 * len(lengths) // 100) - 1)],
            longest=lengths[-1],
            total=sum(lengths),
        ),
        duplicates=len(lengths) - len(seen),
    )


def _texts(record: Record) -> Sequence[str]:
    """The texts of a record; words of a tagged one are texts of their own."""
    match record:
        case PairRecord():
            return record.first, record.second
        case TextRecord():
            return (record.text,)
        case QuestionRecord():
            return record.question, record.context
        case TaggedRecord() | QueryRecord():
            return record.words


def _length(record: Record, unit: Unit) -> int:
    if unit == "words" and isinstance(record, TaggedRecord | QueryRecord):
        return len(record.words)
    pieces = [piece for text in _texts(record) for piece in text.split()]
    return len(pieces) if unit == "words" else sum(map(len, pieces))


def _without_spaces(records: Iterable[Record]) -> bool:
    """Whether most characters are Chinese or Japanese, which are written without spaces."""
    texts = ["".join(text.split()) for record in records for text in _texts(record)]
    return 2 * sum(len(WITHOUT_SPACES.findall(text)) for text in texts) > sum(map(len, texts))
