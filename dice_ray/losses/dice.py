"""The dice losses: DL, the self-adjusting DSC, and cross entropy plus dice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from dice_ray.errors import Problem
from dice_ray.losses.base import Loss, LossBranch, item_sums, mean
from dice_ray.losses.overlap import Form, item_losses, set_sums, set_sums_and_log_prob

if TYPE_CHECKING:
    from dice_ray.losses.items import Items
    from dice_ray.terms import Link, TermFacts

Scope = Literal["batch", "example"]


def default_gamma(above: dict[str, Any]) -> float:
    """1 in example scope, as footnote 3 smooths; .01 in batch scope, where 1 teaches nothing on rare classes."""
    return 1.0 if above["scope"] == "example" else 0.01


class SetConfig(LossBranch):
    """What the losses that overlap a set with another share.

    Attributes:
        classes: `foreground` is every class but the term's background (all, where it has none).
        average: Of several classes in batch scope: the mean of their ratios, or one ratio of their pooled sums.
    """

    classes: Literal["foreground", "all"] = "foreground"
    average: Literal["per_class", "pooled"] = "per_class"

    def can_mine(self, facts: TermFacts) -> bool:
        return facts.link != "position"

    def problems(self, facts: TermFacts, path: str) -> list[Problem]:
        if self.average == "per_class":
            return []
        if getattr(self, "scope", "batch") == "example":
            return [Problem(f"{path}.average", "has no effect in example scope, must be per_class", self.average)]
        if len(facts.foreground if self.classes == "foreground" else facts.classes) == 1:
            must = f"has no effect with the one foreground class of term {facts.name!r}, must be per_class"
            return [Problem(f"{path}.average", must, self.average)]
        return []


class DiceConfig(SetConfig):
    """1 - (2py + gamma)/(p^2 + y^2 + gamma), squared (eq. 7); linear: p + y below (eq. 6)."""

    name: ClassVar[str] = "dice"
    formula: ClassVar[str] = "1 - (2py + gamma)/(p^2 + y^2 + gamma); linear: p + y"
    source: ClassVar[str] = "eq. 7 (squared), eq. 6 (linear)"
    scope: Scope = "batch"
    gamma: Annotated[float, Field(ge=0)] = Field(
        default_factory=default_gamma, description=".01, or 1 in example scope"
    )
    denominator: Literal["squared", "linear"] = "squared"

    def build(self, facts: TermFacts) -> DiceLoss:
        return DiceLoss(self, facts.link, facts.background)

    def form(self) -> Form:
        """The coefficient's constants."""
        return Form(self.gamma, top=2, a=1, b=0, c=1, power=2 if self.denominator == "squared" else 1)


class SelfAdjustingDiceConfig(SetConfig):
    """u = p(1-p)^decay; 1 - (2uy + gamma)/(u + y + gamma), linear (eq. 11); squared: u^2 + y^2 below.

    Attributes:
        decay_gradient: `full` differentiates the weight (1-p)^decay: above p = 1/(1+decay) it turns the sign over.
            `stopped` takes it as a constant.
    """

    name: ClassVar[str] = "self_adjusting_dice"
    formula: ClassVar[str] = "u = p(1-p)^decay; 1 - (2uy + gamma)/(u + y + gamma); squared: u^2 + y^2"
    source: ClassVar[str] = "eq. 11 (linear)"
    scope: Scope = "batch"
    gamma: Annotated[float, Field(ge=0)] = Field(
        default_factory=default_gamma, description=".01, or 1 in example scope"
    )
    decay: Annotated[float, Field(ge=0)] = 0.01
    decay_gradient: Literal["full", "stopped"] = "full"
    denominator: Literal["squared", "linear"] = "squared"

    def build(self, facts: TermFacts) -> SelfAdjustingDiceLoss:
        return SelfAdjustingDiceLoss(self, facts.link, facts.background)

    def problems(self, facts: TermFacts, path: str) -> list[Problem]:
        found = super().problems(facts, path)
        if self.decay == 0 and self.decay_gradient == "stopped":
            found.append(Problem(f"{path}.decay_gradient", "has no effect with decay 0, must be full", "'stopped'"))
        return found

    def form(self) -> Form:
        """The coefficient's constants, and how u is made."""
        power = 2 if self.denominator == "squared" else 1
        return Form(self.gamma, 2, 1, 0, 1, power, decay=self.decay, is_stopped=self.decay_gradient == "stopped")


