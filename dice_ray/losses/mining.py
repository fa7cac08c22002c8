"""Hard-negative mining: each class keeps its positives and a multiple of them of its hardest negatives in the step.

Invariant: the items kept do not depend on how the step is split over workers. Therefore the negatives of all workers
are gathered, and the positives are counted over all workers; each worker finds the same thresholds, one score for each
class, and compares its own rows. Micro-batches are no concern here: with mining, `training/step.py` passes all items of
a worker at once. Of negatives with the score of the threshold the first are kept, in the order of workers and rows.

A threshold needs no ranking: sorting N x C scores took 20 times as long as cross entropy, selecting takes as long.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from dice_ray.errors import Problem
from dice_ray.losses.base import Loss, LossBranch
from dice_ray.losses.items import Items, is_readable
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
        return _MinedLoss(loss, self.ratio) if self.ratio else loss

    def problems(self, loss: LossBranch, facts: TermFacts, path: str) -> list[Problem]:
        """The problem if the loss of the term does not support mining."""
        if not self.ratio or loss.can_mine(facts):
            return []
        term = f"term {facts.name!r} ({facts.link}, {len(facts.classes)} classes)"
        must = f"must be 0 for {loss.name} on {term}, which it cannot mine"
        return [Problem(f"{path}.ratio", must, f"{self.ratio:g}")]


class _MinedLoss(Loss):
    """A loss of the items that mining keeps.

    `statistics` must be given all items that this worker holds in the step; it selects among those of all workers.
    """

    exchanges = True

    def __init__(self, loss: Loss, ratio: float) -> None:
        super().__init__(loss.link)
        self.loss, self.ratio = loss, ratio

    def sums(self, items: Items) -> Tensor:
        return self.loss.sums(replace(items, kept=_select_items(items, self.ratio)))

    def value(self, statistics: Tensor) -> Tensor:
        return self.loss.value(statistics)


def _select_items(items: Items, ratio: float) -> Tensor:
    """`kept_NC`, 1 or 0: the positives of each class, and `ratio` times as many of its hardest negatives in the step.

    The number of negatives is rounded up and at least 1. The hardest negatives of a class are those with the highest
    probability of it. A class without positives keeps all negatives. Masked items are neither kept nor counted.
    """
    logits = items.logits.detach()
    # In the type of half-precision logits, many log probabilities are the same, and order would decide.
    dtype = torch.promote_types(logits.dtype, torch.float32)
    score_NC = torch.stack((-logits, logits), -1) if items.is_two_class else logits.log_softmax(-1, dtype)
    targets_N1 = items.targets[:, None]
    valid_N1 = torch.ones_like(targets_N1, dtype=dtype)
    if items.valid is not None:
        valid_N1 = items.valid[:, None].to(dtype)
        score_NC = score_NC.masked_fill(~items.valid[:, None], -math.inf)
    score_NC.scatter_(1, targets_N1, torch.full_like(valid_N1, -math.inf))
    num_C = score_NC.new_zeros(score_NC.shape[1], dtype=torch.long)
    num_C = num_C.scatter_add(0, items.targets, valid_N1[:, 0].long())
    num_positive_C, num_valid = sum_over_workers(torch.cat((num_C, num_C.sum()[None]))).split((len(num_C), 1))
    num_negative_C = num_valid - num_positive_C
    # .07 x 100 must give 7; in floating point it is 7.000000000000001, which would be rounded up to 8.
    num_kept_C = (num_positive_C.double() * ratio - 1e-9).ceil().clamp(min=1).minimum(num_negative_C).long()
    num_kept_C = num_kept_C.where(num_positive_C > 0, num_negative_C)
    all_MC, first = gather_rows(score_NC, -math.inf)
    threshold_C = _largest(all_MC, num_kept_C).masked_fill(num_kept_C == num_negative_C, -torch.finfo(dtype).max)
    kept_MC = all_MC.clone().ge_(threshold_C)
    if not is_readable(logits) or (kept_MC.sum(0) > num_kept_C).any():
        kept_MC = all_MC.clone().gt_(threshold_C)
        tied_MC = all_MC == threshold_C
        kept_MC += tied_MC & (tied_MC.cumsum(0) <= num_kept_C - kept_MC.sum(0))
    return kept_MC[first : first + len(score_NC)].scatter_(1, targets_N1, valid_N1)


def _largest(score_MC: Tensor, rank_C: Tensor) -> Tensor:
    """`score_C`: of each column the score with that rank, 1 being the largest; any score for rank 0."""
    rank_C = rank_C.clamp(min=1)
    if not len(score_MC):
        return score_MC.new_zeros(len(rank_C))
    if not is_readable(score_MC):
        return score_MC.sort(dim=0, descending=True).values.gather(0, rank_C[None] - 1)[0]
    # NumPy's selection takes a tenth of the time of `kthvalue` and `topk`.
    columns = np.array(score_MC.numpy().T, order="C")
    for column, rank in zip(columns, rank_C.tolist(), strict=True):
        column.partition(len(column) - rank)
    return torch.from_numpy(columns).gather(1, len(score_MC) - rank_C[:, None])[:, 0]
