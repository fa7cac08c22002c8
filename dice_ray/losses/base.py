"""The contract of a loss: signature, masking, scope, shape letters.

Shape letters: N items after flattening (tokens or sentences), C classes, K of them in use, L positions, S statistics.
A loss is two functions: `sums` adds over items, so that shards of a step add up; `value` forms the step's loss from the
sums, once. An item loss has the sums (loss, items) and the value loss / items; a set-level dice has three sums a class
and the value of one ratio. `reduction.py` adds statistics over workers and micro-batches: that makes them exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn

from dice_ray.losses.items import Items, read, valid
from dice_ray.settings import Branch

if TYPE_CHECKING:
    from dice_ray.errors import Problem
    from dice_ray.terms import Link, TermFacts


class Loss(nn.Module, ABC):
    """One loss for one term. `loss(logits, targets, mask)` is `value(statistics(logits, targets, mask))`.

    Attributes:
        is_item_mean: Whether the statistics are (loss, items) and the value is their ratio, so that the gradient of one
            micro-batch needs of the others no more than their number of items.
    """

    is_item_mean: bool = False

    def __init__(self, link: Link) -> None:
        super().__init__()
        self.link = link

    @abstractmethod
    def sums(self, items: Items) -> Tensor:
        """`statistics_S` in fp32 (fp64 for fp64 logits), additive over items; no items add zeros."""

    @abstractmethod
    def value(self, statistics: Tensor) -> Tensor:
        """The scalar loss of a step from the statistics of all its items."""

    def statistics(self, logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
        """`statistics_S` of some items of a step.

        Masked items add nothing; no items at all add zeros that still hang on the logits. A NaN or infinite logit, and
        on an accelerator a target out of range, makes all of them NaN: `items.bad_input` then says which row it was.
        """
        items = read(self.link, logits, targets, mask)
        return self.sums(items) + items.zero

    def forward(self, logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
        """The scalar loss of one step held by one worker in one piece."""
        return self.value(self.statistics(logits, targets, mask))

    def num_items(self, targets: Tensor, mask: Tensor | None = None) -> Tensor:
        """How many items count: known from targets and mask, before the forward pass."""
        valid_N = valid(self.link, targets, mask)
        return targets.new_tensor(targets.numel()) if valid_N is None else valid_N.sum()


class ItemLoss(Loss):
    """A loss that is a mean over items: a subclass gives the loss of each."""

    is_item_mean = True

    @abstractmethod
    def losses(self, items: Items) -> Tensor:
        """`loss_N` of each item; what it gives for a masked one is dropped."""

    def sums(self, items: Items) -> Tensor:
        if items.kept is None:
            return item_sums(self.losses(items), items.valid)
        assert items.is_two_class, "mining keeps items for each of several classes: a mean over items cannot use it"
        return item_sums(self.losses(items), items.kept[:, 1])

    def value(self, statistics: Tensor) -> Tensor:
        return mean(statistics)


def item_sums(losses_N: Tensor, valid_N: Tensor | None) -> Tensor:
    """The statistics of a mean over items: the sum of their losses, and how many there are."""
    if valid_N is None:
        return torch.stack((losses_N.sum(), losses_N.new_tensor(losses_N.numel())))
    return torch.stack((losses_N.masked_fill(~valid_N, 0).sum(), valid_N.sum().to(losses_N.dtype)))


def mean(statistics: Tensor) -> Tensor:
    """The mean over items; 0 of none."""
    total, num_items = statistics.unbind()
    return total / num_items.clamp(min=1)


class LossBranch(Branch, ABC):
    """The configuration of a loss: one branch of `loss`, which builds the loss for each term.

    Attributes:
        formula: One class of one item, as a line of text.
        source: Where the loss is defined.
    """

    formula: ClassVar[str]
    source: ClassVar[str]

    @classmethod
    def links(cls) -> frozenset[Link]:
        """The links that this loss takes."""
        return frozenset({"softmax", "sigmoid"})

    @abstractmethod
    def build(self, facts: TermFacts) -> Loss:
        """The loss of one term."""

    def can_mine(self, facts: TermFacts) -> bool:
        """Whether `mining` has negatives of a class to choose from: for a mean over items, with two classes alone."""
        return facts.link != "position" and len(facts.classes) == 2

    def problems(self, facts: TermFacts, path: str) -> list[Problem]:
        """What of this section, found at `path`, does not fit the term, or has no effect on it."""
        return []
