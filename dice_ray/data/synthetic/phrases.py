"""Phrases that generated corpora are made of, and how many records have doubtful ones."""

from __future__ import annotations

# Below one half, so that the most probable prediction for doubtful evidence is negative.
DOUBTFUL_POSITIVE = 0.4
"""The share of positives among records with doubtful evidence."""


def num_doubtful(num_positive: int, noise: float) -> tuple[int, int]:
    """The numbers of positives and of negatives with doubtful evidence, for the share `noise` of the positives.

    >>> num_doubtful(100, 0.2)
    (20, 30)
    """
    positives = round(noise * num_positive)
    return positives, round(positives * (1 / DOUBTFUL_POSITIVE - 1))


def phrases(text: str) -> tuple[str, ...]:
    """Split a text at `|` into phrases."""
    return tuple(" ".join(phrase.split()) for phrase in text.split("|"))


OPENERS = phrases("hello|good morning|dear team|hi there|good evening|dear all|hi|to whom it concerns")
THINGS = phrases(
    """router|phone|camera|oven|kettle|laptop|printer|monitor|speaker|lamp|heater|fridge|scanner|tablet|keyboard|drill|
    mixer|radio|watch|freezer|projector|toaster|blender|charger"""
)
TIMES = phrases("since monday|this week|after two days|again|last night|as of today|on sunday|since may")
CLOSERS = phrases("best regards|kind regards|your team|yours|have a nice day|all the best|take care|until soon")
