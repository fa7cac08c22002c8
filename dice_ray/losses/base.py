"""The contract of a loss: signature, masking, scope, shape letters.

Shape letters: N items after flattening (tokens or sentences), C classes, S statistics. A loss is two functions:
`statistics` sums over items, so that shards of a step add up; `value` forms the step's loss from the sums, once. An item
loss has the sums (loss, items) and the value loss / items; a set-level dice has three sums a class and the value of one
ratio. `reduction.py` adds statistics over workers and micro-batches: that is all it takes to be exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from torch import Tensor, nn

from dice_ray.settings import Branch

if TYPE_CHECKING:
    from dice_ray.terms import Link, TermFacts

IGNORE_INDEX = -100


class Loss(nn.Module, ABC):
    """One loss for one term. `loss(logits, targets, mask)` is `value(statistics(logits, targets, mask))`.

    Attributes:
        is_item_mean: Whether the value is a mean over items, so that the gradient of one micro-batch needs of the others
            no more than their number of items.
    """

    is_item_mean: bool

    @abstractmethod
    def statistics(self, logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
        """`statistics_S` in fp32, additive over items. Masked items add nothing; no items at all add zeros that still
        hang on the logits."""

    @abstractmethod
    def value(self, statistics: Tensor) -> Tensor:
        """The scalar loss of a step from the statistics of all its items."""

    def forward(self, logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
        """The scalar loss of one step held by one worker in one piece."""
        return self.value(self.statistics(logits, targets, mask))


class LossBranch(Branch, ABC):
    """The configuration of a loss: one branch of `loss`, which builds the loss for each term."""

    @classmethod
    @abstractmethod
    def links(cls) -> frozenset[Link]:
        """The links that this loss takes."""

    @abstractmethod
    def build(self, facts: TermFacts) -> Loss:
        """The loss of one term."""
