"""A decision: what turns the scores of a model into answers. It is fitted on dev and stored with the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dice_ray.metrics.calibration import Calibration, with_prior

Numbers: TypeAlias = Mapping[str, float]
"""The numbers of a decision by name: `threshold`, `threshold:LABEL`, `shift:CLASS`, `background`, `start`, `end`."""
NUM_FOLDS: Final = 5
"""Folds of dev on which it is checked whether a tuned decision may be used; so many positives it needs at least."""
UNTUNED_THRESHOLD: Final = 0.5
UNTUNED_NO_ANSWER: Final = 0.0
"""The no-answer threshold without tuning: no answer where it is more probable than the best one."""


@dataclass(frozen=True)
class FittedDecision:
    """A decision fitted on dev.

    Attributes:
        metric: Its value, as `f1` or `cost`.
        tuned: The numbers that dev chose.
        untuned: Those without any tuning.
        is_used: Whether predictions use the tuned ones: dev has enough evidence that they are better.
        support: The number of positives, or of items of the rarer kind, that they were fitted to.
        on_dev: The value on dev with tuned numbers: cross-fitted, as that on the items that chose them flatters. With
            fewer than `NUM_FOLDS` positives, and of a rule that promises a limit, it is that on all of dev.
        calibration: What is applied to probabilities before, as `Calibration.stored`; empty for nothing.
        share: The share of positives that probabilities stand for (`implied_prior`), where there is a positive class.
        prior: The shares of positives that probabilities are corrected from and to, after calibration; None for none.
        beats_untuned: Whether the tuned ones, cross-fitted, are better than the untuned ones, which may not be enough.
    """

    metric: str
    tuned: Numbers
    untuned: Numbers
    is_used: bool
    support: int
    on_dev: float
    calibration: Mapping[str, Any] = field(default_factory=dict)
    share: float | None = None
    prior: tuple[float, float] | None = None
    beats_untuned: bool = False

    @property
    def used(self) -> Numbers:
        return self.tuned if self.is_used else self.untuned

    @property
    def metrics(self) -> dict[str, float]:
        """What is stored beside the scores: the numbers, without those of single classes."""
        numbers = {name: value for name, value in self.tuned.items() if ":" not in name}
        if "threshold" in self.tuned:
            numbers["threshold_support"] = float(self.support)
            numbers["threshold_used"] = self.used["threshold"]
        return numbers

    def probabilities(self, probabilities_NC: NDArray[np.floating], *, exclusive: bool) -> NDArray[np.floating]:
        """The probabilities after calibration, and after the correction for another share of positives."""
        if self.calibration:
            probabilities_NC = Calibration.of(self.calibration).apply(probabilities_NC, exclusive=exclusive)
        if self.prior:
            positive_N = with_prior(probabilities_NC[:, 1], *self.prior)
            probabilities_NC = np.stack([1 - positive_N, positive_N], 1)
        return probabilities_NC

    def stored(self) -> dict[str, Any]:
        """Plain values for a checkpoint."""
        return asdict(self)

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self | None:
        """The decision of a checkpoint; None for a task without one."""
        return cls(**stored) if stored else None


def thresholds(numbers: Numbers, labels: Sequence[str]) -> NDArray[np.float64]:
    """`thresholds_C`: that of each label, where it has one of its own; without labels the one of the positive class."""
    common = numbers["threshold"]
    return np.array([numbers.get(f"threshold:{label}", common) for label in labels] or [common])
