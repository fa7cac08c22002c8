"""How often the training records of each class are drawn; how many steps there are, and the classes' counts, stay."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Annotated, TypeAlias

from pydantic import Field

from dice_ray.errors import DataError
from dice_ray.settings import Branch, Choice


class OversamplingBranch(Branch, ABC):
    """A way to draw; weights of the loss and the prior bias of heads rest on the split as it is, not as it is drawn."""

    @abstractmethod
    def weights(self, is_positive: Sequence[bool]) -> list[float]:
        """How often each record is drawn in a pass, at least once."""


class NoneConfig(OversamplingBranch):
    """Every record once."""

    name = "none"

    def weights(self, is_positive: Sequence[bool]) -> list[float]:
        return [1.0] * len(is_positive)


class BalancedConfig(OversamplingBranch):
    """The rarer class as often as the other."""

    name = "balanced"

    def weights(self, is_positive: Sequence[bool]) -> list[float]:
        positives = sum(is_positive)
        if not positives:
            raise DataError(
                f"data.oversampling balanced needs positives in the training split, got none in {len(is_positive)}"
            )
        ratio = (len(is_positive) - positives) / positives
        return [max(1.0, ratio) if one else max(1.0, 1 / ratio) for one in is_positive]


class FactorConfig(OversamplingBranch):
    """Positives more often.

    Attributes:
        times: How often.
    """

    name = "factor"

    times: float = Field(ge=1)

    def weights(self, is_positive: Sequence[bool]) -> list[float]:
        return [self.times if one else 1.0 for one in is_positive]


OversamplingConfig: TypeAlias = Annotated[NoneConfig | BalancedConfig | FactorConfig, Choice()]
