"""Generated messages to a help desk that one, several or none of its teams must act on: labels of unequal frequency.

A message says one thing or several. What is for billing, delivery or safety gives the message that label; four are for
billing to two for delivery and one for safety. Some things are clear ("caught fire"), others doubtful ("smells odd"):
of doubtful ones only `DOUBTFUL_POSITIVE` are for the team.

Planted effect: the frequent label makes micro F1, and hides in it how late the rare one is learnt; macro F1 counts each
label as much. At the default dials a perfect model reaches 67 in both at 0.5, and 73 by taking the doubtful in; the
constant predictor 26 in micro and 18 in macro F1. What a study should find (2000 texts, 6 epochs, tiny encoder, three
seeds): after two epochs cross-entropy has micro F1 12 to 38 and macro F1 7 to 18 and never names safety; dice 61 to 66
and 42 to 47. In the end cross-entropy has 50 to 68 and 43 to 68, very different from seed to seed; dice 66 to 68 and 60
to 63 on each.
"""

from __future__ import annotations

import random

from dice_ray.data.records import TextRecord
from dice_ray.data.synthetic.phrases import CLOSERS, DOUBTFUL_POSITIVE, OPENERS, THINGS, TIMES, phrases

LABELS = {"billing": 4, "delivery": 2, "safety": 1}
"""The labels, and how frequent each is among all that are given."""
CLEAR = {
    "billing": phrases("was charged twice|came without a bill|is too expensive|has no invoice"),
    "delivery": phrases("never arrived|is late|went to my neighbour|came in an open box"),
    "safety": phrases("caught fire|gave off smoke|burned my hand|exploded"),
}
DOUBTFUL = {
    "billing": phrases("was not cheap|seems to cost more|had another price|was on sale"),
    "delivery": phrases("came on a truck|was on its way|had a long trip|came with a dent"),
    "safety": phrases("smells odd|is rather hot|hums loudly|flickers"),
}
HARMLESS = phrases("works well|is lovely|was a gift|looks nice|is in use|stands at home")
MOST_LABELLED = 0.2
"""The share of labels given up to which the doubtful ones that are not have room, whatever the noise."""


def labels(size: int, positive_share: float, noise: float, state: random.Random) -> tuple[TextRecord, ...]:
    """Messages, with `positive_share` of all labels that they could have (each label at least once)."""
    given: list[list[str]] = [[] for _ in range(size)]
    said: list[list[str]] = [[] for _ in range(size)]
    for label, weight in LABELS.items():
        num_positive = max(1, round(positive_share * size * len(LABELS) * weight / sum(LABELS.values())))
        doubtful = round(noise * num_positive)
        doubtful_none = round(doubtful * (1 / DOUBTFUL_POSITIVE - 1))
        chosen = state.sample(range(size), num_positive + doubtful_none)
        for place, number in enumerate(chosen):
            if place < num_positive:
                given[number].append(label)
            is_clear = doubtful <= place < num_positive
            said[number].append(state.choice(CLEAR[label] if is_clear else DOUBTFUL[label]))
    return tuple(
        TextRecord(str(number), _message(things or [state.choice(HARMLESS)], state), tuple(found))
        for number, (found, things) in enumerate(zip(given, said, strict=True), start=1)
    )


def _message(things: list[str], state: random.Random) -> str:
    state.shuffle(things)
    message = f"my {state.choice(THINGS)} {' and it '.join(things)} {state.choice(TIMES)}"
    return f"{state.choice(OPENERS)} , {message} , {state.choice(CLOSERS)}"
