"""Generated corpora with dials for imbalance, noise, size and seed: the embedded default of every task.

`pairs`: a customer's message and the reply of a help desk; must the case be escalated? A pair is positive if the
message tells of a fault and the reply leaves it open: both sentences are needed. Some faults are clear ("it crashed"),
others doubtful ("it feels slow"): of doubtful faults with an open reply only `DOUBTFUL_POSITIVE` are positive.

Planted effect: doubtful pairs are more often negative than positive, so the threshold 0.5 on honest probabilities
misses them all, while the best F1 takes them all in. At the default dials a perfect model reaches F1 67 at 0.5, and 73
at its tuned threshold; calling all pairs positive gives 18. What a study should find: a tiny encoder under
cross-entropy calls every pair negative for one epoch or two, under dice it learns in the first; after four, both stand
at 68 to 69 (four seeds), and at 72 to 73 with the threshold tuned on dev, which no loss replaces.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal

from pydantic import Field

from dice_ray.data.records import PairRecord
from dice_ray.settings import Branch

DOUBTFUL_POSITIVE = 0.4
"""The share of positives among doubtful messages with an open reply."""


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(" ".join(phrase.split()) for phrase in text.split("|"))


OPENERS = _phrases("hello|good morning|dear team|hi there|good evening|dear all|hi|to whom it concerns")
THINGS = _phrases(
    """router|phone|camera|oven|kettle|laptop|printer|monitor|speaker|lamp|heater|fridge|scanner|tablet|keyboard|drill|
    mixer|radio|watch|freezer|projector|toaster|blender|charger"""
)
MESSAGES = {
    "clear": _phrases("crashed|is broken|caught fire|stopped working"),
    "doubtful": _phrases("feels slow|is rather warm|sounds odd|flickers"),
    "none": _phrases("arrived|works well|is lovely|was a gift"),
}
TIMES = _phrases("since monday|this week|after two days|again|last night|as of today|on sunday|since may")
GREETINGS = _phrases("thank you|thanks|many thanks|sorry to hear|we understand|noted|dear customer|hello")
REPLIES = {
    "open": _phrases("we will look into it|please wait|a colleague will call|we need more time"),
    "settled": _phrases("we sent a new one|the money is back|it has been repaired|the case is closed"),
}
CLOSERS = _phrases("best regards|kind regards|your team|yours|have a nice day|all the best|take care|until soon")


class SyntheticConfig(Branch):
    """A generated corpus.

    Attributes:
        kind: What is generated.
        size: The records of the training split; dev and test have half of it each, with the same share of positives.
        positive_share: The share of positives in every split.
        noise: The share of positives that only doubtful evidence speaks for.
        seed: The seed of the generator.
    """

    name = "synthetic"

    kind: Literal["pairs"] = "pairs"
    size: int = Field(default=2000, ge=20)
    positive_share: float = Field(default=0.1, gt=0, lt=1)
    noise: float = Field(default=0.5, ge=0, le=1)
    seed: int = 0

    def yields(self) -> type[PairRecord]:
        return PairRecord


def generate(config: SyntheticConfig) -> dict[str, tuple[PairRecord, ...]]:
    """All three splits; each has a random state of its own."""
    sizes = {"train": config.size, "dev": config.size // 2, "test": config.size // 2}
    return {
        split: KINDS[config.kind](config, size, random.Random(f"{config.kind} {config.seed} {split}"))
        for split, size in sizes.items()
    }


def pairs(config: SyntheticConfig, size: int, state: random.Random) -> tuple[PairRecord, ...]:
    """Messages and replies, exactly `positive_share` of them positive (at least one of each label)."""
    num_positive = min(max(1, round(config.positive_share * size)), size - 1)
    doubtful = round(config.noise * num_positive)
    doubtful_negative = min(round(doubtful * (1 / DOUBTFUL_POSITIVE - 1)), size - num_positive)
    easy = [(message, reply) for message in MESSAGES for reply in REPLIES if reply == "settled" or message == "none"]
    rows = [("1", "doubtful", "open")] * doubtful + [("1", "clear", "open")] * (num_positive - doubtful)
    rows += [("0", "doubtful", "open")] * doubtful_negative
    rows += [("0", *state.choice(easy)) for _ in range(size - len(rows))]
    state.shuffle(rows)
    return tuple(_pair(str(number), *row, state) for number, row in enumerate(rows, start=1))


def _pair(id: str, label: str, message: str, reply: str, state: random.Random) -> PairRecord:
    first = [f"{state.choice(OPENERS)} , my", *map(state.choice, (THINGS, MESSAGES[message], TIMES))]
    second = map(state.choice, (GREETINGS, REPLIES[reply], CLOSERS))
    return PairRecord(id, " ".join(first), " , ".join(second), label)


KINDS: dict[str, Callable[[SyntheticConfig, int, random.Random], tuple[PairRecord, ...]]] = {"pairs": pairs}
