"""The Tversky loss (TL, eq. 9): separate weights for false positives and false negatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field, model_validator

from dice_ray.errors import Problem
from dice_ray.losses.dice import ScopedConfig, SetLoss
from dice_ray.losses.overlap import Form

if TYPE_CHECKING:
    from dice_ray.terms import TermFacts


class TverskyConfig(ScopedConfig):
    """1 - (py + gamma)/(py + alpha p(1-y) + beta (1-p)y + gamma).

    Attributes:
        alpha: The weight of false positives.
        beta: The weight of false negatives; default 1 - alpha.
    """

    name = "tversky"
    formula = "1 - (py + gamma)/(py + alpha p(1-y) + beta (1-p)y + gamma)"
    source = "eq. 9"
    section = "3.3"
    use = (
        "False positives and false negatives cost differently: alpha weighs the former, beta the latter; alpha below "
        "0.5 raises recall."
    )
    alpha: Annotated[float, Field(ge=0)] = 0.5
    beta: Annotated[float, Field(ge=0)] = Field(
        default_factory=lambda fields: 1 - fields["alpha"], description="1 - alpha"
    )

    @model_validator(mode="after")
    def _weighs_something(self) -> TverskyConfig:
        if self.alpha + self.beta == 0:
            raise ValueError("alpha + beta must be above 0, or no error is penalised")
        return self

    def build(self, facts: TermFacts) -> TverskyLoss:
        return TverskyLoss(self, facts.link, facts.background, self.num_labels(facts))

    def problems(self, facts: TermFacts, path: str) -> list[Problem]:
        problems = super().problems(facts, path)
        if self.scope == "example" and self.gamma == 0:
            problems.append(Problem(f"{path}.gamma", "must be above 0 in example scope, or alpha has no effect", "0"))
        return problems

    def form(self) -> Form:
        # py + alpha p(1-y) + beta (1-p)y = alpha p + (1 - alpha - beta) py + beta y
        return Form(self.gamma, top=1, a=self.alpha, b=1 - self.alpha - self.beta, c=self.beta)


class TverskyLoss(SetLoss):
    """1 - (TP + gamma)/(TP + alpha FP + beta FN + gamma) with TP = sum py; in example scope without the sums.

    `logits_NC` or `logits_N`, `targets_N`. A class without items in the step has the coefficient gamma/(alpha sum p +
    gamma); with every item masked the value is 0. alpha = beta = .5 equals linear dice with twice the gamma.

    >>> import torch
    >>> loss = TverskyLoss(TverskyConfig(gamma=1, alpha=0.2))
    >>> round(loss(torch.zeros(2, 2), torch.tensor([0, 1])).item(), 4)  # 1 - 1.5/(.5 + .2 * .5 + .8 * .5 + 1)
    0.25
    """

    defaults = TverskyConfig
