"""Records that are added: copies of training records in which entities are swapped for others of their kind."""

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
from dice_ray.data.entities import AUTO, Gazetteer, Mention, finder_version, found_in, read, resolved
from dice_ray.data.places import filled
from dice_ray.data.records import PairRecord, TextRecord
from dice_ray.errors import DataError
from dice_ray.settings import Branch, Choice, Settings

Augmented: TypeAlias = PairRecord | TextRecord
"""What can be augmented: records of one text or two, and one label."""


class EntitiesBranch(Branch, ABC):
    """Where entities come from."""

    @abstractmethod
    def key(self) -> Any:
        """What decides which entities there are, beside the training split."""

    @abstractmethod
    def origin(self) -> str:
        """The same in words."""

    @abstractmethod
    def gazetteer(self, records: Sequence[Augmented]) -> Gazetteer:
        """The entities for a training split."""


class FoundConfig(EntitiesBranch):
    """Those of the training split.

    Attributes:
        finder: What finds them: `rules` (numbers, and capitalised words within sentences), the name or folder of a
            spaCy pipeline, or `auto`: `en_core_web_sm` where it is installed, else `rules`.
    """

    name = "found"

    finder: str = AUTO

    def key(self) -> str:
        return finder_version(resolved(self.finder))

    def origin(self) -> str:
        return f"entities found by {self.key()}"

    def gazetteer(self, records: Sequence[Augmented]) -> Gazetteer:
        def texts() -> Iterator[str]:
            return (text for record in records for text in record.content)

        return Gazetteer(found_in(texts, resolved(self.finder)))


class FileConfig(EntitiesBranch):
    """Those of a file.

    Attributes:
        path: A file with an entity a line, or its kind, a tab and the entity; `~` and `$VARIABLES` are filled in.
    """

    name = "file"

    path: str

    def key(self) -> str:
        return file_hash(self._existing())

    def origin(self) -> str:
        return f"entities of {self._existing().name}"

    def gazetteer(self, records: Sequence[Augmented]) -> Gazetteer:
        return Gazetteer(read(self._existing()))

    def _existing(self) -> Path:
        path = filled(self.path, "data.augment.entities.file.path")
        if not path.is_file():
            raise DataError(f"data.augment.entities.file.path: there must be a file {path}, and there is none")
        return path


class GivenConfig(EntitiesBranch):
    """Those written here.

    Attributes:
        by_kind: Entities, each of which may stand for another of its kind.
    """

    name = "given"

    by_kind: dict[str, list[str]]

    def key(self) -> dict[str, list[str]]:
        return self.by_kind

    def origin(self) -> str:
        return "given entities"

    def gazetteer(self, records: Sequence[Augmented]) -> Gazetteer:
        return Gazetteer(self.by_kind)


EntitiesConfig: TypeAlias = Annotated[FoundConfig | FileConfig | GivenConfig, Choice()]


class AugmentConfig(Settings):
    """How records are added to a training set: entities of a record are swapped for others of their kind.

    Attributes:
        entities: Where entities come from.
        swap: Which ones are swapped: in a pair only those that stand in both sentences (`shared`), or `any`.
    """

    entities: EntitiesConfig = FoundConfig()
    swap: Literal["shared", "any"] = "shared"

    def key(self) -> list[Any]:
        """What decides which copies are made of a training split."""
        return [self.entities.name, self.entities.key(), self.swap]


def copies(
    record: Augmented, gazetteer: Gazetteer, swap: Literal["shared", "any"], state: random.Random
) -> Iterator[Augmented]:
    """Every copy of a record with its entities swapped, in random order; an entity is swapped wherever it stands.

    The copies of record 7 are 7+1, 7+2, and so on.
    """
    mentions = [gazetteer.mentions(text) for text in record.content]
    standing = [{mention.entity for mention in each} for each in mentions]
    swappable = set.intersection(*standing) if swap == "shared" else set.union(*standing)
    taken: dict[str, list[int]] = defaultdict(list)
    for entity in set.union(*standing):
        kind, place = gazetteer.places[entity]
        taken[kind].append(place)
    swapped = dict[str, Others]()
    num_of_kind = Counter[str]()
    for entity in sorted(swappable):
        kind, _ = gazetteer.places[entity]
        others = Others(gazetteer.entities[kind], sorted(taken[kind]))
        if len(others) > num_of_kind[kind]:
            swapped[entity] = others
            num_of_kind[kind] += 1
    number = 0
    for chosen in _combinations(list(swapped.values()), state) if swapped else ():
        if len({*chosen}) == len(chosen):
            number += 1
            by_entity = dict(zip(swapped, chosen, strict=True))
            texts = [_with(text, each, by_entity) for text, each in zip(record.content, mentions, strict=True)]
            yield _copy(record, f"{record.id}+{number}", texts)


@dataclass(frozen=True)
class Others:
    """The entities of a kind but for those at some places, which are sorted."""

    entities: Sequence[str]
    without: Sequence[int]

    def __len__(self) -> int:
        return len(self.entities) - len(self.without)

    def __getitem__(self, place: int) -> str:
        for passed in self.without:
            place += passed <= place
        return self.entities[place]


def _combinations(choices: Sequence[Others], state: random.Random) -> Iterator[list[str]]:
    """One of each, in every combination once: strides through their numbers that meet each of them."""
    total = math.prod(map(len, choices))
    stride = state.randrange(1, total + 1)
    while math.gcd(stride, total) > 1:
        stride = state.randrange(1, total + 1)
    start = state.randrange(total)
    for index in range(total):
        rest = (start + index * stride) % total
        chosen = []
        for each in choices:
            rest, place = divmod(rest, len(each))
            chosen.append(each[place])
        yield chosen


def _with(text: str, mentions: Sequence[Mention], by_entity: dict[str, str]) -> str:
    pieces, end = [], 0
    for mention in mentions:
        pieces += [text[end : mention.start], by_entity.get(mention.entity, mention.entity)]
        end = mention.end
    return "".join([*pieces, text[end:]])


def _copy(record: Augmented, id_: str, texts: Sequence[str]) -> Augmented:
    if isinstance(record, PairRecord):
        return replace(record, id=id_, first=texts[0], second=texts[1])
    return replace(record, id=id_, text=texts[0])
