"""Hard-negative mining: each class keeps its positives and a multiple of them of its hardest negatives in the step.

Invariant: the items kept do not depend on how the step is split over workers. Therefore the negatives of all workers
are gathered and ranked together, and the positives are counted over all workers; each worker then looks up the ranks of
its own rows. Micro-batches are no concern here: with mining, `training/step.py` passes all items of a worker at once.
Ties are broken by order (stable sort, lower rank first), so every worker computes the same ranking.
"""

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
from dice_ray.losses.reduction import gather_rows, sum_over_workers
from dice_ray.settings import Settings

if TYPE_CHECKING:
    from dice_ray.terms import TermFacts


class MiningConfig(Settings):
    """How many negatives each class keeps per positive; 0 turns mining off.

    Attributes:
        ratio: The number of hardest negatives for each positive of the step, 0 for all; a step without positives
            keeps all.
    """

    ratio: Annotated[float, Field(ge=0)] = 0.0

    def wrap(self, loss: Loss) -> Loss:
        """The loss restricted to the items that mining keeps."""
        return MinedLoss(loss, self.ratio) if self.ratio else loss

    def problems(self, loss: LossBranch, facts: TermFacts, path: str) -> list[Problem]:
        """The problem if the loss of the term does not support mining."""
        if not self.ratio or loss.can_mine(facts):
            return []
        term = f"term {facts.name!r} ({facts.link}, {len(facts.classes)} classes)"
        must = f"must be 0 for {loss.name} on {term}, which has no negatives per class"
        return [Problem(f"{path}.ratio", must, f"{self.ratio:g}")]


class MinedLoss(Loss):
    """A loss of the items that mining keeps.

    `statistics` must be given all items that this worker holds in the step; it selects among those of all workers.
    """

    def __init__(self, loss: Loss, ratio: float) -> None:
        super().__init__(loss.link)
        self.loss, self.ratio = loss, ratio

    def sums(self, items: Items) -> Tensor:
        return self.loss.sums(replace(items, kept=select_items(items, self.ratio)))

    def value(self, statistics: Tensor) -> Tensor:
        return self.loss.value(statistics)


def select_items(items: Items, ratio: float) -> Tensor:
    """`kept_NC`: the positives of each class, and `ratio` times as many of its hardest negatives in the step.

    The number of negatives is rounded up and at least 1. The hardest negatives of a class are those with the highest
    probability of it. A class without positives keeps all negatives. Masked items are neither kept nor counted.
    """
    logits = items.logits.detach()
    # In the type of half-precision logits, many log probabilities are the same, and order would decide.
    dtype = torch.promote_types(logits.dtype, torch.float32)
    score_NC = torch.stack((-logits, logits), -1) if items.is_two_class else logits.log_softmax(-1, dtype)
    valid_N1 = torch.ones_like(items.targets[:, None], dtype=torch.bool)
    if items.valid is not None:
        valid_N1 = items.valid[:, None]
    positive_NC = (items.targets[:, None] == torch.arange(score_NC.shape[1], device=logits.device)) & valid_N1
    negative_NC = ~positive_NC & valid_N1
    all_MC, first = gather_rows(score_NC.masked_fill(~negative_NC, -math.inf), -math.inf)
    rank_MC = torch.empty_like(all_MC, dtype=torch.long)
    order_M1 = torch.arange(len(all_MC), device=logits.device)[:, None]
    rank_MC.scatter_(0, all_MC.argsort(dim=0, descending=True, stable=True), order_M1.expand_as(rank_MC))
    num_positive_C = sum_over_workers(positive_NC.sum(0))
    # .07 x 100 must give 7; in floating point it is 7.000000000000001, which would be rounded up to 8.
    num_kept_C = (num_positive_C.double() * ratio - 1e-9).ceil().clamp(min=1)
    num_kept_C = num_kept_C.masked_fill(num_positive_C == 0, math.inf)
    return positive_NC | (negative_NC & (rank_MC[first : first + len(score_NC)] < num_kept_C))
