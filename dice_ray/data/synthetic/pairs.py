"""Generated pairs of a customer's message and a help desk's reply: must the case be escalated?

A pair is positive if the message reports a fault and the reply leaves it open, so both sentences are needed. Some
faults are clear ("it crashed"), others doubtful ("it feels slow"): only `DOUBTFUL_POSITIVE` of the doubtful faults with
an open reply are positive.

Planted effect: doubtful pairs are more often negative than positive, so the threshold 0.5 on calibrated probabilities
misses all of them, while the best F1 predicts all of them. With the default settings a perfect model reaches F1 67 at
0.5, and 73 at its tuned threshold; predicting all pairs positive gives 18. What a study should find: a tiny encoder
predicts every pair negative for one epoch or two under cross-entropy, and learns in the first epoch under dice; after
four epochs, both reach 68 to 69 (four seeds), and 72 to 73 with the threshold tuned on dev, which no loss replaces.
"""

from __future__ import annotations

import random

from dice_ray.data.records import PairRecord
from dice_ray.data.synthetic.phrases import CLOSERS, OPENERS, THINGS, TIMES, num_doubtful, phrases

_MESSAGES = {
    "clear": phrases("crashed|is broken|caught fire|stopped working"),
    "doubtful": phrases("feels slow|is rather warm|sounds odd|flickers"),
    "none": phrases("arrived|works well|is lovely|was a gift"),
}
_GREETINGS = phrases("thank you|thanks|many thanks|sorry to hear|we understand|noted|dear customer|hello")
_REPLIES = {
    "open": phrases("we will look into it|please wait|a colleague will call|we need more time"),
    "settled": phrases("we sent a new one|the money is back|it has been repaired|the case is closed"),
}


def pairs(size: int, positive_share: float, noise: float, state: random.Random) -> tuple[PairRecord, ...]:
    """Generate messages and replies, `positive_share` of them positive; at least one of each label."""
    num_positive = min(max(1, round(positive_share * size)), size - 1)
    doubtful, doubtful_negative = num_doubtful(num_positive, noise)
    easy = [(message, reply) for message in _MESSAGES for reply in _REPLIES if reply == "settled" or message == "none"]
    rows = [("1", "doubtful", "open")] * doubtful + [("1", "clear", "open")] * (num_positive - doubtful)
    rows += [("0", "doubtful", "open")] * min(doubtful_negative, size - num_positive)
    rows += [("0", *state.choice(easy)) for _ in range(size - len(rows))]
    state.shuffle(rows)
    return tuple(_pair(str(number), *row, state) for number, row in enumerate(rows, start=1))


def _pair(id: str, label: str, message: str, reply: str, state: random.Random) -> PairRecord:
    first = [f"{state.choice(OPENERS)} , my", *map(state.choice, (THINGS, _MESSAGES[message], TIMES))]
    second = map(state.choice, (_GREETINGS, _REPLIES[reply], CLOSERS))
    return PairRecord(id, " ".join(first), " , ".join(second), label)
