"""The contract of a loss: interface, masking, scope, shape letters.

Shape letters: N items after flattening (tokens or sentences), C classes, K of them in use, L positions, S statistics.
A loss consists of two functions. `sums` returns statistics that are additive over items, so the statistics of the
shards of a step (workers, micro-batches) can be added. `value` is not additive; it is evaluated once, on the total. An
item loss has the statistics (sum of losses, number of items) and the value sum / number; batch-scope dice has three
sums per class, and its value is formed from their ratios. `reduction.py` adds the statistics: this split is what makes
every loss exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import torch
from torch import Tensor, nn

from dice_ray.losses.items import Items, flatten_items, valid_items
from dice_ray.settings import Branch

if TYPE_CHECKING:
    from dice_ray.errors import Problem
    from dice_ray.terms import Link, TermFacts

Group: TypeAlias = Literal["baseline and smoothing", "reweighting", "margins", "focusing", "overlap", "ranking", "own"]


class Loss(nn.Module, ABC):
    """The loss of one term. `loss(logits, targets, mask)` is `value(statistics(logits, targets, mask))`.

    Attributes:
        is_item_mean: Whether the statistics are (sum of losses, number of items) and the value is their ratio. The
            gradient of one micro-batch then depends on the others only through their number of items.
        exchanges: Whether `sums` waits for the other workers.
    """

    is_item_mean: bool = False
    exchanges: bool = False

    def __init__(self, link: Link) -> None:
        super().__init__()
        self.link = link

    @abstractmethod
    def sums(self, items: Items) -> Tensor:
        """`statistics_S` in fp32 (fp64 for fp64 logits), additive over items; zeros if there are none."""

    @abstractmethod
    def value(self, statistics: Tensor) -> Tensor:
        """The scalar loss of a step from the statistics of all its items."""

    def statistics(self, logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
        """`statistics_S` of a shard of a step.

        Masked items add nothing; a shard without items gives zeros that are still connected to the logits, so that DDP
        finds a gradient for the head. A NaN or infinite logit, and on an accelerator a target out of range, makes all
        statistics NaN; `items.bad_input` then finds the row.
        """
        items = flatten_items(self.link, logits, targets, mask)
        return self.sums(items) + items.nan_if_bad

    def forward(self, logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
        """The scalar loss of a step that one worker holds in one batch."""
        return self.value(self.statistics(logits, targets, mask))

    def begin_step(self, progress: float) -> None:
        """Called before each step with the share of the steps that is done, from 0 to below 1; passed on to children.

        Of a resumed run it is the same as of one without interruption.
        """
        for child in self.children():
            if isinstance(child, Loss):
                child.begin_step(progress)

    def num_items(self, targets: Tensor, mask: Tensor | None = None) -> Tensor:
        """The number of items that count; needs targets and mask only, so it is known before the forward pass."""
        valid_N = valid_items(self.link, targets, mask)
        return targets.new_tensor(targets.numel()) if valid_N is None else valid_N.sum()


class ItemLoss(Loss):
    """A loss that is a mean over items; a subclass implements the loss of each item."""

    is_item_mean = True

    @abstractmethod
    def losses(self, items: Items) -> Tensor:
        """`loss_N` of each item; the values of masked items are ignored."""

    def sums(self, items: Items) -> Tensor:
        if items.kept is None:
            return item_sums(self.losses(items), items.valid)
        assert items.is_two_class, (
            "mining selects items per class, which a mean over items supports for two classes only"
        )
        return item_sums(self.losses(items), items.kept[:, 1].bool())

    def value(self, statistics: Tensor) -> Tensor:
        return mean(statistics)


def item_sums(losses_N: Tensor, valid_N: Tensor | None) -> Tensor:
    """The statistics of a mean over items: the sum of their losses and their number."""
    if valid_N is None:
        return torch.stack((losses_N.sum(), losses_N.new_tensor(losses_N.numel())))
    return torch.stack((losses_N.masked_fill(~valid_N, 0).sum(), valid_N.sum().to(losses_N.dtype)))


def mean(statistics: Tensor) -> Tensor:
    """The mean over items; 0 without items."""
    total, num_items = statistics.unbind()
    return total / num_items.clamp(min=1)


class LossBranch(Branch, ABC):
    """The configuration of a loss: one branch of `loss`. It builds the loss of each term.

    Attributes:
        group: How it counters the imbalance.
        formula: The loss of one class of one item, as one line of text.
        source: Equation or publication that defines the loss.
        section: The section of the paper (arXiv 1911.02855v3) that treats it; empty if none does.
        use: When to use it, in one or two sentences.
        supported: The links that the loss supports.
    """

    group: ClassVar[Group]
    formula: ClassVar[str]
    source: ClassVar[str]
    section: ClassVar[str] = ""
    use: ClassVar[str]
    supported: ClassVar[tuple[Link, ...]] = ("softmax", "sigmoid")

    @abstractmethod
    def build(self, facts: TermFacts) -> Loss:
        """The loss of one term."""

    @property
    def is_item_mean(self) -> bool:
        """Whether the loss is a mean over items, as `Loss.is_item_mean`: a step runs the encoder once."""
        return True

    def can_mine(self, facts: TermFacts) -> bool:
        """Whether `mining` can select negatives per class; a mean over items supports that for two classes only."""
        return facts.link != "position" and len(facts.classes) == 2

    def problems(self, facts: TermFacts, path: str) -> list[Problem]:
        """The values of this section, located at `path`, that do not fit the term or have no effect on it."""
        return []
