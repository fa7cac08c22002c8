"""A loss of ranks: each positive of a step against all its negatives, for PR-AUC.

A rank depends on all items of the step, but statistics must be additive. So those of a worker are slots for the items
of all workers, in which the slots of the others are 0: their sum holds the items of all. Like mining, `sums` must be
given all items that the worker holds in the step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from dice_ray.errors import Problem
from dice_ray.losses.base import Loss, LossBranch
from dice_ray.losses.items import Items
from dice_ray.losses.reduction import in_slots

if TYPE_CHECKING:
    from dice_ray.terms import TermFacts


class ListwiseConfig(LossBranch):
    """log(1 + sum over negatives j of exp(z_j - z_i)), averaged over the positives i of a step."""

    name = "listwise"
    group = "ranking"
    formula = "mean over positives i of log(1 + sum over negatives j of exp(z_j - z_i))"
    source = "softmax loss of ranking: Cao et al. 2007, Bruch et al. 2019"
    use = (
        "Two classes or several labels, of which only the order counts (PR-AUC, the first alerts of a list). It "
        "does not learn probabilities: calibrate, or use a tuned threshold."
    )
    is_item_mean: ClassVar[bool] = False

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

    exchanges = True

    def sums(self, items: Items) -> Tensor:
        assert items.is_two_class, "the classes of more than two have no single order"
        # 1 for positives, -1 for negatives, 0 for items that do not count.
        signs_N = items.signs if items.valid is None else items.signs * items.valid
        return in_slots(torch.stack((items.logits, signs_N))).flatten()

    def value(self, statistics: Tensor) -> Tensor:
        z_M, sign_M = statistics.reshape(2, -1).unbind()
        # Detached, or its gradient, which nobody needs, took two thirds of the time.
        positive_M, negative_M = sign_M.detach().clamp(min=0), -sign_M.detach().clamp(max=0)
        # log-sum-exp of the negatives. Others have the exponent 0: exp of -inf is slow on a CPU, and has no gradient.
        highest = (z_M.detach() + (negative_M - 1) * 1e30).amax() if len(z_M) else z_M.sum()
        sum_ = (((z_M - highest) * negative_M).exp() * negative_M).sum()
        negatives = highest + sum_.clamp(min=torch.finfo(z_M.dtype).tiny).log()
        total = (F.softplus(negatives - z_M) * positive_M).sum()
        # Connected to the logits in any case, and NaN if one of them is.
        return total / positive_M.sum().clamp(min=1) + 0 * z_M.sum()
