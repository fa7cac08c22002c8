"""Oversampling: how often the training records of each class are sampled.

The number of steps and the class counts stay those of the split: weights of the loss and the prior bias of the head are
computed from the split, not from the samples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Annotated, TypeAlias

from pydantic import Field

from dice_ray.errors import DataError
from dice_ray.settings import Branch, Choice


class OversamplingBranch(Branch, ABC):
    """A way to sample the training records."""

    @abstractmethod
    def weights(self, is_positive: Sequence[bool]) -> list[float]:
        """The relative frequency of each record, at least 1."""


class NoneConfig(OversamplingBranch):
    """Every record once."""

    name = "none"

    def weights(self, is_positive: Sequence[bool]) -> list[float]:
        return [1.0] * len(is_positive)


class BalancedConfig(OversamplingBranch):
    """The rarer class as often as the other."""

    name = "balanced"

    def weights(self, is_positive: Sequence[bool]) -> list[float]:
        num_positives = sum(is_positive)
        if not num_positives:
            raise DataError(
                f"data.oversampling balanced needs positives in the training split, got none in {len(is_positive)}"
            )
        ratio = (len(is_positive) - num_positives) / num_positives
        return [max(1.0, ratio) if positive else max(1.0, 1 / ratio) for positive in is_positive]


class FactorConfig(OversamplingBranch):
    """Positives more often.

    Attributes:
        times: How many times as often as negatives.
    """

    name = "factor"

    times: float = Field(ge=1)

    def weights(self, is_positive: Sequence[bool]) -> list[float]:
        return [self.times if positive else 1.0 for positive in is_positive]


OversamplingConfig: TypeAlias = Annotated[NoneConfig | BalancedConfig | FactorConfig, Choice()]
