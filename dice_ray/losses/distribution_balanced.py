"""The distribution-balanced loss for several labels: weights by the other labels of a text, and tolerant negatives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from dice_ray.losses.base import ItemLoss, LossBranch
from dice_ray.losses.focal import focal
from dice_ray.losses.items import Items

if TYPE_CHECKING:
    from dice_ray.terms import TermFacts


class DistributionBalancedConfig(LossBranch):
    """-r (y (1-p)^gamma log p + (1-y)/scale q^gamma log(1-q)), p = sigmoid(z - v), q = sigmoid(scale (z - v)).

    With n_k texts of N that have label k: v = bias log(N/n_k - 1); r = floor + sigmoid(slope (s - center)), where s is
    1/n_k over the sum of 1/n_j of the labels j of the text, and infinite for a text without labels.

    Attributes:
        floor: The least weight (alpha in the paper).
        slope: How steeply weights rise with s (beta).
        center: The s whose weight is floor + 1/2 (mu).
        scale: The factor of the logits of negatives (lambda): above 1, those that are right already weigh less.
        bias: The factor of the log odds of a label that are subtracted from its logits (kappa).
        gamma: The exponent of the factor that down-weights easy items, as in focal loss; 0 is none.
    """

    name = "distribution_balanced"
    group = "reweighting"
    formula = (
        "-r (y (1-p)^gamma log p + (1-y)/scale q^gamma log(1-q)), p = sigmoid(z - v), q = sigmoid(scale (z - v)), "
        "r = floor + sigmoid(slope (s - center))"
    )
    source = "Wu et al. 2020, arXiv 2007.09654; for texts Huang et al. 2021, arXiv 2109.04712"
    use = (
        "Texts with several labels, of which some are rare and appear beside frequent ones. Only for heads with "
        "one logit per label."
    )
    supported = ("sigmoid",)
    # The values of Huang et al. for Reuters and PubMed.
    floor: Annotated[float, Field(ge=0)] = 0.1
    slope: Annotated[float, Field(gt=0)] = 10.0
    center: float = 0.9
    scale: Annotated[float, Field(gt=0)] = 2.0
    bias: Annotated[float, Field(ge=0)] = 0.05
    gamma: Annotated[float, Field(ge=0)] = 2.0

    def can_mine(self, facts: TermFacts) -> bool:
        return False

    def build(self, facts: TermFacts) -> DistributionBalancedLoss:
        return DistributionBalancedLoss(self, facts)


class DistributionBalancedLoss(ItemLoss):
    """Binary cross entropy with the weights and shifts of `DistributionBalancedConfig`, averaged over items.

    `logits_RK` of R texts and K labels, `targets_RK`. Labels that are masked are none of the text's; a label absent
    from the training split, or on all texts, counts as one text more or less. With everything masked the value is 0.
    The code of Huang et al. multiplies all by .5 besides; they report an error in v in the first authors' code (its
    issue 8). A term of one label is a special case: the weights are two numbers, of presence and absence.

    >>> from dice_ray.terms import TermFacts
    >>> facts = TermFacts("topic", "sigmoid", ("no", "yes"), (10, 10), 0, ("A", "B"), (5, 5))
    >>> loss = DistributionBalancedConfig(gamma=0, floor=0, center=1).build(facts)
    >>> round(loss(torch.zeros(1, 2), torch.tensor([[1, 0]])).item(), 4)  # (.5 log 2 + .5 log 2 / 2) / 2
    0.2599
    """

    def __init__(self, config: DistributionBalancedConfig, facts: TermFacts) -> None:
        super().__init__("sigmoid")
        self.config = config
        label_counts = facts.label_counts or facts.counts[1:]
        num_texts = max(facts.num_items // len(label_counts), 2)
        counts = [min(max(count, 1), num_texts - 1) for count in label_counts]
        log_odds_K = torch.tensor([math.log(num_texts / count - 1) for count in counts])
        self.shift_K: Tensor
        self.rarity_K: Tensor
        self.register_buffer("shift_K", config.bias * log_odds_K, persistent=False)
        self.register_buffer("rarity_K", min(counts) / torch.tensor(counts), persistent=False)

    def losses(self, items: Items) -> Tensor:
        config, y_RK = self.config, items.targets.reshape(-1, len(self.rarity_K)).to(self.rarity_K.dtype)
        share_RK = self.rarity_K / (self.rarity_K * y_RK).sum(-1, keepdim=True)
        weights_RK = config.floor + torch.sigmoid(config.slope * (share_RK - config.center))
        # 1 for positives, -scale for negatives.
        factor_RK = (1 + config.scale) * y_RK - config.scale
        log_p_RK = F.logsigmoid((items.logits.reshape(y_RK.shape) - self.shift_K) * factor_RK)
        return (focal(log_p_RK, config.gamma) * (weights_RK / factor_RK.abs())).flatten()
