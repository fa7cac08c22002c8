"""The dice losses: dice (DL), self-adjusting dice (DSC), and cross entropy plus dice."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from dice_ray.errors import Problem
from dice_ray.losses.base import Loss, LossBranch, item_sums, mean
from dice_ray.losses.overlap import Form, item_losses, set_sums
from dice_ray.losses.probability import target_log_prob

if TYPE_CHECKING:
    from dice_ray.losses.items import Items
    from dice_ray.terms import Link, TermFacts


class SetConfig(LossBranch):
    """Fields shared by the losses that are built on a coefficient of overlap.

    Attributes:
        classes: `foreground` is every class except the term's background (all classes if it has none).
        average: For several classes in batch scope: the mean of their ratios, or one ratio of their pooled sums. The
            labels of a multi-label term share one ratio, or with `per_label` have one each, of which it is the mean.
    """

    group = "overlap"
    classes: Literal["foreground", "all"] = "foreground"
    average: Literal["per_class", "pooled", "per_label"] = "per_class"

    @property
    def is_item_mean(self) -> bool:
        return False

    @abstractmethod
    def form(self) -> Form:
        """The constants of the coefficient."""

    def can_mine(self, facts: TermFacts) -> bool:
        return facts.link != "position"

    def num_labels(self, facts: TermFacts) -> int:
        """The number of labels that have a ratio of their own; 1 if all share one."""
        return len(facts.labels) if self.average == "per_label" else 1

    def problems(self, facts: TermFacts, path: str) -> list[Problem]:
        if self.average == "per_class":
            return []
        if self.is_item_mean:
            return [Problem(f"{path}.average", "has no effect in example scope, must be per_class", self.average)]
        if self.average == "per_label":
            must = f"must be per_class or pooled: term {facts.name!r} has one label for each item"
            return [] if facts.labels else [Problem(f"{path}.average", must, self.average)]
        if len(facts.foreground if self.classes == "foreground" else facts.classes) == 1:
            must = f"has no effect with the one foreground class of term {facts.name!r}, must be per_class"
            return [Problem(f"{path}.average", must, self.average)]
        return []


class ScopedConfig(SetConfig):
    """Fields shared by the overlap losses that exist in both scopes.

    Attributes:
        scope: `batch` forms one ratio of the sums over the step, `example` averages the ratios of the items.
        gamma: Smoothing term. Default 1 in example scope, as in footnote 3; .01 in batch scope, where a model does not
            learn rare classes with 1.
    """

    # Footnote 3 of the paper sums over a set, its eq. 7 forms one ratio for each item, and its code does either.
    scope: Literal["batch", "example"] = "batch"
    # On WNUT17, linear dice and Tversky with gamma 1 per class predicted no entity at all (F1 0, cross entropy 53.0).
    gamma: Annotated[float, Field(ge=0)] = Field(
        default_factory=lambda fields: 1.0 if fields["scope"] == "example" else 0.01,
        description=".01, or 1 in example scope",
    )

    @property
    def is_item_mean(self) -> bool:
        return self.scope == "example"


class DiceConfig(ScopedConfig):
    """1 - (2py + gamma)/(p^2 + y^2 + gamma), squared (eq. 7); linear: p + y below (eq. 6).

    Attributes:
        denominator: Whether p and y are squared in the denominator.
    """

    name = "dice"
    formula = "1 - (2py + gamma)/(p^2 + y^2 + gamma); linear: p + y"
    source = "eq. 7 (squared), eq. 6 (linear)"
    section = "3.3"
    use = (
        "The score is F1 and positives are rare. Prefer batch scope: in example scope with gamma 1, eq. 7 as printed, "
        "runs often predict one class only."
    )
    denominator: Literal["squared", "linear"] = "squared"

    def build(self, facts: TermFacts) -> DiceLoss:
        return DiceLoss(self, facts.link, facts.background, self.num_labels(facts))

    def form(self) -> Form:
        return _dice_form(self)


class SelfAdjustingDiceConfig(ScopedConfig):
    """u = p(1-p)^decay; 1 - (2uy + gamma)/(u + y + gamma), linear (eq. 11); squared: u^2 + y^2 below.

    Attributes:
        decay: The exponent of the factor (1-p)^decay, which down-weights easy items; 0 is dice.
        denominator: Whether u and y are squared in the denominator.
        decay_gradient: `full` differentiates the weight (1-p)^decay, which reverses the sign of the gradient above
            p = 1/(1+decay); `stopped` treats the weight as a constant.
    """

    name = "self_adjusting_dice"
    formula = "u = p(1-p)^decay; 1 - (2uy + gamma)/(u + y + gamma); squared: u^2 + y^2"
    source = "eq. 11 (linear)"
    section = "3.4"
    use = (
        "As dice, with easy items weighed less by (1-p)^decay. Keep decay small: with decay 1, eq. 11 as printed, "
        "runs often predict one class only."
    )
    # The value in the authors' code. With decay 1, eq. 11 as printed, no entity of WNUT17 was predicted.
    decay: Annotated[float, Field(ge=0)] = 0.01
    # `stopped` weights a confident false positive by 1-p: it over-predicts, and needs a tuned threshold.
    decay_gradient: Literal["full", "stopped"] = "full"
    denominator: Literal["squared", "linear"] = "squared"

    def build(self, facts: TermFacts) -> SelfAdjustingDiceLoss:
        return SelfAdjustingDiceLoss(self, facts.link, facts.background, self.num_labels(facts))

    def problems(self, facts: TermFacts, path: str) -> list[Problem]:
        problems = super().problems(facts, path)
        if self.decay == 0 and self.decay_gradient == "stopped":
            problems.append(Problem(f"{path}.decay_gradient", "has no effect with decay 0, must be full", "'stopped'"))
        return problems

    def form(self) -> Form:
        return replace(_dice_form(self), decay=self.decay, is_stopped=self.decay_gradient == "stopped")


class DiceCEConfig(SetConfig):
    """Cross entropy + weight x dice in batch scope.

    Attributes:
        weight: The factor of dice.
        gamma: The smoothing term of dice.
        denominator: Whether p and y are squared in the denominator.
    """

    name = "dice_ce"
    formula = "cross_entropy + weight x dice, scope batch"
    source = "nnU-Net, Isensee et al. 2021"
    use = "The aim is that of dice, with the gradient of cross-entropy in each item, so that runs collapse less easily."
    # The factor of nnU-Net; not measured here.
    weight: Annotated[float, Field(gt=0)] = 1.0
    gamma: Annotated[float, Field(ge=0)] = 0.01
    denominator: Literal["squared", "linear"] = "squared"

    def build(self, facts: TermFacts) -> DiceCELoss:
        return DiceCELoss(self, facts.link, facts.background, self.num_labels(facts))

    def form(self) -> Form:
        return _dice_form(self)


class SetLoss(Loss):
    """1 - coefficient of overlap (see `overlap.py`): of the step in batch scope, of each item in example scope."""

    defaults: ClassVar[type[SetConfig]]

    def __init__(
        self,
        config: SetConfig | None = None,
        link: Link = "softmax",
        background: int | None = None,
        num_labels: int = 1,
    ) -> None:
        super().__init__(link)
        assert link != "position", "the overlap is one of classes, and positions are none"
        self.config = config = config or self.defaults()
        self.form, self.is_item_mean = config.form(), config.is_item_mean
        self.with_background, self.is_pooled = config.classes == "all", config.average == "pooled"
        self.background, self.num_labels = background, num_labels

    def sums(self, items: Items) -> Tensor:
        if not self.is_item_mean:
            num_labels, with_background = self.num_labels, self.with_background
            return set_sums(items, self.form, with_background=with_background, num_labels=num_labels).flatten()
        loss_C = self._used(item_losses(items, self.form, with_background=self.with_background))
        return torch.stack((loss_C.sum() / len(loss_C), self._num_items(items, len(loss_C)).to(loss_C)))

    def value(self, statistics: Tensor) -> Tensor:
        if self.is_item_mean:
            return mean(statistics)
        sums_3K = self._used(statistics.reshape(3, -1))
        if self.is_pooled:
            sums_3K = sums_3K.sum(-1, keepdim=True)
        return 1 - self.form.coefficient(*sums_3K.unbind()).mean()

    def _used(self, columns_C: Tensor) -> Tensor:
        """The columns of the classes in use; columns of class 1 of two, one for each label, are always used."""
        if self.with_background or self.background is None or columns_C.shape[-1] == self.num_labels:
            return columns_C
        before, after = columns_C[..., : self.background], columns_C[..., self.background + 1 :]
        return torch.cat((before, after), -1) if self.background else after

    def _num_items(self, items: Items, num_columns: int) -> Tensor:
        if items.kept is None:
            return items.targets.new_tensor(len(items.targets)) if items.valid is None else items.valid.sum()
        kept_C = items.kept.sum(0)
        return self._used(kept_C[1:] if num_columns == 1 else kept_C).sum() / num_columns


class DiceLoss(SetLoss):
    """1 - (2 sum py + gamma)/(sum p^2 + sum y^2 + gamma); linear: p and y. In example scope without the sums.

    `logits_NC` or `logits_N`, `targets_N`. A class without items in the step has the coefficient gamma/(sum p^2 +
    gamma); with every item masked the value is 0.

    >>> loss = DiceLoss(DiceConfig(gamma=1))
    >>> round(loss(torch.zeros(2, 2), torch.tensor([0, 1])).item(), 4)  # 1 - (2 * .5 + 1)/(.5 + 1 + 1)
    0.2
    """

    defaults = DiceConfig


class SelfAdjustingDiceLoss(SetLoss):
    """Dice of u = p(1-p)^decay (eq. 11), which down-weights easy items.

    `logits_NC` or `logits_N`, `targets_N`. A class without items in the step has the coefficient gamma/(sum u^2 +
    gamma); with every item masked the value is 0.

    >>> loss = SelfAdjustingDiceLoss(SelfAdjustingDiceConfig(gamma=1, decay=1, denominator="linear"))
    >>> round(loss(torch.zeros(2, 2), torch.tensor([0, 1])).item(), 4)  # 1 - (2 * .25 + 1)/(.5 + 1 + 1)
    0.4
    """

    defaults = SelfAdjustingDiceConfig


class DiceCELoss(SetLoss):
    """Cross entropy + weight x dice in batch scope: either has a gradient where that of the other vanishes.

    `logits_NC` or `logits_N`, `targets_N`. A class without items in the step adds nothing to the cross entropy and has
    the coefficient gamma/(sum p^2 + gamma) in dice; with every item masked the value is 0. Mining affects the dice part
    only.

    >>> loss = DiceCELoss(DiceCEConfig(gamma=1, weight=2))
    >>> round(loss(torch.zeros(2, 2), torch.tensor([0, 1])).item(), 4)  # log 2 + 2 * .2
    1.0931
    """

    defaults = DiceCEConfig
    config: DiceCEConfig

    def sums(self, items: Items) -> Tensor:
        return torch.cat((item_sums(-target_log_prob(items), items.valid), super().sums(items)))

    def value(self, statistics: Tensor) -> Tensor:
        return mean(statistics[:2]) + self.config.weight * super().value(statistics[2:])


def _dice_form(config: DiceConfig | SelfAdjustingDiceConfig | DiceCEConfig) -> Form:
    return Form(config.gamma, top=2, a=1, b=0, c=1, power=2 if config.denominator == "squared" else 1)
