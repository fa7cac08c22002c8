"""Generated messages to a help desk with any number of three labels, one for each team that must act: multi-label data.

A message mentions one problem or several. A problem for billing, delivery or safety gives the message that label, in
the ratio 4 : 2 : 1. Some problems are clear ("caught fire"), others doubtful ("smells odd"): only `DOUBTFUL_POSITIVE`
of the doubtful ones give the label.

Planted effect: the frequent label dominates micro F1, which hides how late the rare one is learnt; macro F1 weighs each
label the same. With the default settings a perfect model reaches 67 in both at threshold 0.5, and 73 if it predicts the
doubtful ones too; the constant predictor 26 micro and 18 macro F1. What a study should find (2000 texts, 6 epochs, tiny
encoder, three seeds): after two epochs cross-entropy has micro F1 12 to 38 and macro F1 7 to 18 and never predicts
safety; dice has 61 to 66 and 42 to 47. At the end cross-entropy has 50 to 68 and 43 to 68, with large differences
between seeds; dice 66 to 68 and 60 to 63 on each seed.
"""

from __future__ import annotations

import random

from dice_ray.data.records import TextRecord
from dice_ray.data.synthetic.phrases import CLOSERS, OPENERS, THINGS, TIMES, num_doubtful, phrases

_LABELS = {"billing": 4, "delivery": 2, "safety": 1}
"""The labels and their relative frequencies."""
_CLEAR = {
    "billing": phrases("was charged twice|came without a bill|is too expensive|has no invoice"),
    "delivery": phrases("never arrived|is late|went to my neighbour|came in an open box"),
    "safety": phrases("caught fire|gave off smoke|burned my hand|exploded"),
}
_DOUBTFUL = {
    "billing": phrases("was not cheap|seems to cost more|had another price|was on sale"),
    "delivery": phrases("came on a truck|was on its way|had a long trip|came with a dent"),
    "safety": phrases("smells odd|is rather hot|hums loudly|flickers"),
}
_HARMLESS = phrases("works well|is lovely|was a gift|looks nice|is in use|stands at home")
MAX_LABEL_SHARE = 0.2
"""The largest `positive_share` that leaves room for the doubtful negatives at any noise."""


def labels(size: int, positive_share: float, noise: float, state: random.Random) -> tuple[TextRecord, ...]:
    """Generate messages with `positive_share` of all possible labels, each label at least once."""
    labels_of: list[list[str]] = [[] for _ in range(size)]
    phrases_of: list[list[str]] = [[] for _ in range(size)]
    for label, weight in _LABELS.items():
        num_positive = max(1, round(positive_share * size * len(_LABELS) * weight / sum(_LABELS.values())))
        doubtful, doubtful_none = num_doubtful(num_positive, noise)
        chosen = state.sample(range(size), num_positive + doubtful_none)
        for index, number in enumerate(chosen):
            if index < num_positive:
                labels_of[number].append(label)
            is_clear = doubtful <= index < num_positive
            phrases_of[number].append(state.choice(_CLEAR[label] if is_clear else _DOUBTFUL[label]))
    return tuple(
        TextRecord(str(number), _message(problems or [state.choice(_HARMLESS)], state), tuple(names))
        for number, (names, problems) in enumerate(zip(labels_of, phrases_of, strict=True), start=1)
    )


def _message(problems: list[str], state: random.Random) -> str:
    state.shuffle(problems)
    message = f"my {state.choice(THINGS)} {' and it '.join(problems)} {state.choice(TIMES)}"
    return f"{state.choice(OPENERS)} , {message} , {state.choice(CLOSERS)}"
