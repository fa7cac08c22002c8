"""Losses of multi-label terms with a ratio, or weights, for each label: those of the labels as terms of their own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from dice_ray.losses import FocalConfig, WeightedCrossEntropyConfig
from dice_ray.losses.base import Loss, LossBranch
from dice_ray.losses.weighting import EffectiveNumberConfig, GivenWeightsConfig, InverseConfig, LgConfig
from dice_ray.terms import TermFacts
from tests.contracts.losses import load

FACTS = TermFacts("label", "sigmoid", ("without", "with"), (270, 30), 0, ("billing", "login", "rare"), (20, 9, 1))
ONE = TermFacts("label", "softmax", ("a", "b", "c"), (1, 1, 1))
SET_LOSSES: list[dict[str, Any]] = [
    {"dice": {}},
    {"dice": {"classes": "all", "gamma": 0}},
    {"self_adjusting_dice": {"decay": 0.5, "denominator": "linear"}},
    {"tversky": {"alpha": 0.2}},
    {"dice_ce": {"weight": 2}},
]


def per_label(written: dict[str, Any]) -> LossBranch:
    ((name, values),) = written.items()
    return load({name: {**values, "average": "per_label"}})


def draw() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(12, 3, dtype=torch.float64, generator=generator)
    targets = (torch.rand(12, 3, generator=generator) < torch.tensor([0.5, 0.2, 0.0])).long()
    targets[3] = -100
    return logits, targets


def gradient(value: Tensor, logits: Tensor) -> Tensor:
    (grad,) = torch.autograd.grad(value, logits)
    return grad


@pytest.mark.parametrize("written", SET_LOSSES, ids=str)
def test_a_loss_per_label_is_the_mean_of_the_labels_losses(written: dict[str, Any]) -> None:
    """Pooled, the label that is never there would have no part in the ratio."""
    loss, alone = per_label(written).build(FACTS), load(written).build(FACTS.by_label[0])
    logits, targets = draw()
    leaf, same = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    value = loss(leaf, targets)
    wanted = torch.stack([alone(same[:, label], targets[:, label]) for label in range(3)]).mean()
    torch.testing.assert_close(value, wanted)
    torch.testing.assert_close(gradient(value, leaf), gradient(wanted, same))
    assert value != load(written).build(FACTS)(logits, targets)


@pytest.mark.parametrize("written", SET_LOSSES, ids=str)
def test_it_adds_up_over_shards_and_is_finite(written: dict[str, Any]) -> None:
    loss = per_label(written).build(FACTS)
    logits, targets = draw()
    parts = [loss.statistics(logits[rows], targets[rows]) for rows in (slice(0, 5), slice(5, 5), slice(5, 12))]
    torch.testing.assert_close(loss.value(torch.stack(parts).sum(0)), loss(logits, targets))
    assert loss(logits[:0], targets[:0]) == 0
    for scale in (50.0, 1e4):
        leaf = (logits.sign() * scale).bfloat16().requires_grad_()
        assert gradient(loss(leaf, targets), leaf).isfinite().all()


def weighted(config: LossBranch, facts: TermFacts, logits: Tensor, targets: Tensor) -> Tensor:
    loss: Loss = config.build(facts).double()
    value: Tensor = loss(logits, targets)
    return value


@pytest.mark.parametrize("kind", [LgConfig, InverseConfig, EffectiveNumberConfig])
@pytest.mark.parametrize("loss", [WeightedCrossEntropyConfig, FocalConfig])
def test_weights_per_label_are_those_of_the_labels_own_counts(kind: Any, loss: Any) -> None:
    logits, targets = draw()
    config = loss(weighting=kind(labels="per_label"))
    wanted = [
        weighted(loss(weighting=kind()), facts, logits[:, label], targets[:, label])
        for label, facts in enumerate(FACTS.by_label)
    ]
    torch.testing.assert_close(weighted(config, FACTS, logits, targets), torch.stack(wanted).mean())


def test_weights_can_be_given_by_the_name_of_a_label() -> None:
    given = GivenWeightsConfig(labels="per_label", weights={"rare": 9, "without login": 0.5})
    assert given.class_weights(FACTS) == (1, 1, 0.5, 1, 1, 9)
    (problem,) = GivenWeightsConfig(labels="per_label", weights={"lgin": 2}).problems(FACTS, "weighting.given")
    assert (problem.got, problem.suggestion) == ("'lgin'", "login")


def test_a_term_without_labels_has_nothing_per_label() -> None:
    for config, path in (
        (per_label({"dice": {}}), "loss.average"),
        (WeightedCrossEntropyConfig(weighting=InverseConfig(labels="per_label")), "loss.weighting.inverse.labels"),
    ):
        (problem,) = config.problems(ONE, "loss")
        assert problem.path == path
        assert "has one label for each item" in problem.must
        assert not config.problems(FACTS, "loss")
    (problem,) = load({"dice": {"scope": "example", "average": "per_label"}}).problems(FACTS, "loss")
    assert "no effect in example scope" in problem.must
