"""Altered training sets: records of a class dropped, or augmented copies added (the paper's Table 8, and ratios).

The training split has n_neg negatives and n_pos positives, n together, and k = n_neg - n_pos; dev and test are not
altered. Two shares printed in the paper contradict its definitions: 21 % positives for "+ negative", which adds k
negatives and thus has n_pos / (n + k), 29.4 % on QQP; and 50/50 for "+ positive & negative", which keeps the ratio.
`composed` makes sets of n + k records with the shares as printed.

Copies never leak the held-out splits: no copy is made of a record whose text also occurs in dev or test, and none has
the text of any record of any split, or of another copy (`same_text`).
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Annotated, NamedTuple, TypeAlias

from pydantic import Field

from dice_ray.data.augment import AugmentConfig, Augmented, Gazetteer, copies
from dice_ray.data.draws import same_text
from dice_ray.data.records import PairRecord
from dice_ray.errors import DataError
from dice_ray.settings import Branch, Choice


class ClassCounts(NamedTuple):
    """The number of records of each class."""

    negatives: int
    positives: int

    def __str__(self) -> str:
        return f"{self.negatives} negatives and {self.positives} positives"


class AsReadConfig(Branch):
    """The training split as it is."""

    name = "none"


class AlteredConfig(Branch, ABC):
    """An altered training set.

    Attributes:
        seed: The seed of which records are dropped, and which ones copied.
    """

    seed: int = 0

    @abstractmethod
    def target(self, read: ClassCounts) -> ClassCounts:
        """The number of records of each class in the altered set."""

    def surplus(self, read: ClassCounts) -> int:
        """The paper's k; a DataError where there are no fewer positives than negatives."""
        if read.positives >= read.negatives:
            raise DataError(
                f"data.imbalance {self.name} needs more negatives than positives in the training split, as it adds or "
                f"drops k = n_neg - n_pos records: got {read}, k = {read.negatives - read.positives}. "
                "Use data.imbalance ratio, or name the rarer label as positive"
            )
        return read.negatives - read.positives


class AddPositiveConfig(AlteredConfig):
    """+ positive: adds k copies of positives, so that both classes are equal."""

    name = "add_positive"

    def target(self, read: ClassCounts) -> ClassCounts:
        return ClassCounts(read.negatives, read.positives + self.surplus(read))


class AddNegativeConfig(AlteredConfig):
    """+ negative: adds k copies of negatives."""

    name = "add_negative"

    def target(self, read: ClassCounts) -> ClassCounts:
        return ClassCounts(read.negatives + self.surplus(read), read.positives)


class DropNegativeConfig(AlteredConfig):
    """- negative: drops k negatives, so that both classes are equal."""

    name = "drop_negative"

    def target(self, read: ClassCounts) -> ClassCounts:
        return ClassCounts(read.negatives - self.surplus(read), read.positives)


class AddBothConfig(AlteredConfig):
    """+ positive & negative: adds k copies at the ratio of the training split."""

    name = "add_both"

    def target(self, read: ClassCounts) -> ClassCounts:
        added = self.surplus(read)
        positives = round(added * read.positives / sum(read))
        return ClassCounts(read.negatives + added - positives, read.positives + positives)


class ComposedConfig(AlteredConfig):
    """n + k records with a given share of positives: a class with too many loses some, one with too few gets copies.

    Attributes:
        positive_share: The share of positives. At 0.5 this is + positive; another seed draws another set.
    """

    name = "composed"

    positive_share: float = Field(gt=0, lt=1)

    def target(self, read: ClassCounts) -> ClassCounts:
        total = sum(read) + self.surplus(read)
        positives = round(self.positive_share * total)
        return ClassCounts(total - positives, positives)


class RatioConfig(AlteredConfig):
    """A given number of negatives for each positive, in a training set of one size.

    Attributes:
        negatives: The number of negatives for each positive.
        size: The number of records; by default, as many as were read. A smaller set needs fewer copies, or none.
    """

    name = "ratio"

    negatives: float = Field(gt=0)
    size: int | None = Field(None, ge=2)

    def target(self, read: ClassCounts) -> ClassCounts:
        total = self.size or sum(read)
        positives = round(total / (1 + self.negatives))
        return ClassCounts(total - positives, positives)


