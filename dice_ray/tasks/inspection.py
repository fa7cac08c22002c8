"""Statistics of a data set before training: sizes, imbalance, lengths, duplicates."""

from __future__ import annotations

import inspect as python_inspect
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from operator import itemgetter
from typing import Any, Literal, TypeAlias

import numpy as np

from dice_ray.data.records import LoadReport, NestedRecord, QueryRecord, Rarest, Record, Splits, TaggedRecord
from dice_ray.tasks.base import TaskBranch
from dice_ray.unspaced import UNSPACED

_Unit: TypeAlias = Literal["words", "characters"]


@dataclass(frozen=True)
class _Lengths:
    """The lengths of a split's records, in words or characters."""

    median: float
    percentile_95: int
    longest: int
    total: int


@dataclass(frozen=True)
class _SplitFacts:
    """Statistics of one split.

    Attributes:
        negatives: As the task counts them (`Inspection.convention`).
        labels: The number of items of each label, the most frequent first.
        duplicates: The number of records with the same content as an earlier one.
    """

    num_records: int
    negatives: int
    positives: int
    labels: dict[str, int]
    lengths: _Lengths
    duplicates: int

    @property
    def ratio(self) -> float | None:
        """Negatives for each positive; `None` if there are no positives."""
        return self.negatives / self.positives if self.positives else None


@dataclass(frozen=True)
class Inspection:
    """Statistics of a data set for a task.

    Attributes:
        name: Of its preset.
        convention: What counts as negative and as positive.
        unit: The unit of lengths.
        splits: Those that are not empty, by name.
        load: Records read and dropped, and records that are in two splits.
    """

    name: str
    task: str
    convention: str
    unit: _Unit
    splits: dict[str, _SplitFacts]
    load: LoadReport

    def plain(self) -> dict[str, Any]:
        """The inspection as plain values, with the ratios."""
        splits = {split: asdict(facts) | {"ratio": facts.ratio} for split, facts in self.splits.items()}
        return asdict(self) | {"splits": splits}


def rarest_and_unseen(
    task: TaskBranch, classes: Sequence[str], splits: Mapping[str, Sequence[Record]]
) -> tuple[dict[str, Rarest], dict[str, dict[str, int]]]:
    """The rarest class of each split, and the number of items of each class that the training split lacks.

    Splits are dev and test, by name; empty ones are left out, and from the numbers those without such a class. Each
    should have all of `classes`, which are those of the training split.
    """
    known = task.support((), classes)
    rarest, unseen = dict[str, Rarest](), dict[str, dict[str, int]]()
    for split, records in splits.items():
        if records:
            counts = task.support(records, classes)
            if counts:
                label, count = min(counts.items(), key=itemgetter(1))
                rarest[split] = Rarest(label, count, together=len(counts) == 1 and label not in classes)
            if lacking := {name: number for name, number in counts.items() if name not in known}:
                unseen[split] = lacking
    return rarest, unseen


def inspect(name: str, task: TaskBranch, splits: Splits) -> Inspection:
    """Compute the statistics of a data set's splits for a task."""
    by_name: Mapping[str, Sequence[Record]] = {"train": splits.train, "dev": splits.dev, "test": splits.test}
    unit: _Unit = "characters" if _without_spaces(islice(splits.train, 1000)) else "words"
    convention = python_inspect.getdoc(task.negatives_and_positives) or ""
    facts = {split: _facts(task, records, unit) for split, records in by_name.items() if records}
    held_out = {split: records for split, records in by_name.items() if split != "train"}
    rarest, unseen = rarest_and_unseen(task, tuple(facts["train"].labels), held_out)
    return Inspection(
        name=name,
        task=task.name,
        convention=" ".join(convention.split()),
        unit=unit,
        splits=facts,
        load=replace(splits.report, rarest=rarest, unseen=unseen),
    )


def _facts(task: TaskBranch, records: Sequence[Record], unit: _Unit) -> _SplitFacts:
    # Arrays of numbers, sorted in place: 12 bytes a record, where a list and a set take more than 100.
    lengths_read, contents_read = array("i"), array("q")
    for record in records:
        lengths_read.append(_length(record, unit))
        contents_read.append(hash(record.content))
    lengths, contents = np.frombuffer(lengths_read, np.int32), np.frombuffer(contents_read, np.int64)
    lengths.sort()
    contents.sort()
    num_duplicates = int((contents[1:] == contents[:-1]).sum())
    negatives, positives = task.negatives_and_positives(records)
    return _SplitFacts(
        num_records=len(lengths),
        negatives=negatives,
        positives=positives,
        labels=dict(task.label_counts(records).most_common()),
        lengths=_Lengths(
            median=float(np.median(lengths)),
            percentile_95=int(lengths[max(0, -(-95 * len(lengths) // 100) - 1)]),
            longest=int(lengths[-1]),
            total=int(lengths.sum()),
        ),
        duplicates=num_duplicates,
    )


def _texts(record: Record) -> Sequence[str]:
    """The texts of a record; the words of a tagged one count as texts."""
    return record.words if isinstance(record, QueryRecord) else record.content


def _length(record: Record, unit: _Unit) -> int:
    if unit == "words" and isinstance(record, TaggedRecord | NestedRecord | QueryRecord):
        return len(record.words)
    pieces = [piece for text in _texts(record) for piece in text.split()]
    return len(pieces) if unit == "words" else sum(map(len, pieces))


def _without_spaces(records: Iterable[Record]) -> bool:
    """Whether most characters are of scripts that put no spaces between words, such as Chinese, Japanese and Thai."""
    texts = ["".join(text.split()) for record in records for text in _texts(record)]
    return 2 * sum(len(UNSPACED.findall(text)) for text in texts) > sum(map(len, texts))
