"""A loss of shifted logits: what a training set with more positives adds to them is not learned."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from torch import Tensor

from dice_ray.losses.base import Loss

if TYPE_CHECKING:
    from dice_ray.losses.items import Items


def shifted(loss: Loss, shift: float) -> Loss:
    """The loss of two classes with `shift` added to the log-odds of the second one."""
    return _ShiftedLoss(loss, shift) if shift else loss


class _ShiftedLoss(Loss):
    def __init__(self, loss: Loss, shift: float) -> None:
        super().__init__(loss.link)
        self.loss, self.shift, self.is_item_mean = loss, shift, loss.is_item_mean

    def sums(self, items: Items) -> Tensor:
        assert items.is_two_class, "a task with a positive class has two"
        return self.loss.sums(replace(items, logits=items.logits + self.shift))

    def value(self, statistics: Tensor) -> Tensor:
        return self.loss.value(statistics)
