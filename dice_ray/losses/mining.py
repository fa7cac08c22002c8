"""Hard-negative mining: of the negatives of a class a step keeps the hardest, a multiple of its positives."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import torch
from pydantic import Field
from torch import Tensor

from dice_ray.errors import Problem
from dice_ray.losses.base import Loss, LossBranch
from dice_ray.losses.items import Items
from dice_ray.losses.reduction import gathered, sum_over_workers
from dice_ray.settings import Settings

if TYPE_CHECKING:
    from dice_ray.terms import TermFacts


class MiningConfig(Settings):
    """How many negatives a class keeps for each of its positives; 0 keeps all."""

    ratio: Annotated[float, Field(ge=0)] = 0.0

    def wrap(self, loss: Loss) -> Loss:
        """The loss, of the items that mining keeps."""
        return MinedLoss(loss, self.ratio) if self.ratio else loss

    def problems(self, loss: LossBranch, facts: TermFacts, path: str) -> list[Problem]:
        """Whether the loss of the term has negatives of a class to choose from."""
        if not self.ratio or loss.can_mine(facts):
            return []
        must = f"must be 0 for {loss.name} on term {facts.name!r} ({facts.link}, {len(facts.classes)} classes): "
        return [Problem(f"{path}.ratio", f"{must}it has no negatives of a class", f"{self.ratio:g}")]


class MinedLoss(Loss):
    """A loss of the items that a step keeps: all positives of a class and its hardest negatives.

    `statistics` takes all items that this worker holds in the step, and chooses among those of all workers.
    """

    def __init__(self, loss: Loss, ratio: float) -> None:
        super().__init__(loss.link)
        self.loss, self.ratio = loss, ratio

    def sums(self, items: Items) -> Tensor:
        return self.loss.sums(replace(items, kept=kept(items, self.ratio)))

    def value(self, statistics: Tensor) -> Tensor:
        return self.loss.value(statistics)


def kept(items: Items, ratio: float) -> Tensor:
    """`kept_NC`: the positives of each class, and `ratio` times as many of its hardest negatives in the step.

    That number is rounded up and at least 1. Hardest is what is most probable to be of the class. A class without
    positives keeps all. Of equals the earlier item (of the lower rank) is taken; no masked item is kept or counted.
    """
    logits = items.logits.detach()
    score_NC = torch.stack((-logits, logits), -1) if items.is_two_class else logits.log_softmax(-1)
    valid_N1 = torch.ones_like(items.targets[:, None], dtype=torch.bool)
    if items.valid is not None:
        valid_N1 = items.valid[:, None]
    positive_NC = (items.targets[:, None] == torch.arange(score_NC.shape[1], device=logits.device)) & valid_N1
    negative_NC = ~positive_NC & valid_N1
    all_MC, first = gathered(score_NC.masked_fill(~negative_NC, -math.inf), -math.inf)
    rank_MC = torch.empty_like(all_MC, dtype=torch.long)
    places_M1 = torch.arange(len(all_MC), device=logits.device)[:, None]
    rank_MC.scatter_(0, all_MC.argsort(dim=0, descending=True, stable=True), places_M1.expand_as(rank_MC))
    num_positive_C = sum_over_workers(positive_NC.sum(0))
    # .07 x 100 is 7, and not the 8 of 7.000000000000001 rounded up.
    num_kept_C = (num_positive_C.double() * ratio - 1e-9).ceil().clamp(min=1)
    num_kept_C = num_kept_C.masked_fill(num_positive_C == 0, math.inf)
    return positive_NC | (negative_NC & (rank_MC[first : first + len(score_NC)] < num_kept_C))
