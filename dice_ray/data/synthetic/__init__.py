"""Generated corpora with dials for imbalance, noise, size and seed: the embedded default of every task."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field, model_validator

from dice_ray.data.records import PairRecord, QueryRecord, QuestionRecord, Record, TaggedRecord, TextRecord
from dice_ray.data.synthetic.labels import MOST_LABELLED, labels
from dice_ray.data.synthetic.pairs import pairs
from dice_ray.data.synthetic.queries import queries
from dice_ray.data.synthetic.questions import questions
from dice_ray.data.synthetic.tagging import MOST_NAMED, tagging
from dice_ray.data.synthetic.texts import texts
from dice_ray.settings import Branch


class SyntheticConfig(Branch):
    """A generated corpus.

    Attributes:
        kind: What is generated.
        size: The records of the training split; dev and test have half of it each, with the same share of positives.
        positive_share: The share of positives in every split: of pairs, of texts of the rare class, of words in names,
            of questions with an answer, of labels that texts could have.
        noise: The share of positives that only doubtful evidence speaks for.
        seed: The seed of the generator.
    """

    name = "synthetic"

    kind: Literal["labels", "pairs", "queries", "questions", "tagging", "texts"] = "pairs"
    size: int = Field(default=2000, ge=20)
    positive_share: float = Field(default=0.1, gt=0, lt=1)
    noise: float = Field(default=0.5, ge=0, le=1)
    seed: int = 0

    @model_validator(mode="after")
    def _the_doubtful_have_room(self) -> SyntheticConfig:
        most = {"labels": MOST_LABELLED, "queries": MOST_NAMED, "tagging": MOST_NAMED}.get(self.kind, 1)
        if self.positive_share > most:
            raise ValueError(f"positive_share must be at most {most} for {self.kind}, got {self.positive_share}")
        return self

    def yields(self) -> type[Record]:
        return KINDS[self.kind][0]


def generate(config: SyntheticConfig) -> dict[str, tuple[Any, ...]]:
    """All three splits; each has a random state of its own."""
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
