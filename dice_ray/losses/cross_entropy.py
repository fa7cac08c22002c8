"""Cross entropy: plain, with smoothed labels, with class weights (eq. 2), and with a weight for the background."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from torch import Tensor

from dice_ray.errors import Problem
from dice_ray.losses.base import ItemLoss, LossBranch
from dice_ray.losses.items import Items
from dice_ray.losses.probability import target_log_prob
from dice_ray.losses.weighting import ClassWeightedLoss, LgConfig, WeightedConfig, Weighting

if TYPE_CHECKING:
    from dice_ray.terms import Link, TermFacts


class CrossEntropyLoss(ItemLoss):
    """-log p_t, averaged over the N items.

    `logits_NC` (softmax), `logits_N` (sigmoid) or `logits_NL` (position), `targets_N`. An absent class adds nothing;
    with every item masked the value is 0. With `label_smoothing` s, log p_t becomes (1 - s) log p_t + s mean_j log p_j,
    as in torch.

    >>> import torch
    >>> round(CrossEntropyLoss()(torch.zeros(2, 2), torch.tensor([0, 1])).item(), 4)  # log 2
    0.6931
    """

    def __init__(self, link: Link = "softmax", *, label_smoothing: float = 0.0) -> None:
        super().__init__(link)
        self.label_smoothing = label_smoothing

    def losses(self, items: Items) -> Tensor:
        return -target_log_prob(items, self.label_smoothing)


class CrossEntropyConfig(LossBranch):
    """-y log p.

    Attributes:
        label_smoothing: The share s of each label that is spread over all classes: y is (1 - s) y + s/C.
    """

    name = "cross_entropy"
    group = "baseline and smoothing"
    formula = "-y log p"
    source = "eq. 1"
    section = "3.2"
    use = (
        "The baseline of every comparison. With rare positives, try model.head_bias=prior and the tuned threshold "
        "before another loss. label_smoothing (Szegedy et al. 2016) is a control."
    )
    supported = ("softmax", "sigmoid", "position")
    label_smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.0

    def build(self, facts: TermFacts) -> CrossEntropyLoss:
        return CrossEntropyLoss(facts.link, label_smoothing=self.label_smoothing)

    def problems(self, facts: TermFacts, path: str) -> list[Problem]:
        if facts.link != "position" or not self.label_smoothing:
            return []
        must = f"must be 0 for term {facts.name!r}: it predicts positions, whose number differs from item to item"
        return [Problem(f"{path}.label_smoothing", must, str(self.label_smoothing))]


class WeightedCrossEntropyConfig(WeightedConfig):
    """-a_t y log p, with the weight a_t of the class.

    Attributes:
        weighting: The class weights a_t.
    """

    name = "weighted_cross_entropy"
    group = "reweighting"
    formula = "-a_t y log p"
    source = "eq. 2"
    section = "3.2"
    use = "Rare classes should weigh more than frequent ones: recall rises, and precision falls."
    weighting: Weighting = LgConfig()

    def unweighted(self, facts: TermFacts) -> CrossEntropyLoss:
        return CrossEntropyLoss(facts.link)


class MajorityOrMinorityConfig(LossBranch):
    """-y log p, and weight times as much again for items of the majority class: class weights 1 + weight, 1, 1, ...

    That is the background class, O of tags, or the most frequent class if a term has no background.

    The paper (its eq. for L_MoM) sums over the tokens of a sentence, divides by the longest sentence, and mixes both
    terms by a share; here both are divided by the N items of the step, which with the learning rate is the same for
    weight = (1 - share)/share. We found no code of the authors.

    Attributes:
        weight: The factor of the term over the items of the majority class.
    """

    name = "majority_or_minority"
    group = "reweighting"
    formula = "-(1 + weight [y is of the majority class]) y log p"
    source = "Nemoto et al. 2024, arXiv 2401.11431"
    use = (
        "Tags, where too many tokens of the background are taken for entities: precision rises. It weighs the most "
        "frequent class more, the opposite of weighted_cross_entropy."
    )
    weight: Annotated[float, Field(gt=0)] = 1.0

    def build(self, facts: TermFacts) -> ClassWeightedLoss:
        majority = facts.counts.index(max(facts.counts)) if facts.background is None else facts.background
        weights = [1.0 + self.weight * (index == majority) for index in range(len(facts.classes))]
        return ClassWeightedLoss(CrossEntropyLoss(facts.link), weights)
