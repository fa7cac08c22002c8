"""Altered training sets, those of the paper's Table 8 and a sweep of ratios: records of a class dropped, copies added.

With n_neg negatives and n_pos positives in the training split, n together, k is n_neg - n_pos. Dev and test stay as
they are. The paper's text prints 21 % positives for + negative, which has k added ones and n_pos / (n + k), 29.4 % on
QQP; and 50/50 for + positive & negative, which keeps the ratio. `composed` makes sets of n + k as printed.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, NamedTuple, TypeAlias

from pydantic import Field

from dice_ray.data.augment import AugmentConfig, Augmented, copies
from dice_ray.data.entities import Gazetteer
from dice_ray.data.records import PairRecord
from dice_ray.errors import DataError
from dice_ray.settings import Branch, Choice


class Counts(NamedTuple):
    """How many records of each class."""

    negatives: int
    positives: int

    def __str__(self) -> str:
        return f"{self.negatives} negatives and {self.positives} positives"


class AsReadConfig(Branch):
    """The training split as it was read."""

    name = "none"


class AlteredConfig(Branch, ABC):
    """An altered training set.

    Attributes:
        seed: Which records are dropped and which ones copied.
    """

    seed: int = 0

    @abstractmethod
    def wanted(self, read: Counts) -> Counts:
        """How many records of each class the altered set has."""

    def surplus(self, read: Counts) -> int:
        """The paper's k.

        Raises:
            DataError: Positives are as many as negatives, or more.
        """
        if read.positives >= read.negatives:
            raise DataError(
                f"data.imbalance {self.name} needs more negatives than positives in the training split, as it adds or "
                f"drops k = n_neg - n_pos records: got {read}, k = {read.negatives - read.positives}. "
                "data.imbalance ratio takes any; or name the rarer label as positive"
            )
        return read.negatives - read.positives


class AddPositiveConfig(AlteredConfig):
    """+ positive: k copies of positives more, so that both classes are equal."""

    name = "add_positive"

    def wanted(self, read: Counts) -> Counts:
        return Counts(read.negatives, read.positives + self.surplus(read))


class AddNegativeConfig(AlteredConfig):
    """+ negative: k copies of negatives more."""

    name = "add_negative"

    def wanted(self, read: Counts) -> Counts:
        return Counts(read.negatives + self.surplus(read), read.positives)


class DropNegativeConfig(AlteredConfig):
    """- negative: k negatives less, so that both classes are equal."""

    name = "drop_negative"

    def wanted(self, read: Counts) -> Counts:
        return Counts(read.negatives - self.surplus(read), read.positives)


class AddBothConfig(AlteredConfig):
    """+ positive & negative: k copies more, at the ratio of the training split."""

    name = "add_both"

    def wanted(self, read: Counts) -> Counts:
        added = self.surplus(read)
        positives = round(added * read.positives / sum(read))
        return Counts(read.negatives + added - positives, read.positives + positives)


class ComposedConfig(AlteredConfig):
    """n + k records with a share of positives: classes with too many lose some, those with too few get copies.

    Attributes:
        positive_share: The share. At .5 this is + positive; another seed draws it again.
    """

    name = "composed"

    positive_share: float = Field(gt=0, lt=1)

    def wanted(self, read: Counts) -> Counts:
        total = sum(read) + self.surplus(read)
        positives = round(self.positive_share * total)
        return Counts(total - positives, positives)


class RatioConfig(AlteredConfig):
    """As many records as were read, with so many negatives for each positive.

    Attributes:
        negatives: For each positive.
    """

    name = "ratio"

    negatives: float = Field(gt=0)

    def wanted(self, read: Counts) -> Counts:
        positives = round(sum(read) / (1 + self.negatives))
        return Counts(sum(read) - positives, positives)


ImbalanceConfig: TypeAlias = Annotated[
    AsReadConfig
    | AddPositiveConfig
    | AddNegativeConfig
    | DropNegativeConfig
    | AddBothConfig
    | ComposedConfig
    | RatioConfig,
    Choice(),
]


@dataclass(frozen=True)
class Altered:
    """An altered training set.

    Attributes:
        kept: The places of the records that stay, in their order.
        added: The copies.
        told: What was done, in words.
    """

    kept: list[int]
    added: list[Augmented]
    told: str


def altered(
    config: AlteredConfig,
    augment: AugmentConfig,
    train: Sequence[Augmented],
    held_out: Collection[int],
    positive: str,
) -> Altered:
    """The altered set of a training split.

    Args:
        config: What is wanted.
        augment: How copies are made.
        train: The training split.
        held_out: The hashes of the contents of dev and test: no copy is made of such a record, and none like one.
        positive: The label of the positive class.

    Raises:
        DataError: A class has no record, or not enough different copies can be made.
    """
    is_positive = [label(record) == positive for record in train]
    read = Counts(is_positive.count(False), is_positive.count(True))
    if not all(read):
        known = sorted({label(record) for record in train})[:20]
        raise DataError(
            f"data.imbalance {config.name} needs records of both classes in the training split: the positive label is "
            f"{positive!r}, and the labels are {known}"
        )
    wanted = config.wanted(read)
    if not all(wanted):
        raise DataError(f"data.imbalance {config.name} must leave a record of each class, got {wanted} of {read}")
    gazetteer = augment.entities.gazetteer(train) if any(w > r for w, r in zip(wanted, read, strict=True)) else None
    known_contents = {*held_out, *(hash(record.content) for record in train)}
    kept, added = list[int](), list[Augmented]()
    for cls, (size, want) in enumerate(zip(read, wanted, strict=True)):
        places = [place for place, positive_one in enumerate(is_positive) if positive_one == bool(cls)]
        state = random.Random(f"imbalance {config.seed} {cls}")
        state.shuffle(places)
        kept += places[: min(size, want)]
        if gazetteer is not None and want > size:
            templates = (train[place] for place in places if hash(train[place].content) not in held_out)
            found = list(islice(_new(templates, gazetteer, augment, known_contents, state), want - size))
            if len(found) < want - size:
                raise _too_few(config, augment, len(found), want - size, "positive" if cls else "negative")
            added += found
    told = f"{wanted} by data.imbalance {config.name}, of {read}"
    if added:
        told += f"; {len(added)} are copies with {augment.entities.origin()} swapped"
    return Altered(sorted(kept), added, told)


def label(record: Augmented) -> str:
    """The one label of a record."""
    return record.label if isinstance(record, PairRecord) else ";".join(record.labels)


def _new(
    templates: Iterator[Augmented],
    gazetteer: Gazetteer,
    augment: AugmentConfig,
    known_contents: set[int],
    state: random.Random,
) -> Iterator[Augmented]:
    """Copies that no split has, of one template after the other, then a second one of each, until there are no more."""
    of_each: Iterator[Iterator[Augmented]] = (copies(each, gazetteer, augment.swap, state) for each in templates)
    while True:
        more = list[Iterator[Augmented]]()
        for of_one in of_each:
            fresh = next((copy for copy in of_one if hash(copy.content) not in known_contents), None)
            if fresh is not None:
                known_contents.add(hash(fresh.content))
                more.append(of_one)
                yield fresh
        if not more:
            return
        of_each = iter(more)


def _too_few(config: AlteredConfig, augment: AugmentConfig, found: int, wanted: int, cls: str) -> DataError:
    where = "in both sentences" if augment.swap == "shared" else "in a record"
    return DataError(
        f"data.imbalance {config.name} must add {wanted} {cls} records that differ from all others, and only {found} "
        f"can be made by swapping {augment.entities.origin()} that stand {where}: data.augment.entities takes more "
        "entities, data.augment.swap=any those of one sentence alone"
    )
