"""Generated sentences with nested names of people, places and organizations, and a query for each entity type.

An organization is named after a place ("bank of oslo"), and that place is a span of its own within it. Some names are
clear, others doubtful ("paris hill"): only `DOUBTFUL_POSITIVE` of the doubtful ones are people, the others no names.

Planted effect: flat spans, which do not overlap, cannot hold both an organization and its place. With the default
settings a perfect model reaches F1 73 by its most probable spans and 76 if it predicts the doubtful ones too, with
nested spans (`task.mrc_ner.spans: nested`); with flat ones, 60 and 69. What a study should find (3000 queries, 4
epochs, tiny encoder, three seeds): under dice F1 71 to 75 with nested spans and 66 to 68 with flat ones, lower on every
seed. Cross-entropy finds almost nothing for one epoch or two; at the end it reaches 63 to 73, by precision.
"""

from __future__ import annotations

import random

from dice_ray.data.records import QueryRecord
from dice_ray.data.synthetic.phrases import THINGS, num_doubtful, phrases
from dice_ray.data.synthetic.tagging import CUES, NAMES, NUM_CLAUSES, NUM_WORDS, STATES, TIMES

_QUERIES = {"PER": "which people", "LOC": "which places", "ORG": "which organizations"}
_KINDS_OF_ORGANIZATION = phrases("bank of|museum of|university of|port of|friends of|city of")
_CLEAR = ("PER", "LOC", "ORG")
_WORDS_OF_NAME = 2
"""The average: people and doubtful names have two words, places one, organizations three."""


def queries(size: int, positive_share: float, noise: float, state: random.Random) -> tuple[QueryRecord, ...]:
    """Generate three queries a sentence, with `positive_share` of all words in spans, and at least one name."""
    # Rounded up; the queries beyond `size` are cut off at the end.
    num_sentences = -(-size // len(_QUERIES))
    num_names = max(1, round(positive_share * num_sentences * NUM_WORDS / _WORDS_OF_NAME))
    doubtful, doubtful_none = num_doubtful(num_names, noise)
    clauses = [("doubtful", "PER")] * doubtful + [("doubtful", "")] * doubtful_none
    clauses += [(_CLEAR[number % len(_CLEAR)],) * 2 for number in range(num_names - doubtful)]
    clauses += [("", "")] * (num_sentences * NUM_CLAUSES - len(clauses))
    state.shuffle(clauses)
    records = []
    for sentence in range(num_sentences):
        words, spans = _sentence(clauses[sentence::num_sentences], state)
        for type_, query in _QUERIES.items():
            spans_of_type = tuple((first, end) for name, first, end in spans if name == type_)
            records.append(QueryRecord(f"{sentence}.{type_}", words, query, type_, spans_of_type, str(sentence)))
    return tuple(records[:size])


def _sentence(
    clauses: list[tuple[str, str]], state: random.Random
) -> tuple[tuple[str, ...], list[tuple[str, int, int]]]:
    words, spans = list[str](), list[tuple[str, int, int]]()
    for name, type_ in clauses:
        first = len(words) + 2
        if not name:
            thing, event, time = map(state.choice, (THINGS, STATES, TIMES[1]))
            words += [state.choice(["my", "the"]), thing, *event.split(), time, ","]
            continue
        name_words = _name(name, state).split()
        words += [*state.choice(CUES).split(), *name_words]
        if len(name_words) < 3:
            words += state.choice(TIMES[3 - len(name_words)]).split()
        words.append(",")
        if type_:
            spans.append((type_, first, first + len(name_words)))
        if type_ == "ORG":
            spans.append(("LOC", first + 2, first + 3))
    return (*words[:-1], "."), spans


def _name(name: str, state: random.Random) -> str:
    """A name of three words for an organization, one for a place, and two for all others."""
    if name == "ORG":
        return f"{state.choice(_KINDS_OF_ORGANIZATION)} {state.choice(NAMES['LOC'][0])}"
    return " ".join(state.choice(choices) for choices in NAMES[name][: 1 if name == "LOC" else 2])
