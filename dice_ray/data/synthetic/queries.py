"""Generated sentences with names of people, places and organizations, each asked for by a query; names stand in names.

An organization is named after a place ("bank of oslo"), and that place is a span of its own within it. Some names are
clear, others doubtful ("paris hill"): of the doubtful ones only `DOUBTFUL_POSITIVE` are people, the others no names.

Planted effect: spans that do not overlap cannot hold an organization and its place. At the default dials a perfect
model reaches F1 73 by its most probable spans and 76 by taking the doubtful in, where spans may nest
(`task.mrc_ner.spans: nested`); where they may not, it stands at 60 and 69. What a study should find (3000 queries, 4
epochs, tiny encoder, three seeds): under dice F1 71 to 75 with nested spans and 66 to 68 with flat ones, on every seed
fewer. Cross-entropy finds next to nothing for one epoch or two; in the end it stands at 63 to 73, by precision.
"""

from __future__ import annotations

import random

from dice_ray.data.records import QueryRecord
from dice_ray.data.synthetic.phrases import DOUBTFUL_POSITIVE, THINGS, phrases
from dice_ray.data.synthetic.tagging import CUES, NAMES, NUM_CLAUSES, NUM_WORDS, STATES, TIMES

QUERIES = {"PER": "which people", "LOC": "which places", "ORG": "which organizations"}
KINDS_OF_ORGANIZATION = phrases("bank of|museum of|university of|port of|friends of|city of")
CLEAR = ("PER", "LOC", "ORG")
WORDS_OF_NAME = 2
"""On the average: people and doubtful names have two words, places one, organizations three."""


def queries(size: int, positive_share: float, noise: float, state: random.Random) -> tuple[QueryRecord, ...]:
    """Three queries a sentence, `positive_share` of the words of all sentences in spans (at least one name)."""
    num_sentences = -(-size // len(QUERIES))
    num_names = max(1, round(positive_share * num_sentences * NUM_WORDS / WORDS_OF_NAME))
    doubtful = round(noise * num_names)
    clauses = [("doubtful", "PER")] * doubtful + [("doubtful", "")] * round(doubtful * (1 / DOUBTFUL_POSITIVE - 1))
    clauses += [(CLEAR[number % len(CLEAR)],) * 2 for number in range(num_names - doubtful)]
    clauses += [("", "")] * (num_sentences * NUM_CLAUSES - len(clauses))
    state.shuffle(clauses)
    found = []
    for sentence in range(num_sentences):
        words, spans = _sentence(clauses[sentence::num_sentences], state)
        for type_, query in QUERIES.items():
            of_type = tuple((first, end) for name, first, end in spans if name == type_)
            found.append(QueryRecord(f"{sentence}.{type_}", words, query, type_, of_type, str(sentence)))
    return tuple(found[:size])


def _sentence(
    clauses: list[tuple[str, str]], state: random.Random
) -> tuple[tuple[str, ...], list[tuple[str, int, int]]]:
    words, spans = list[str](), list[tuple[str, int, int]]()
    for name, type_ in clauses:
        first = len(words) + 2
        if not name:
            thing, happened, when = map(state.choice, (THINGS, STATES, TIMES[1]))
            words += [state.choice(["my", "the"]), thing, *happened.split(), when, ","]
            continue
        named = _name(name, state).split()
        words += [*state.choice(CUES).split(), *named]
        if len(named) < 3:
            words += state.choice(TIMES[3 - len(named)]).split()
        words.append(",")
        if type_:
            spans.append((type_, first, first + len(named)))
        if type_ == "ORG":
            spans.append(("LOC", first + 2, first + 3))
    return (*words[:-1], "."), spans


def _name(name: str, state: random.Random) -> str:
    """Three words for an organization, one for a place, two for all others."""
    if name == "ORG":
        return f"{state.choice(KINDS_OF_ORGANIZATION)} {state.choice(NAMES['LOC'][0])}"
    return " ".join(state.choice(choices) for choices in NAMES[name][: 1 if name == "LOC" else 2])
