"""Cross entropy: plain, class-weighted (eq. 2), and with logits adjusted by the log prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from dice_ray.losses.base import ItemLoss, LossBranch
from dice_ray.losses.items import Items
from dice_ray.losses.probability import target_log_prob
from dice_ray.losses.weighting import LgConfig, Weighting

if TYPE_CHECKING:
    from dice_ray.errors import Problem
    from dice_ray.terms import Link, TermFacts


class CrossEntropyLoss(ItemLoss):
    """-a_t log p_t, averaged over the N items (eq. 2); torch's `weight=` divides by the sum of the weights instead.

    `logits_NC` (softmax), `logits_N` (sigmoid) or `logits_NL` (position), `targets_N`. An absent class adds nothing;
    with every item masked the value is 0.

    >>> loss = CrossEntropyLoss(weights=[1, 3])
    >>> round(loss(torch.zeros(2, 2), torch.tensor([0, 1])).item(), 4)  # (1 + 3) log(2) / 2
    1.3863
    """

    weights_C: Tensor | None
    _first_classes: Tensor

    def __init__(self, link: Link = "softmax", weights: Sequence[float] | None = None) -> None:
        super().__init__(link)
        self.register_buffer("weights_C", None if weights is None else torch.tensor(weights).float(), persistent=False)
        # Of each label of a multi-label term; its two classes follow each other.
        self.register_buffer("_first_classes", torch.arange(0, len(weights or ()), 2), persistent=False)

    def losses(self, items: Items) -> Tensor:
        return self.weighted(-target_log_prob(items), items)

    def weighted(self, losses_N: Tensor, items: Items) -> Tensor:
        """The loss of each item times the weight of its class; two weights for each label of a multi-label term."""
        if self.weights_C is None:
            return losses_N
        classes_N = items.targets
        if self.link == "sigmoid" and len(self.weights_C) > 2:
            classes_N = (classes_N.reshape(-1, len(self.weights_C) // 2) + self._first_classes).flatten()
        return losses_N * self.weights_C[classes_N]


class LogitAdjustedLoss(CrossEntropyLoss):
    """Cross entropy of z + tau log prior, so that the logits need not learn the prior (Menon et al. 2021, eq. 10).

    `logits_NC` or `logits_N`, `targets_N`. A class absent from the training split counts as one item in the prior; with
    every item masked the value is 0.

    >>> loss = LogitAdjustedLoss(LogitAdjustedConfig(), log_prior=[-0.287682, -1.386294])
    >>> round(loss(torch.zeros(1, 2), torch.tensor([1])).item(), 4)  # -log(.25)
    1.3863
    """

    shift_C: Tensor

    def __init__(self, config: LogitAdjustedConfig, log_prior: Sequence[float], link: Link = "softmax") -> None:
        super().__init__(link)
        self.register_buffer("shift_C", config.tau * torch.tensor(log_prior), persistent=False)

    def losses(self, items: Items) -> Tensor:
        # The logits of two classes are already their difference (`Items.logits`), so their shifts are subtracted too.
        shift = self.shift_C[1] - self.shift_C[0] if items.is_two_class else self.shift_C
        return super().losses(replace(items, logits=items.logits + shift))


class CrossEntropyConfig(LossBranch):
    """-y log p."""

    name: ClassVar[str] = "cross_entropy"
    formula: ClassVar[str] = "-y log p"
    source: ClassVar[str] = "eq. 1"
    section: ClassVar[str] = "3.2"
    use: ClassVar[str] = (
        "The baseline of every comparison. With rare positives, try model.head_bias=prior and the tuned threshold "
        "before another loss."
    )
    supported: ClassVar[tuple[Link, ...]] = ("softmax", "sigmoid", "position")

    def build(self, facts: TermFacts) -> CrossEntropyLoss:
        return CrossEntropyLoss(facts.link)


class WeightedCrossEntropyConfig(LossBranch):
    """-a_t y log p, with the weight a_t of the class.

    Attributes:
        weighting: The class weights a_t.
    """

    name: ClassVar[str] = "weighted_cross_entropy"
    formula: ClassVar[str] = "-a_t y log p"
    source: ClassVar[str] = "eq. 2"
    section: ClassVar[str] = "3.2"
    use: ClassVar[str] = "Rare classes should weigh more than frequent ones: recall rises, and precision falls."
    weighting: Weighting = LgConfig()

    def build(self, facts: TermFacts) -> CrossEntropyLoss:
        return CrossEntropyLoss(facts.link, self.weighting.class_weights(facts))

    def problems(self, facts: TermFacts, path: str) -> list[Problem]:
        return self.weighting.problems(facts, f"{path}.weighting.{self.weighting.name}")


class LogitAdjustedConfig(LossBranch):
    """-y log softmax(z + tau log prior).

    Attributes:
        tau: The factor of the log prior; 0 is cross-entropy.
    """

    name: ClassVar[str] = "logit_adjusted"
    formula: ClassVar[str] = "-y log softmax(z + tau log prior)"
    source: ClassVar[str] = "Menon et al. 2021"
    use: ClassVar[str] = (
        "Each class counts the same in the score (macro F1, balanced accuracy) and class frequencies differ."
    )
    # The value that the publication derives; not measured here.
    tau: Annotated[float, Field(ge=0)] = 1.0

    def build(self, facts: TermFacts) -> LogitAdjustedLoss:
        return LogitAdjustedLoss(self, facts.log_prior, facts.link)
