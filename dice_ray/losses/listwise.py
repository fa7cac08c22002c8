"""A loss of ranks: each positive of a step against all its negatives, for PR-AUC.

A rank depends on all items of the step, but statistics must be additive. So those of a worker are slots for the items
of all workers, in which the slots of the others are 0: their sum holds the items of all. `sums` exchanges the number
of items for this; like mining, it must be given all items that the worker holds in the step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from dice_ray.errors import Problem
from dice_ray.losses.base import Group, Loss, LossBranch
from dice_ray.losses.items import Items
from dice_ray.losses.reduction import gather_rows

if TYPE_CHECKING:
    from dice_ray.terms import TermFacts


class ListwiseConfig(LossBranch):
    """log(1 + sum over negatives j of exp(z_j - z_i)), averaged over the positives i of a step."""

    name: ClassVar[str] = "listwise"
    group: ClassVar[Group] = "ranking"
    formula: ClassVar[str] = "mean over positives i of log(1 + sum over negatives j of exp(z_j - z_i))"
    source: ClassVar[str] = "softmax loss of ranking: Cao et al. 2007, Bruch et al. 2019"
    use: ClassVar[str] = (
        "Two classes or several labels, of which only the order counts (PR-AUC, the first alerts of a list). It "
        "does not learn probabilities: calibrate, or use a tuned threshold."
    )

    @property
    def is_item_mean(self) -> bool:
        return False

    def can_mine(self, facts: TermFacts) -> bool:
        return False

    def build(self, facts: TermFacts) -> ListwiseLoss:
        return ListwiseLoss(facts.link)

    def problems(self, facts: TermFacts, path: str) -> list[Problem]:
        must = f"must be another loss for term {facts.name!r}, whose {len(facts.classes)} classes have no single order"
        return [] if len(facts.classes) == 2 else [Problem(path, must, self.name)]


class ListwiseLoss(Loss):
    """log(1 + sum_j exp(z_j - z_i)) over the negatives j of a step, averaged over its positives i.

    `logits_N2` or `logits_N`, `targets_N`; all labels of a multi-label term are one list. The loss is at least log(1 +
    the number of negatives above i), with z the margin of two classes; adding a constant to all logits changes nothing.
    ListNet (Cao et al. 2007) has the other positives in the sum too. A step without positives or without negatives has
    the value 0.

    Smooth-AP (Brown et al. 2020) compares all pairs, and was no better: with frozen MiniLM features of pairs of QQP,
    batches of 32, and each loss at its best of three learning rates, PR-AUC minus that of cross-entropy was .3 points
    (Smooth-AP) and .6 (this) with 1:10, and 1.0 and 1.1 with 1:30, in the mean of ten seeds.

    >>> loss = ListwiseLoss("sigmoid")
    >>> round(loss(torch.zeros(4), torch.tensor([1, 0, 0, 0])).item(), 4)  # log(1 + 3)
    1.3863
    """

    def sums(self, items: Items) -> Tensor:
        assert items.is_two_class, "the classes of more than two have no single order"
        valid_N = torch.ones_like(items.targets, dtype=torch.bool) if items.valid is None else items.valid
        is_positive_N = items.targets == 1
        columns = (items.logits, valid_N & is_positive_N, valid_N & ~is_positive_N)
        own_3N = torch.stack([column.to(items.logits.dtype) for column in columns])
        all_M, first = gather_rows(own_3N[0].detach(), 0.0)
        return F.pad(own_3N, (first, len(all_M) - first - own_3N.shape[1])).flatten()

    def value(self, statistics: Tensor) -> Tensor:
        z_M, positive_M, negative_M = statistics.reshape(3, -1).unbind()
        # Not -inf, with which the gradient of a step without negatives were NaN.
        negatives = z_M.masked_fill(negative_M < 0.5, -1e30).logsumexp(0)
        total = (F.softplus(negatives - z_M) * positive_M).sum()
        # Connected to the logits in any case, and NaN if one of them is.
        return total / positive_M.sum().clamp(min=1) + 0 * z_M.sum()
