"""The probability of each class in answers that another program gave to texts: as given, or 1 for a given label."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dice_ray.errors import DataError, shown
from dice_ray.tasks.answers import Answers, LabelNames
from dice_ray.tasks.text_decider import TextDecider

_LABEL = ("label", "labels", "answer", "prediction")


def has_probabilities(decider: TextDecider, answers: Answers) -> bool:
    """Whether a file gives probabilities, and not labels alone."""
    return any(_given(id_, decider, answers) for id_ in answers.by_id)


def given_probabilities(
    ids: Sequence[str], gold_NC: NDArray[np.bool_], decider: TextDecider, answers: Answers
) -> list[list[float]]:
    """The probabilities of each text; one without an answer is as `TextDecider.without_answer` says.

    Raises:
        DataError: A probability is no number from 0 to 1, or those of some classes are missing; or most texts have no
            answer.
    """
    names, has_any = LabelNames(decider.classes), has_probabilities(decider, answers)
    order = [0] if decider.has_positive else np.argsort(-gold_NC.sum(0), kind="stable").tolist()
    decoded = []
    for id_, gold_C in zip(ids, gold_NC, strict=True):
        chosen, given = _chosen(id_, names, decider, answers), _given(id_, decider, answers)
        if given is None and chosen is not None:
            given = [float(label in chosen) for label in decider.classes]
            if has_any:
                answers.note("alone", id_)
        elif given is None:
            answers.unread(id_, answers.value(id_, *_LABEL))
            # Without a negative class, the most frequent of the other classes is wrong.
            lacking = next((n for n in order if decider.has_positive or not gold_C[n]), 0)
            given = [float(decider.is_exclusive and n == lacking) for n in range(len(decider.classes))]
        elif chosen is not None and _untuned(given, decider) != chosen:
            answers.note("differs", id_, ";".join(chosen))
        decoded.append(given)
    answers.check()
    return decoded


def _untuned(given: Sequence[float], decider: TextDecider) -> list[str]:
    """The labels of these probabilities at .5."""
    return [decider.classes[n] for n in np.flatnonzero(decider.chosen(np.array([given]))[0])]


def _chosen(id_: str, names: LabelNames, decider: TextDecider, answers: Answers) -> list[str] | None:
    """The labels of an answer in the order of the classes; None where it names none, or not one alone."""
    written = answers.value(id_, *_LABEL)
    text = "" if written is None else str(written)
    if decider.is_exclusive:
        parts = [text] if text else []
    elif (whole := {part.strip() for part in text.split(";")}) <= {*decider.classes}:  # a label may have a comma
        return [label for label in decider.classes if label in whole]
    else:
        several = written if isinstance(written, list) else re.split(r"[;,|\n]", text)
        parts = [part.strip() for part in map(str, several) if part.strip()]
    named = [names.named(part) for part in parts]
    is_none = not parts and (decider.is_exclusive or not any(name in answers.by_id[id_] for name in _LABEL))
    if None in named or is_none:
        return None
    if named != parts:
        answers.note("read", id_, written)
    return [label for label in decider.classes if label in named]


def _given(id_: str, decider: TextDecider, answers: Answers) -> list[float] | None:
    """The given probability of each class; None where none is given."""
    alone = answers.value(id_, "probability")
    values = {label: answers.value(id_, f"probability_{label}") for label in decider.classes}
    if decider.has_positive and alone is not None:
        values[decider.classes[1]] = alone
    numbers = {label: _number(id_, value, answers) for label, value in values.items() if value is not None}
    if decider.has_positive and len(numbers) == 1:
        ((label, number),) = numbers.items()
        numbers = {each: number if each == label else 1 - number for each in decider.classes}
    if len(numbers) < len(values) and (numbers or alone is not None):
        lacking = next(label for label in values if label not in numbers)
        raise DataError(f"{answers.file}: {id_} must have a probability of each label, and lacks probability_{lacking}")
    return [numbers[label] for label in decider.classes] if numbers else None


def _number(id_: str, value: Any, answers: Answers) -> float:
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        number = np.nan
    if not 0 <= number <= 1:
        raise DataError(f"{answers.file}: a probability must be a number from 0 to 1, got {shown(value)} for {id_}")
    return number
