"""Losses that weigh items by how easy they are: focal (FL), asymmetric and poly."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from dice_ray.losses.base import ItemLoss
from dice_ray.losses.items import Items
from dice_ray.losses.probability import target_log_prob
from dice_ray.losses.weighting import WeightedConfig

if TYPE_CHECKING:
    from dice_ray.terms import Link, TermFacts


class FocalConfig(WeightedConfig):
    """-a_t y (1-p)^gamma log p.

    Attributes:
        gamma: The exponent of the factor that down-weights easy items; 0 is cross-entropy.
    """

    name = "focal"
    group = "focusing"
    formula = "-a_t y (1-p)^gamma log p"
    source = "Lin et al. 2017; Table 2"
    section = "3.4"
    use = "Many items are easy and hide the hard ones: a larger gamma weighs easy items less. gamma 0 is cross-entropy."
    supported = ("softmax", "sigmoid", "position")
    gamma: Annotated[float, Field(ge=0)] = 2.0

    def unweighted(self, facts: TermFacts) -> FocalLoss:
        return FocalLoss(self, facts.link)


class AsymmetricConfig(WeightedConfig):
    """a_t (-y (1-p)^gamma_pos log p - (1-y) q^gamma_neg log(1-q)), q = max(p - margin, 0).

    Attributes:
        gamma_pos: The exponent of positives.
        gamma_neg: The exponent of negatives.
        margin: Negatives with a probability below it have no loss.
    """

    name = "asymmetric"
    group = "focusing"
    formula = "a_t (-y (1-p)^gamma_pos log p - (1-y) q^gamma_neg log(1-q)), q = max(p - margin, 0)"
    source = "Ridnik et al. 2021"
    use = (
        "Labels that are mostly absent, as in texts with several labels: easy negatives are ignored. Only for heads "
        "with one logit per label."
    )
    supported = ("sigmoid",)
    # The defaults of the publication; not measured here.
    gamma_pos: Annotated[float, Field(ge=0)] = 0.0
    gamma_neg: Annotated[float, Field(ge=0)] = 4.0
    margin: Annotated[float, Field(ge=0, lt=1)] = 0.05

    def unweighted(self, facts: TermFacts) -> AsymmetricLoss:
        return AsymmetricLoss(self)


class PolyConfig(WeightedConfig):
    """a_t (-y log p + epsilon y (1-p)), Poly-1.

    Attributes:
        epsilon: The factor of 1-p; 0 is cross-entropy, below 0 easy items weigh less, as in focal loss.
    """

    name = "poly"
    group = "focusing"
    formula = "a_t (-y log p + epsilon y (1-p))"
    source = "Leng et al. 2022, arXiv 2204.12511"
    use = "A control: one more parameter on cross-entropy, which does not look at class frequencies."
    supported = ("softmax", "sigmoid", "position")
    # As in the paper's listing; its experiments search from -1 to 6.
    epsilon: Annotated[float, Field(ge=-1)] = 1.0

    def unweighted(self, facts: TermFacts) -> PolyLoss:
        return PolyLoss(self, facts.link)


class PolyLoss(ItemLoss):
    """-log p_t + epsilon (1-p_t), averaged over items: the first polynomial term of cross entropy has another factor.

    `logits_NC` (softmax), `logits_N` (sigmoid) or `logits_NL` (position), `targets_N`. An absent class adds nothing;
    with every item masked the value is 0. As in the paper's listing, here from log p, which does not underflow.

    >>> round(PolyLoss()(torch.zeros(1, 2), torch.tensor([1])).item(), 4)  # log 2 + .5
    1.1931
    """

    def __init__(self, config: PolyConfig | None = None, link: Link = "softmax") -> None:
        super().__init__(link)
        self.epsilon = (config or PolyConfig()).epsilon

    def losses(self, items: Items) -> Tensor:
        log_p_N = target_log_prob(items)
        return -log_p_N - self.epsilon * log_p_N.expm1()


class FocalLoss(ItemLoss):
    """-(1-p_t)^gamma log p_t, averaged over items; gamma 0 is cross entropy.

    `logits_NC` (softmax), `logits_N` (sigmoid) or `logits_NL` (position), `targets_N`. An absent class adds nothing;
    with every item masked the value is 0.

    >>> round(FocalLoss()(torch.zeros(1, 2), torch.tensor([1])).item(), 4)  # .5^2 log 2
    0.1733
    """

    def __init__(self, config: FocalConfig | None = None, link: Link = "softmax") -> None:
        super().__init__(link)
        self.gamma = (config or FocalConfig()).gamma

    def losses(self, items: Items) -> Tensor:
        return focal(target_log_prob(items), self.gamma)


class AsymmetricLoss(ItemLoss):
    """Focal loss with separate exponents for positives and negatives; negatives with p < margin have no loss.

    `logits_N`, one logit per item, `targets_N`. With every item masked the value is 0. The gradient includes the factor
    q^gamma_neg, as in the paper's formula; the published code has an option that treats it as a constant.

    >>> loss = AsymmetricLoss(AsymmetricConfig(gamma_neg=1, margin=0.1))
    >>> round(loss(torch.zeros(1), torch.tensor([0])).item(), 4)  # -.4 log .6
    0.2043
    """

    def __init__(self, config: AsymmetricConfig | None = None, link: Link = "sigmoid") -> None:
        assert link == "sigmoid", "the asymmetric loss takes one logit per item"
        super().__init__(link)
        self.config = config or AsymmetricConfig()

    def losses(self, items: Items) -> Tensor:
        config, z_N = self.config, items.logits
        # 1 - q = min(1 - p + margin, 1). At margin 0 the log is taken in the logit, since 1 - p underflows to 0.
        if config.margin == 0:
            log_rest_N = F.logsigmoid(-z_N)
        else:
            log_rest_N = torch.log1p(-torch.relu(torch.sigmoid(z_N) - config.margin))
        positive_N, negative_N = focal(F.logsigmoid(z_N), config.gamma_pos), focal(log_rest_N, config.gamma_neg)
        return torch.lerp(negative_N, positive_N, items.targets.to(z_N.dtype))


def focal(log_p_N: Tensor, gamma: float) -> Tensor:
    """-(1-p)^gamma log p, from log p."""
    return -log_p_N if gamma == 0 else _focal(log_p_N, gamma)


class _Focal(torch.autograd.Function):
    """d/dlog_p = -q^gamma (1 - gamma p log_p / q) with q = 1 - p.

    Autograd forms gamma q^(gamma-1), which is infinite at q = 0 for gamma < 1. Here the quotient log_p / q is formed
    first: it tends to -1 as q tends to 0, where any finite value does, since q^gamma is 0.
    """

    @staticmethod
    def forward(ctx: Any, log_p_N: Tensor, gamma: float) -> Tensor:
        ctx.gamma = gamma
        q_N = -log_p_N.expm1()
        power_N = q_N**gamma
        ctx.save_for_backward(log_p_N, q_N, power_N)
        return -power_N * log_p_N

    @staticmethod
    def backward(ctx: Any, grad_N: Tensor) -> tuple[Tensor, None]:
        log_p_N, q_N, power_N = ctx.saved_tensors
        slope_N = (1 - q_N) * (log_p_N / q_N.clamp(min=torch.finfo(q_N.dtype).tiny))
        return -grad_N * power_N * (1 - ctx.gamma * slope_N), None


_focal: Callable[[Tensor, float], Tensor] = _Focal.apply
