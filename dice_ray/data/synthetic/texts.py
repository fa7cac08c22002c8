"""Generated messages to a help desk with one of four topics, of which safety is rare.

Three topics share the messages that are not about safety. Some dangers are clear ("it caught fire"), others doubtful
("it smells odd"): only `DOUBTFUL_POSITIVE` of the doubtful messages are about safety, the others about a fault.

Planted effect: accuracy hardly depends on the rare class, macro F1 does. With 2 % about safety, a model that never
predicts it has accuracy 98 and macro F1 74; a perfect one macro F1 91 by its most probable topics, and 93 if it
predicts the doubtful ones too; the constant predictor accuracy 34 and macro F1 13. What a study should find (2000
texts, 4 epochs, tiny encoder, three seeds): after one epoch neither cross-entropy nor dice predicts safety. At the end
cross-entropy has macro F1 91 to 93, weighted cross-entropy 93 to 95, and dice 74 to 93: its mean over four classes
learns the rare one late, or not at all.
"""

from __future__ import annotations

import random

from dice_ray.data.records import TextRecord
from dice_ray.data.synthetic.phrases import CLOSERS, OPENERS, THINGS, TIMES, num_doubtful, phrases

_RARE = "safety"
_MESSAGES = {
    "billing": phrases("was charged twice|came without a bill|is too expensive|has no invoice"),
    "delivery": phrases("never arrived|is late|went to my neighbour|came in an open box"),
    "fault": phrases("crashed|is broken|stopped working|does not start"),
    _RARE: phrases("caught fire|gave off smoke|burned my hand|exploded"),
    "doubtful": phrases("smells odd|is rather hot|hums loudly|flickers"),
}


def texts(size: int, positive_share: float, noise: float, state: random.Random) -> tuple[TextRecord, ...]:
    """Generate messages, `positive_share` of them about safety; at least one that is and one that is not."""
    num_rare = min(max(1, round(positive_share * size)), size - 1)
    doubtful, doubtful_fault = num_doubtful(num_rare, noise)
    rows = [(_RARE, "doubtful")] * doubtful + [(_RARE, _RARE)] * (num_rare - doubtful)
    rows += [("fault", "doubtful")] * min(doubtful_fault, size - num_rare)
    rows += [(topic, topic) for topic in state.choices(["billing", "delivery", "fault"], k=size - len(rows))]
    state.shuffle(rows)
    return tuple(
        TextRecord(str(number), _message(evidence, state), (label,))
        for number, (label, evidence) in enumerate(rows, start=1)
    )


def _message(evidence: str, state: random.Random) -> str:
    message = " ".join(map(state.choice, (THINGS, _MESSAGES[evidence], TIMES)))
    return f"{state.choice(OPENERS)} , my {message} , {state.choice(CLOSERS)}"
