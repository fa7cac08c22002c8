"""The losses and terms of the contract suite: every registered loss in several configurations."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import TypeAdapter
from torch import Tensor

from dice_ray.losses import LossConfig
from dice_ray.losses.base import ItemLoss, LossBranch
from dice_ray.losses.items import Items
from dice_ray.losses.probability import target_log_prob
from dice_ray.settings import branches_of
from dice_ray.terms import TermFacts

TERMS = {
    "two": TermFacts("label", "softmax", ("no", "yes"), (90, 10), 0),
    "one_logit": TermFacts("start", "sigmoid", ("no", "yes"), (90, 10), 0),
    "tags": TermFacts("tag", "softmax", ("O", "A", "B", "C"), (70, 20, 9, 1), 0),
    "last_is_background": TermFacts("tag", "softmax", ("A", "B", "none"), (20, 10, 70), 2),
    "topics": TermFacts("topic", "softmax", ("A", "B", "C"), (50, 30, 20)),
    "many": TermFacts("tag", "softmax", tuple(f"T{index}" for index in range(18)), (10,) * 18, 0),
    "labels": TermFacts("topic", "sigmoid", ("no", "yes"), (130, 50), 0, ("A", "B", "C"), (40, 9, 1)),
    "position": TermFacts("start", "position", tuple("01234"), (1,) * 5),
}
FORMS: dict[str, list[dict[str, Any]]] = {
    "cross_entropy": [{}, {"label_smoothing": 0.2}],
    "weighted_cross_entropy": [
        {},
        {"weighting": {"lg": {"k": 2.5}}},
        {"weighting": {"lg": {"strength": 0.4}}},
        {"weighting": "inverse"},
        {"weighting": "effective_number"},
        {"weighting": {"given": {"weights": {"yes": 3}}}},
        {"weighting": {"given": {"weights": {"A": 2, "B": 0}}}},
    ],
    "focal": [{}, {"gamma": 0.5}, {"gamma": 0}, {"gamma": 3, "weighting": "inverse"}],
    "dice": [
        {},
        {"denominator": "linear", "gamma": 1},
        {"scope": "example"},
        {"scope": "example", "denominator": "linear", "classes": "all", "gamma": 0.3},
        {"scope": "example", "gamma": 0},
        {"average": "pooled", "classes": "all", "gamma": 0},
        {"gamma": 0},
    ],
    "self_adjusting_dice": [
        {},
        {"denominator": "linear", "decay": 1, "gamma": 1},
        {"scope": "example", "decay": 0.3, "gamma": 0.2},
        {"scope": "example", "decay": 1, "denominator": "linear", "classes": "all"},
        {"average": "pooled", "decay": 0.5, "classes": "all"},
        {"decay": 0},
        {"decay": 2, "decay_gradient": "stopped", "denominator": "linear"},
        {"scope": "example", "decay": 0.5, "decay_gradient": "stopped"},
        {"decay": 0.1, "gamma": 0, "denominator": "linear"},
    ],
    "tversky": [
        {},
        {"alpha": 0.2},
        {"alpha": 0, "beta": 1, "classes": "all"},
        {"scope": "example", "alpha": 0.7, "gamma": 0.5},
        {"scope": "example", "alpha": 1, "gamma": 0},
        {"alpha": 1, "gamma": 0},
    ],
    "dice_ce": [{}, {"weight": 0.3, "denominator": "linear", "classes": "all", "gamma": 1}],
    "logit_adjusted": [{}, {"tau": 0.5, "weighting": "inverse"}],
    "vector_scaling": [{}, {"gamma": 0.15, "tau": 0}, {"gamma": 1, "weighting": "inverse"}],
    "ldam": [{}, {"margin": 5, "weighting": "effective_number"}],
    "majority_or_minority": [{}, {"weight": 0.3}],
    "poly": [{}, {"epsilon": -1, "weighting": "inverse"}],
    "distribution_balanced": [{}, {"gamma": 0, "scale": 5, "center": 0.3}, {"bias": 0, "slope": 1, "gamma": 0.5}],
    "asymmetric": [{}, {"gamma_pos": 1, "gamma_neg": 2, "margin": 0.2, "weighting": "inverse"}, {"margin": 0}],
    "custom": [{"target": "tests.contracts.losses:brier", "parameters": {"factor": 2.0}}],
}


class Brier(ItemLoss):
    """A loss as a user would write it."""

    def __init__(self, facts: TermFacts, factor: float) -> None:
        super().__init__(facts.link)
        self.factor = factor

    def losses(self, items: Items) -> Tensor:
        return self.factor * (1 - target_log_prob(items).exp()) ** 2


def brier(facts: TermFacts, factor: float) -> Brier:
    return Brier(facts, factor)


def load(written: object) -> LossBranch:
    """The configuration as a preset or `--set` gives it."""
    config: LossBranch = TypeAdapter(LossConfig).validate_python(written)
    return config


CASES = {
    f"{name}-{index}-{term}": (config, facts)
    for name in branches_of(LossConfig)
    for index, form in enumerate(FORMS.get(name, [{}]))
    for config in [load({name: form})]
    for term, facts in TERMS.items()
    if facts.link in config.supported and not config.problems(facts, "loss")
}


def draw(facts: TermFacts, num_items: int, *, seed: int = 0, scale: float = 3.0) -> tuple[Tensor, Tensor]:
    """Logits and targets in fp64 of this many rows, every class among the first targets."""
    generator = torch.Generator().manual_seed(seed)
    num_classes = len(facts.classes)
    items = (num_items, len(facts.labels)) if facts.labels else (num_items,)
    shape = items if facts.link == "sigmoid" else (num_items, num_classes)
    logits = scale * torch.randn(shape, dtype=torch.float64, generator=generator)
    targets = torch.randint(num_classes, items, generator=generator)
    targets.view(-1)[:num_classes] = torch.arange(num_classes)[: targets.numel()]
    return logits, targets


def item_mask(facts: TermFacts, kept: Tensor, logits: Tensor, targets: Tensor) -> Tensor:
    """The mask that keeps these items; over positions it also forbids one position, never the target."""
    if facts.labels:
        return kept[:, None].expand_as(logits)
    if facts.link != "position":
        return kept
    mask = kept[:, None].expand_as(logits).clone()
    mask[torch.arange(len(mask)), (targets + 1) % logits.shape[1]] = False
    return mask
