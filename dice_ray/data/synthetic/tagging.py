"""Generated sentences with names of people and places.

A sentence has three clauses, some of which hold a name of one or two words. Some names are clear ("anna berg", "oslo"),
others doubtful ("paris hill"): only `DOUBTFUL_POSITIVE` of the doubtful ones are people, the others no names.

Planted effect: a doubtful name is more often none, so the most probable tags leave out all of them, while the best F1
predicts all of them. With the default settings a perfect model reaches F1 67 by its most probable tags, and 73 if it
predicts the doubtful ones too; the constant predictor has 0. What a study should find (1000 sentences, 3 epochs, tiny
encoder, three seeds): under cross-entropy F1 65 to 67, by precision; under dice 73 on every seed, by recall, though not
after each epoch.
"""

from __future__ import annotations

import random

from dice_ray.data.records import TaggedRecord
from dice_ray.data.synthetic.phrases import THINGS, num_doubtful, phrases

NAMES = {
    "PER": (phrases("anna|martin|sofia|oskar|helen|pavel|ingrid|tomas"), phrases("berg|stein|holm|lund|novak|weber")),
    "LOC": (phrases("oslo|bergen|lisbon|vienna|dresden|turin|porto"), phrases("harbour|central|airport|docks")),
    "doubtful": (
        phrases("jordan|paris|florence|chelsea|austin|victoria|carson|sydney"),
        phrases("hill|wood|vale|marsh"),
    ),
}
"""The first and second words of names."""
CUES = phrases("call from|thanks to|more about|as with|just like|sent by")
STATES = phrases("arrived again|works well|is lovely|feels slow|crashed twice")
TIMES = {1: phrases("again|today|yesterday"), 2: phrases("since monday|this week|last night|on sunday|since may")}
NUM_CLAUSES = 3
NUM_WORDS = 6 * NUM_CLAUSES
"""In a sentence: each clause has five words and a punctuation mark."""
_NAME_LENGTHS = (1, 2)
MAX_NAME_SHARE = 0.1
"""The largest `positive_share` that leaves room for the doubtful negatives at any noise."""


def tagging(size: int, positive_share: float, noise: float, state: random.Random) -> tuple[TaggedRecord, ...]:
    """Generate sentences with `positive_share` of their words in names, and at least one name."""
    num_names = max(1, round(positive_share * size * NUM_WORDS * len(_NAME_LENGTHS) / sum(_NAME_LENGTHS)))
    doubtful, doubtful_none = num_doubtful(num_names, noise)
    clauses = [("doubtful", "PER")] * doubtful + [("doubtful", "O")] * doubtful_none
    clauses += [state.choice([("PER", "PER"), ("LOC", "LOC")]) for _ in range(num_names - doubtful)]
    clauses += [("", "O")] * (size * NUM_CLAUSES - len(clauses))
    lengths = [_NAME_LENGTHS[number % len(_NAME_LENGTHS)] for number in range(len(clauses))]
    rows = list(zip(clauses, lengths, strict=True))[: size * NUM_CLAUSES]
    state.shuffle(rows)
    return tuple(_sentence(str(first + 1), rows[first::size], state) for first in range(size))


def _sentence(id: str, rows: list[tuple[tuple[str, str], int]], state: random.Random) -> TaggedRecord:
    words, tags = list[str](), list[str]()
    for (name, type_), length in rows:
        clause_words, clause_tags = _clause(name, type_, length, state)
        words += [*clause_words, ","]
        tags += [*clause_tags, "O"]
    return TaggedRecord(id, (*words[:-1], "."), tuple(tags))


def _clause(name: str, type_: str, length: int, state: random.Random) -> tuple[list[str], list[str]]:
    """Five words and their tags."""
    if not name:
        words = f"{state.choice(['my', 'the'])} {state.choice(THINGS)} {state.choice(STATES)} {state.choice(TIMES[1])}"
        return words.split(), ["O"] * 5
    full_name = " ".join(state.choice(choices) for choices in NAMES[name][:length])
    words = f"{state.choice(CUES)} {full_name} {state.choice(TIMES[3 - length])}"
    inside = ["O"] * length if type_ == "O" else [f"B-{type_}", f"I-{type_}"][:length]
    return words.split(), ["O", "O", *inside, *["O"] * (3 - length)]
