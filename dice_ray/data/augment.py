"""Augmentation: copies of training records in which entities are swapped for others of their kind."""

from __future__ import annotations

import math
import random
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from dice_ray.data.cache import file_hash
from dice_ray.data.entities import (
    AUTO,
    Gazetteer,
    Mention,
    find_entities,
    finder_version,
    read_entities,
    resolve_finder,
)
from dice_ray.data.places import expand_path
from dice_ray.data.records import PairRecord, TextRecord
from dice_ray.errors import DataError
from dice_ray.settings import Branch, Choice, Settings

Augmented: TypeAlias = PairRecord | TextRecord
"""The records that can be augmented: those of one or two texts."""


class EntitiesBranch(Branch, ABC):
    """A source of entities."""

    @abstractmethod
    def key(self) -> Any:
        """Everything the entities depend on, except the training split."""

    @abstractmethod
    def origin(self) -> str:
        """The source as a phrase for reports and errors."""

    @abstractmethod
    def gazetteer(self, records: Sequence[Augmented]) -> Gazetteer:
        """The entities for a training split."""


class FoundEntitiesConfig(EntitiesBranch):
    """Entities found in the training split.

    Attributes:
        finder: What finds them: `rules` (numbers, and capitalised words within sentences), the name or folder of a
            spaCy pipeline, or `auto`: `en_core_web_sm` if it is installed, else `rules`.
    """

    name = "found"

    finder: str = AUTO

    def key(self) -> str:
        return finder_version(resolve_finder(self.finder))

    def origin(self) -> str:
        return f"entities found by {self.key()}"

    def gazetteer(self, records: Sequence[Augmented]) -> Gazetteer:
        return Gazetteer(
            find_entities(lambda: (text for record in records for text in record.content), resolve_finder(self.finder))
        )


class FileEntitiesConfig(EntitiesBranch):
    """Entities from a file.

    Attributes:
        path: A file with one entity a line, or its kind, a tab and the entity; `~` and `$VARIABLES` are expanded.
    """

    name = "file"

    path: str

    def key(self) -> str:
        return file_hash(self._existing_path())

    def origin(self) -> str:
        return f"entities of {self._existing_path().name}"

    def gazetteer(self, records: Sequence[Augmented]) -> Gazetteer:
        return Gazetteer(read_entities(self._existing_path()))

    def _existing_path(self) -> Path:
        path = expand_path(self.path, "data.augment.entities.file.path")
        if not path.is_file():
            raise DataError(f"data.augment.entities.file.path: there must be a file {path}, and there is none")
        return path


class GivenEntitiesConfig(EntitiesBranch):
    """Entities written in the configuration.

    Attributes:
        by_kind: The entities of each kind; each can replace another of its kind.
    """

    name = "given"

    by_kind: dict[str, list[str]]

    def key(self) -> dict[str, list[str]]:
        return self.by_kind

    def origin(self) -> str:
        return "given entities"

    def gazetteer(self, records: Sequence[Augmented]) -> Gazetteer:
        return Gazetteer(self.by_kind)


EntitiesConfig: TypeAlias = Annotated[FoundEntitiesConfig | FileEntitiesConfig | GivenEntitiesConfig, Choice()]


class AugmentConfig(Settings):
    """How records are added to a training set: entities of a record are swapped for others of their kind.

    Attributes:
        entities: The source of entities.
        swap: Which entities are swapped: in a pair only those that occur in both sentences (`shared`), or `any`.
    """

    entities: EntitiesConfig = FoundEntitiesConfig()
    swap: Literal["shared", "any"] = "shared"

    def key(self) -> list[Any]:
        """Everything the copies depend on, except the training split."""
        return [self.entities.name, self.entities.key(), self.swap]


def copies(
    record: Augmented, gazetteer: Gazetteer, swap: Literal["shared", "any"], state: random.Random
) -> Iterator[Augmented]:
    """Every copy of a record with its entities swapped, in random order; the ids of record 7's are 7+1, 7+2, ...

    An entity is replaced by the same other one wherever it occurs in the record, and never by one that occurs there.
    """
    mentions = [gazetteer.mentions(text) for text in record.content]
    entities_by_text = [{mention.entity for mention in of_text} for of_text in mentions]
    present = set.union(*entities_by_text)
    swappable = set.intersection(*entities_by_text) if swap == "shared" else present
    present_of_kind: dict[str, list[int]] = defaultdict(list)
    for entity in present:
        kind, index = gazetteer.indices[entity]
        present_of_kind[kind].append(index)
    candidates = dict[str, EntitiesWithout]()
    num_of_kind = Counter[str]()
    # Sorted: a set of strings has another order in each process, and the copies must be the same in all.
    for entity in sorted(swappable):
        kind, _ = gazetteer.indices[entity]
        others = EntitiesWithout(gazetteer.entities[kind], sorted(present_of_kind[kind]))
        if len(others) > num_of_kind[kind]:  # else too few are left for all entities of the kind to differ
            candidates[entity] = others
            num_of_kind[kind] += 1
    combinations = _combinations(list(candidates.values()), state) if candidates else ()
    # The replacements in a combination are independent, so two entities of a kind may get the same one: no copy.
    distinct = (combination for combination in combinations if len({*combination}) == len(combination))
    for number, replacements in enumerate(distinct, start=1):
        by_entity = dict(zip(candidates, replacements, strict=True))
        texts = [_swap(text, of_text, by_entity) for text, of_text in zip(record.content, mentions, strict=True)]
        copy_id = f"{record.id}+{number}"
        if isinstance(record, PairRecord):
            yield replace(record, id=copy_id, first=texts[0], second=texts[1])
        else:
            yield replace(record, id=copy_id, text=texts[0])


@dataclass(frozen=True)
class EntitiesWithout:
    """The entities of a kind except those at some indices, which are sorted; a view, as a kind may have very many."""

    entities: Sequence[str]
    without: Sequence[int]

    def __len__(self) -> int:
        return len(self.entities) - len(self.without)

    def __getitem__(self, index: int) -> str:
        # In ascending order: an index is shifted by each skipped one at or before it.
        for skipped in self.without:
            index += skipped <= index
        return self.entities[index]


def _combinations(choices: Sequence[EntitiesWithout], state: random.Random) -> Iterator[list[str]]:
    """One entity of each choice, every combination once in pseudo-random order, without a list of all of them.

    Combinations are numbered 0 to n - 1. Steps of a constant stride modulo n visit every number once if the stride has
    no common divisor with n.
    """
    total = math.prod(map(len, choices))
    stride = state.randrange(1, total + 1)
    while math.gcd(stride, total) > 1:
        stride = state.randrange(1, total + 1)
    start = state.randrange(total)
    for step in range(total):
        number = (start + step * stride) % total
        combination = []
        for choice in choices:
            number, index = divmod(number, len(choice))
            combination.append(choice[index])
        yield combination


def _swap(text: str, mentions: Sequence[Mention], by_entity: dict[str, str]) -> str:
    pieces, end = [], 0
    for mention in mentions:
        pieces += [text[end : mention.start], by_entity.get(mention.entity, mention.entity)]
        end = mention.end
    return "".join([*pieces, text[end:]])
