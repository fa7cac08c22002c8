"""Generated corpora with settings for imbalance, noise, size and seed: the built-in default data of every task.

Each corpus plants an effect of a known size through doubtful evidence, of which only the share `DOUBTFUL_POSITIVE` is
positive: the most probable prediction is negative, but the best score may need all of it predicted as positive. The
docstring of each generator gives the scores of a perfect model, and what a study of losses should find.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from dice_ray.data.formats.base import Kept
from dice_ray.data.reading import SplitSource
from dice_ray.data.records import PairRecord, QueryRecord, QuestionRecord, Record, TaggedRecord, TextRecord
from dice_ray.data.synthetic.labels import MAX_LABEL_SHARE, labels
from dice_ray.data.synthetic.pairs import pairs
from dice_ray.data.synthetic.queries import queries
from dice_ray.data.synthetic.questions import questions
from dice_ray.data.synthetic.tagging import MAX_NAME_SHARE, tagging
from dice_ray.data.synthetic.texts import texts
from dice_ray.settings import Branch, Nested, nested


class SyntheticConfig(Branch):
    """A generated corpus.

    Attributes:
        kind: The kind of records.
        size: The number of training records; dev and test have half as many each.
        positive_share: The share of positives in each split: of pairs, texts of the rare class, words in names,
            questions with an answer, or labels given among those possible.
        noise: The share of positives with only doubtful evidence.
        seed: The seed of the generator.
    """

    name = "synthetic"

    kind: Literal["labels", "pairs", "queries", "questions", "tagging", "texts"] = "pairs"
    size: int = Field(default=2000, ge=20, le=10_000_000)
    positive_share: float = Field(default=0.1, gt=0, lt=1)
    noise: float = Field(default=0.5, ge=0, le=1)
    seed: int = 0

    @model_validator(mode="after")
    def _share_leaves_room_for_noise(self) -> SyntheticConfig:
        largest = {"labels": MAX_LABEL_SHARE, "queries": MAX_NAME_SHARE, "tagging": MAX_NAME_SHARE}.get(self.kind, 1)
        if self.positive_share > largest:
            raise ValueError(f"positive_share must be at most {largest} for {self.kind}, got {self.positive_share}")
        return self

    def yields(self) -> type[Record]:
        return KINDS[self.kind][0]

    @property
    def title(self) -> str:
        return f"synthetic:{self.kind}"

    def read(self) -> dict[str, SplitSource]:
        return {
            split: SplitSource(self.title, Path(self.title), partial(map, Kept, count(1), records))
            for split, records in generate(self).items()
        }

    def key(self) -> Nested:
        return nested(self)


def generate(config: SyntheticConfig) -> dict[str, tuple[Any, ...]]:
    """Generate all three splits, each from its own random state, so that one does not depend on the size of another."""
    sizes = {"train": config.size, "dev": config.size // 2, "test": config.size // 2}
    _, records = KINDS[config.kind]
    return {
        split: records(size, config.positive_share, config.noise, random.Random(f"{config.kind} {config.seed} {split}"))
        for split, size in sizes.items()
    }


KINDS: dict[str, tuple[type[Record], Callable[[int, float, float, random.Random], tuple[Record, ...]]]] = {
    "labels": (TextRecord, labels),
    "pairs": (PairRecord, pairs),
    "queries": (QueryRecord, queries),
    "questions": (QuestionRecord, questions),
    "tagging": (TaggedRecord, tagging),
    "texts": (TextRecord, texts),
}