class FewPositivesConfig(AlteredConfig):
    """All negatives, and a given number of positives, those of a smaller number among those of a larger one.

    Attributes:
        positives: The number of positives.
    """

    name = "few_positives"

    positives: int = Field(ge=1)

    def target(self, read: ClassCounts) -> ClassCounts:
        if read.positives < self.positives:
            raise DataError(
                "data.imbalance few_positives must keep at most the positives of the training split, "
                f"{read.positives}, got {self.positives}"
            )
        return ClassCounts(read.negatives, self.positives)


ImbalanceConfig: TypeAlias = Annotated[
    AsReadConfig
    | AddPositiveConfig
    | AddNegativeConfig
    | DropNegativeConfig
    | AddBothConfig
    | ComposedConfig
    | RatioConfig
    | FewPositivesConfig,
    Choice(),
]


def alter(
    config: AlteredConfig, augment: AugmentConfig, train: Sequence[Augmented], held_out: Collection[int], positive: str
) -> tuple[list[int], list[Augmented], str]:
    """Alter a training split; `held_out` has the hashes of the texts of dev and test.

    Returns the indices of the records that stay, in ascending order, the copies, and what was dropped and added.

    Raises:
        DataError: A class has no record, or not enough different copies can be made.
    """
    is_positive = [record.labels == (positive,) for record in train]
    counts = ClassCounts(is_positive.count(False), is_positive.count(True))
    if not all(counts):
        known = sorted({label for record in train for label in record.labels})[:20]
        raise DataError(
            f"data.imbalance {config.name} needs records of both classes in the training split: the positive label is "
            f"{positive!r}, and the labels are {known}"
        )
    target = config.target(counts)
    if not all(target):
        raise DataError(f"data.imbalance {config.name} must leave a record of each class, got {target} of {counts}")
    adds_copies = any(goal > count for goal, count in zip(target, counts, strict=True))
    gazetteer = augment.entities.gazetteer(train) if adds_copies else None
    known_texts = {*held_out, *(hash(same_text(record)) for record in train)}
    kept, added = list[int](), list[Augmented]()
    for cls, (count, goal) in enumerate(zip(counts, target, strict=True)):
        indices = [index for index, positive_record in enumerate(is_positive) if positive_record == bool(cls)]
        # A state for each class: what is drawn of one does not depend on the size of the other.
        state = random.Random(f"imbalance {config.seed} {cls}")
        state.shuffle(indices)
        kept += indices[: min(count, goal)]
        if gazetteer is not None and goal > count:
            templates = (train[index] for index in indices if hash(same_text(train[index])) not in held_out)
            new = list(islice(_new_copies(templates, gazetteer, augment, known_texts, state), goal - count))
            if len(new) < goal - count:
                is_shared = augment.swap == "shared" and isinstance(train[0], PairRecord)
                where = "in both sentences" if is_shared else "in a record"
                any_swap = "set data.augment.swap=any to swap those of one sentence alone, " if is_shared else ""
                raise DataError(
                    f"data.imbalance {config.name} must add {goal - count} {'positive' if cls else 'negative'} records "
                    f"that differ from all others, and only {len(new)} can be made by swapping "
                    f"{augment.entities.origin()} that occur {where}: give more entities in data.augment.entities, "
                    f"{any_swap}or do without copies by data.imbalance drop_negative, by data.imbalance ratio with a "
                    "smaller data.imbalance.ratio.size, or by data.oversampling"
                )
            added += new
    description = f"{target} by data.imbalance {config.name}, of {counts}"
    if added:
        description += f"; {len(added)} are copies with {augment.entities.origin()} swapped"
    return sorted(kept), added, description


def _new_copies(
    templates: Iterator[Augmented],
    gazetteer: Gazetteer,
    augment: AugmentConfig,
    known_texts: set[int],
    state: random.Random,
) -> Iterator[Augmented]:
    """Copies with a new text: one of each template, then a second one of each, until no template has another one.

    Adds the text of each copy to `known_texts`.
    """
    copies_by_template: Iterator[Iterator[Augmented]] = (
        copies(template, gazetteer, augment.swap, state) for template in templates
    )
    while True:
        not_exhausted = list[Iterator[Augmented]]()
        for of_template in copies_by_template:
            new = next((copy for copy in of_template if hash(same_text(copy)) not in known_texts), None)
            if new is not None:
                known_texts.add(hash(same_text(new)))
                not_exhausted.append(of_template)
                yield new
        if not not_exhausted:
            return
        # In the first round a generator, so that no copy is prepared of a template that is not reached.
        copies_by_template = iter(not_exhausted)
