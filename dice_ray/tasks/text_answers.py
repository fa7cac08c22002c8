"""The probability of each class in answers that another program gave to texts: as given, or 1 for a given label."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dice_ray.errors import DataError, shown
from dice_ray.tasks.answers import Answers, LabelNames

_LABEL = ("label", "labels", "answer", "prediction")
_OF_LABEL = "probability_"
_BETWEEN = re.compile(r"[;,|\n]")


class AnswerReader:
    """Reads answers to a task over texts.

    Args:
        classes: The class names.
        is_exclusive: Whether a text has one label, and not any number.
        has_positive: Whether the second of two classes is the positive one.
    """

    def __init__(self, classes: tuple[str, ...], is_exclusive: bool, has_positive: bool) -> None:
        self._classes, self._is_exclusive, self._has_positive = classes, is_exclusive, has_positive
        self._labels = LabelNames(classes)

    @property
    def without_answer(self) -> str:
        """What a text without an answer counts as: the negative label, no label, or wrong."""
        if self._has_positive:
            return repr(self._classes[0])
        return "wrong" if self._is_exclusive else "without labels"

    def has_probabilities(self, answers: Answers) -> bool:
        """Whether a file gives probabilities, and not labels alone."""
        names = ("probability", "probabilities", *(f"{_OF_LABEL}{label}" for label in self._classes))
        return any(answers.value(id_, *names) not in (None, "") for id_ in answers.by_id)

    def probabilities(self, ids: Sequence[str], gold_NC: NDArray[np.bool_], answers: Answers) -> list[list[float]]:
        """The probabilities of each text; one without an answer is as `without_answer` says.

        Raises:
            DataError: A probability is no number from 0 to 1, or those of some classes are missing; or the answers do
                not have what is needed.
        """
        has_any = self.has_probabilities(answers)
        # Where no class is negative, wrong is the most frequent of the other classes.
        wrongs = np.argsort(-gold_NC.sum(0), kind="stable").tolist()
        decoded = []
        for id_, gold_C in zip(ids, gold_NC, strict=True):
            chosen = self._chosen(id_, answers)
            given = self._given(id_, answers) if has_any else None
            if given is None and chosen is not None:
                given = [float(label in chosen) for label in self._classes]
                if has_any:
                    answers.note("alone", id_)
            elif given is not None and chosen is not None and chosen != self._decided(given):
                answers.note("differs", id_, ";".join(chosen))
            if given is None:
                if answers.by_id[id_] is not None:
                    answers.note("unread", id_, answers.value(id_, *_LABEL))
                lacking = 0 if self._has_positive else next((n for n in wrongs if not gold_C[n]), 0)
                given = [float(self._is_exclusive and n == lacking) for n in range(len(self._classes))]
            decoded.append(given)
        answers.check(*_LABEL, "probability", "probabilities", *(f"{_OF_LABEL}{label}" for label in self._classes))
        return decoded

    def _chosen(self, id_: str, answers: Answers) -> list[str] | None:
        """The labels of an answer in the order of the classes; None where it names none, or not one alone."""
        written = answers.value(id_, *_LABEL)
        if written is None:
            return None
        if self._is_exclusive:
            parts = [str(written)]
        else:
            parts = [str(each) for each in (written if isinstance(written, list) else _BETWEEN.split(str(written)))]
            parts = [part.strip() for part in parts if part.strip()]
        named = [self._labels.named(part) for part in parts]
        if None in named:
            return None
        if named != parts:
            answers.note("read", id_, written)
        return [label for label in self._classes if label in named]

    def _given(self, id_: str, answers: Answers) -> list[float] | None:
        """The given probability of each class; None where none is given."""
        named = answers.value(id_, "probabilities")
        positive = answers.value(id_, "probability")
        if isinstance(named, dict):
            values = [named.get(label) for label in self._classes]
        else:
            values = [answers.value(id_, f"{_OF_LABEL}{label}") for label in self._classes]
        if self._has_positive and values[1] in (None, "") and positive not in (None, ""):
            values = [None, positive]
        if all(value in (None, "") for value in values):
            if positive in (None, ""):
                return None
            raise DataError(
                f"{answers.file}: of several labels, each must have a probability, as {_OF_LABEL}{self._classes[0]}; "
                f"{id_} has one alone"
            )
        numbers = [self._number(id_, value, answers) for value in values if value not in (None, "")]
        if self._has_positive and len(numbers) == 1:
            return [1 - numbers[0], numbers[0]] if values[0] in (None, "") else [numbers[0], 1 - numbers[0]]
        if len(numbers) < len(values):
            lacking = next(label for label, value in zip(self._classes, values, strict=True) if value in (None, ""))
            raise DataError(
                f"{answers.file}: {id_} must have a probability of each label, and lacks that of {lacking!r}"
            )
        return numbers

    def _number(self, id_: str, value: Any, answers: Answers) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = np.nan
        if not 0 <= number <= 1:
            raise DataError(f"{answers.file}: a probability must be a number from 0 to 1, got {shown(value)} for {id_}")
        return number

    def _decided(self, given: Sequence[float]) -> list[str]:
        if self._is_exclusive:
            return [self._classes[int(np.argmax(given))]]
        return [label for label, value in zip(self._classes, given, strict=True) if value > 0.5]