class DiceCEConfig(SetConfig):
    """Cross entropy + weight x dice in batch scope."""

    name: ClassVar[str] = "dice_ce"
    formula: ClassVar[str] = "cross_entropy + weight x dice, scope batch"
    source: ClassVar[str] = "nnU-Net, Isensee et al. 2021"
    weight: Annotated[float, Field(gt=0)] = 1.0
    gamma: Annotated[float, Field(ge=0)] = 0.01
    denominator: Literal["squared", "linear"] = "squared"

    def build(self, facts: TermFacts) -> DiceCELoss:
        return DiceCELoss(self, facts.link, facts.background)


class SetLoss(Loss):
    """1 - coefficient of overlap (see `overlap.py`), of a set in batch scope or of each item in example scope."""

    def __init__(self, config: SetConfig, form: Form, scope: Scope, link: Link, background: int | None) -> None:
        super().__init__(link)
        assert link != "position", "a set of positions has no classes to overlap"
        self.form, self.is_item_mean = form, scope == "example"
        self.with_background, self.is_pooled = config.classes == "all", config.average == "pooled"
        self.background = background

    def sums(self, items: Items) -> Tensor:
        if not self.is_item_mean:
            return set_sums(items, self.form, with_background=self.with_background).flatten()
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
        """The columns of the classes used: one column is that of class 1 of two."""
        if self.with_background or self.background is None or columns_C.shape[-1] == 1:
            return columns_C
        before, after = columns_C[..., : self.background], columns_C[..., self.background + 1 :]
        return torch.cat((before, after), -1) if self.background else after

    def _num_items(self, items: Items, num_columns: int) -> Tensor:
        if items.kept is None:
            return items.targets.new_tensor(len(items.targets)) if items.valid is None else items.valid.sum()
        kept_C = items.kept.sum(0)
        return self._used(kept_C[1:] if num_columns == 1 else kept_C).sum() / num_columns


class DiceLoss(SetLoss):
    """1 - (2 sum py + gamma)/(sum p^2 + sum y^2 + gamma), linear with p and y; in example scope each item's own.

    `logits_NC` or `logits_N`, `targets_N`. A class without items in the step keeps gamma/(sum p^2 + gamma); without any
    item that counts the value is 0.

    >>> loss = DiceLoss(DiceConfig(gamma=1))
    >>> round(loss(torch.zeros(2, 2), torch.tensor([0, 1])).item(), 4)  # 1 - (2 * .5 + 1)/(.5 + 1 + 1)
    0.2
    """

    def __init__(self, config: DiceConfig | None = None, link: Link = "softmax", background: int | None = None) -> None:
        config = config or DiceConfig()
        super().__init__(config, config.form(), config.scope, link, background)


class SelfAdjustingDiceLoss(SetLoss):
    """Dice of u = p(1-p)^decay (eq. 11), which turns down easy items.

    `logits_NC` or `logits_N`, `targets_N`. A class without items in the step keeps gamma/(sum u^2 + gamma); without any
    item that counts the value is 0.

    >>> loss = SelfAdjustingDiceLoss(SelfAdjustingDiceConfig(gamma=1, decay=1, denominator="linear"))
    >>> round(loss(torch.zeros(2, 2), torch.tensor([0, 1])).item(), 4)  # 1 - (2 * .25 + 1)/(.5 + 1 + 1)
    0.4
    """

    def __init__(
        self,
        config: SelfAdjustingDiceConfig | None = None,
        link: Link = "softmax",
        background: int | None = None,
    ) -> None:
        config = config or SelfAdjustingDiceConfig()
        super().__init__(config, config.form(), config.scope, link, background)


class DiceCELoss(Loss):
    """Cross entropy + weight x dice in batch scope: the gradient of one where that of the other is flat.

    `logits_NC` or `logits_N`, `targets_N`. An absent class adds nothing to the one and keeps gamma/(sum p^2 + gamma) in
    the other; without any item that counts the value is 0. Mining chooses for the dice part.

    >>> loss = DiceCELoss(DiceCEConfig(gamma=1, weight=2))
    >>> round(loss(torch.zeros(2, 2), torch.tensor([0, 1])).item(), 4)  # log 2 + 2 * .2
    1.0931
    """

    def __init__(
        self, config: DiceCEConfig | None = None, link: Link = "softmax", background: int | None = None
    ) -> None:
        super().__init__(link)
        config = config or DiceCEConfig()
        shared = config.model_dump(exclude={"weight"})
        self.weight, self.dice = config.weight, DiceLoss(DiceConfig(**shared), link, background)

    def sums(self, items: Items) -> Tensor:
        form, with_background = self.dice.form, self.dice.with_background
        sums_3C, log_p_N = set_sums_and_log_prob(items, form, with_background=with_background)
        return torch.cat((item_sums(-log_p_N, items.valid), sums_3C.flatten()))

    def value(self, statistics: Tensor) -> Tensor:
        return mean(statistics[:2]) + self.weight * self.dice.value(statistics[2:])
