"""Cross entropy and the losses derived from it, against torch and by hand."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from pydantic import TypeAdapter

from dice_ray.errors import ConfigError
from dice_ray.losses import (
    AsymmetricConfig,
    AsymmetricLoss,
    CrossEntropyConfig,
    CrossEntropyLoss,
    CustomConfig,
    FocalConfig,
    FocalLoss,
    LdamConfig,
)
from dice_ray.losses.mining import MiningConfig
from dice_ray.terms import TermFacts

TWO = TermFacts("label", "softmax", ("no", "yes"), (9, 1), 0)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("num_classes", [2, 5, 20])
def test_it_equals_that_of_torch(num_classes: int, smoothing: float) -> None:
    ours, theirs = (torch.randn(64, num_classes, generator=torch.Generator().manual_seed(0)) for _ in range(2))
    targets = torch.randint(-1, num_classes, (64,))
    targets[targets == -1] = -100
    value = CrossEntropyLoss(label_smoothing=smoothing)(ours.requires_grad_(), targets)
    expected = F.cross_entropy(theirs.requires_grad_(), targets, label_smoothing=smoothing)
    value.backward()
    expected.backward()
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(ours.grad, theirs.grad)


def test_a_gap_of_ten_thousand_is_a_loss_of_ten_thousand() -> None:
    for num_classes in (2, 3):
        logits = torch.zeros(1, num_classes)
        logits[0, 1] = 1e4
        assert CrossEntropyLoss()(logits, torch.tensor([0])) == 1e4
        assert CrossEntropyLoss()(logits, torch.tensor([1])) == 0
        assert FocalLoss()(logits, torch.tensor([0])) == 1e4


def test_focal_with_gamma_below_one_has_a_finite_gradient_at_p_1() -> None:
    logits = torch.tensor([20.0, -20.0], requires_grad=True)
    FocalLoss(FocalConfig(gamma=0.5), "sigmoid")(logits, torch.tensor([1, 1])).backward()
    assert logits.grad is not None
    assert logits.grad.tolist() == pytest.approx([0, -0.5], abs=1e-5)


def test_asymmetric_drops_easy_negatives() -> None:
    logits = torch.tensor([-3.0, 0.0, 2.0], requires_grad=True)
    loss = AsymmetricLoss(AsymmetricConfig(gamma_neg=1, margin=0.05))(logits, torch.tensor([0, 0, 1]))
    loss.backward()
    p = 1 / (1 + math.exp(-2))
    assert loss.item() == pytest.approx((-0.45 * math.log(0.55) - math.log(p)) / 3)
    assert logits.grad is not None
    assert logits.grad[0] == 0
    assert logits.grad[1] > 0


def test_the_margins_of_ldam_are_16_to_1_to_the_quarter() -> None:
    facts = TermFacts("tag", "softmax", ("O", "A", "B"), (160, 10, 160), 0)
    loss = LdamConfig(margin=1).build(facts)
    logits = torch.tensor([[0.5, 0.0, 0.0], [0.0, 1.0, 0.0]])  # those of the margins: what is left is uniform
    assert loss(logits, torch.tensor([0, 1])).item() == pytest.approx(math.log(3))


@pytest.mark.parametrize("mining", [0.0, 1.0])
def test_weights_begin_at_a_share_of_the_steps(mining: float) -> None:
    """Mining wraps the loss, and must pass the progress on."""
    weighting = {"given": {"weights": {"yes": 4}}}
    config = TypeAdapter(FocalConfig).validate_python({"gamma": 0, "weighting": weighting, "reweight_after": 0.75})
    loss = MiningConfig(ratio=mining).wrap(config.build(TWO))
    logits, targets, values = torch.zeros(2, 2), torch.tensor([0, 1]), []
    for progress in (None, 0.0, 0.74, 0.75, 0.9, 0.5):
        if progress is not None:
            loss.begin_step(progress)
        values.append(loss(logits, targets).item() / math.log(2))
    assert values == pytest.approx([1, 1, 1, 2.5, 2.5, 1])


def test_what_has_no_effect_or_no_classes_is_refused() -> None:
    positions = TermFacts("start", "position", ("0", "1"), (1, 1), 0)
    topics = TermFacts("topic", "softmax", ("a", "b", "c"), (1, 1, 1))
    for config, facts, path in (
        (FocalConfig(reweight_after=0.8), TWO, "loss.reweight_after"),
        (CrossEntropyConfig(label_smoothing=0.1), positions, "loss.label_smoothing"),
    ):
        (problem,) = config.problems(facts, "loss")
        assert problem.path == path
    assert not CrossEntropyConfig(label_smoothing=0.1).problems(topics, "loss")


def not_a_loss(facts: TermFacts) -> str:
    return facts.name


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no_such_package.losses:build", "must be the address of a function, and: no_such_package.losses must be"),
        ("tests.contracts.losses:brierr", "did you mean 'brier'"),
        ("tests.losses.test_cross_entropy:not_a_loss", "must return a dice_ray.losses.base.Loss, got str"),
    ],
)
def test_a_custom_loss_that_cannot_be_built(target: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        CustomConfig(target=target).build(TWO)
