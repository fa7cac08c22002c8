"""Losses of logits that are shifted or scaled by class, so that rare classes keep a larger margin.

`shifted` adds to any loss what a training set with more positives adds to the logits, so that they do not learn it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import torch
from pydantic import Field
from torch import Tensor

from dice_ray.losses.base import Loss
from dice_ray.losses.cross_entropy import CrossEntropyLoss
from dice_ray.losses.items import Items
from dice_ray.losses.weighting import WeightedConfig

if TYPE_CHECKING:
    from dice_ray.terms import Link, TermFacts


class LogitAdjustedConfig(WeightedConfig):
    """-a_t y log softmax(z + tau log prior).

    Attributes:
        tau: The factor of the log prior; 0 is cross-entropy.
    """

    name = "logit_adjusted"
    group = "margins"
    formula = "-a_t y log softmax(z + tau log prior)"
    source = "Menon et al. 2021"
    use = "Each class counts the same in the score (macro F1, balanced accuracy) and class frequencies differ."
    # The value that the publication derives; not measured here.
    tau: Annotated[float, Field(ge=0)] = 1.0

    def unweighted(self, facts: TermFacts) -> LogitAdjustedLoss:
        return LogitAdjustedLoss(self, facts.log_prior, facts.link)


class VectorScalingConfig(WeightedConfig):
    """-a_t y log softmax(z Delta + tau log prior), Delta_j = (n_j / max n)^gamma.

    Attributes:
        gamma: The exponent of the factors of the logits; 0 is logit_adjusted.
        tau: The factor of the log prior; 0 is class-dependent temperature (CDT, Ye et al. 2020).
    """

    name = "vector_scaling"
    group = "margins"
    formula = "-a_t y log softmax(z Delta + tau log prior), Delta_j = (n_j / max n)^gamma"
    source = "Kini et al. 2021, arXiv 2103.01550"
    use = (
        "As logit_adjusted, where training goes on after all items are classified well: there the factors of the "
        "logits, not the shifts, decide the margins."
    )
    # The defaults of the authors' code; they search both for each data set.
    gamma: Annotated[float, Field(ge=0)] = 0.3
    tau: Annotated[float, Field(ge=0)] = 1.0

    def unweighted(self, facts: TermFacts) -> VectorScalingLoss:
        return VectorScalingLoss(self, facts.log_prior, facts.link)


class LdamConfig(WeightedConfig):
    """-a_t y log softmax(z - m_t y), m_t = margin (min n / n_t)^(1/4): the logit of an item's own class is lowered.

    Attributes:
        margin: The margin of the rarest class, in units of the logits; 0 is weighted cross-entropy.
    """

    name = "ldam"
    group = "margins"
    formula = "-a_t y log softmax(z - m_t y), m_t = margin (min n / n_t)^(1/4)"
    source = "Cao et al. 2019, arXiv 1906.07413"
    use = (
        "Rare classes are learnt by heart, and found too seldom in new items. The paper's LDAM-DRW is "
        "weighting=effective_number with reweight_after=0.8."
    )
    # On frozen MiniLM features of WNUT17's tokens, a margin of 15 had 10 points of F1 less than cross-entropy after 6
    # epochs and 2 more after 30; 2 had .2 less and 1.2 more, and .5 did not differ from cross-entropy.
    margin: Annotated[float, Field(ge=0)] = 2.0

    def unweighted(self, facts: TermFacts) -> LdamLoss:
        return LdamLoss(self, facts.log_prior, facts.link)


class LogitAdjustedLoss(CrossEntropyLoss):
    """Cross entropy of z + tau log prior, so that the logits need not learn the prior (Menon et al. 2021, eq. 10).

    `logits_NC` or `logits_N`, `targets_N`. A class absent from the training split counts as one item in the prior; with
    every item masked the value is 0.

    >>> loss = LogitAdjustedLoss(LogitAdjustedConfig(), log_prior=[-0.287682, -1.386294])
    >>> round(loss(torch.zeros(1, 2), torch.tensor([1])).item(), 4)  # -log(.25)
    1.3863
    """

    shift_C: Tensor

    def __init__(
        self, config: LogitAdjustedConfig | VectorScalingConfig, log_prior: Sequence[float], link: Link = "softmax"
    ) -> None:
        super().__init__(link)
        self.register_buffer("shift_C", config.tau * torch.tensor(log_prior), persistent=False)

    def losses(self, items: Items) -> Tensor:
        # The logits of two classes are already their difference (`Items.logits`), so their shifts are subtracted too.
        shift = self.shift_C[1] - self.shift_C[0] if items.is_two_class else self.shift_C
        return super().losses(replace(items, logits=items.logits + shift))


class VectorScalingLoss(LogitAdjustedLoss):
    """Cross entropy of z Delta + tau log prior, with Delta_j = (n_j / max n)^gamma (Kini et al. 2021).

    Two classes take the paper's binary form, in which the margin z_1 - z_0 of an item is multiplied by the Delta of the
    item's own class; with gamma 0 both forms are the same. In the authors' binary code, Delta and shift are given
    numbers, and the result is multiplied by 30.

    `logits_NC` or `logits_N`, `targets_N`. A class absent from the training split counts as one item; with every item
    masked the value is 0.

    >>> config = VectorScalingConfig(gamma=0.5, tau=0)
    >>> loss = VectorScalingLoss(config, log_prior=[-0.223144, -1.609438])  # 80 and 20 %: Delta is 1 and .5
    >>> round(loss(torch.tensor([[0.0, 2.0]]), torch.tensor([1])).item(), 4)  # -log sigmoid(2 * .5)
    0.3133
    """

    delta_C: Tensor

    def __init__(self, config: VectorScalingConfig, log_prior: Sequence[float], link: Link = "softmax") -> None:
        super().__init__(config, log_prior, link)
        prior_C = torch.tensor(log_prior)
        self.register_buffer("delta_C", (config.gamma * (prior_C - prior_C.max())).exp(), persistent=False)

    def losses(self, items: Items) -> Tensor:
        delta = self.delta_C.index_select(0, items.targets) if items.is_two_class else self.delta_C
        return super().losses(replace(items, logits=items.logits * delta))


class LdamLoss(CrossEntropyLoss):
    """Cross entropy of z - m_t y: an item's own logit is lowered by m_t = margin (min n / n_t)^(1/4) (Cao et al. 2019).

    In the paper and the authors' code, features and the head's weights are normalised, so that a logit is a cosine, and
    logits less margins are multiplied by 30. A loss sees logits only: they are not normalised, and the margin is one of
    logits; the paper's .5 is 15 in these units.

    `logits_NC` or `logits_N`, `targets_N`. A class absent from the training split counts as one item; with every item
    masked the value is 0.

    >>> loss = LdamLoss(LdamConfig(margin=1), log_prior=[-0.060625, -2.833213])  # 16 : 1, the margins are .5 and 1
    >>> round(loss(torch.zeros(1, 2), torch.tensor([0])).item(), 4)  # -log sigmoid(-.5)
    0.9741
    """

    margin_C: Tensor

    def __init__(self, config: LdamConfig, log_prior: Sequence[float], link: Link = "softmax") -> None:
        super().__init__(link)
        prior_C = torch.tensor(log_prior)
        self.register_buffer("margin_C", config.margin * ((prior_C.min() - prior_C) / 4).exp(), persistent=False)

    def losses(self, items: Items) -> Tensor:
        margin_N = self.margin_C.index_select(0, items.targets)
        if items.is_two_class:
            logits = items.logits - items.signs * margin_N
        else:
            logits = items.logits.to(torch.promote_types(items.logits.dtype, torch.float32))
            logits = logits.scatter_add(1, items.targets[:, None], -margin_N[:, None].to(logits.dtype))
        return super().losses(replace(items, logits=logits))


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
