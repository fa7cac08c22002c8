"""A loss that is a function of logits and targets."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from dice_ray.errors import ConfigError, LossInputError
from dice_ray.losses import CrossEntropyConfig, CustomConfig
from tests.contracts.losses import TERMS


def of_each(logits: Tensor, targets: Tensor) -> Tensor:
    return mean(logits, targets, "none")


def mean(logits: Tensor, targets: Tensor, reduction: str = "mean") -> Tensor:
    if logits.ndim == 1:
        return functional.binary_cross_entropy_with_logits(logits, targets, reduction=reduction)
    return functional.cross_entropy(logits, targets, reduction=reduction)


def pair(logits: Tensor, targets: Tensor) -> Tensor:
    return logits[:, :2] + targets[:, None]


def accuracy(logits: Tensor, targets: Tensor) -> Tensor:
    """It has no gradient, which was torch's error at the first step."""
    return (logits.argmax(-1) == targets).float()


MODULE = nn.Identity()
"""Its `forward` takes one argument; its `__call__` any."""


@pytest.mark.parametrize("function", ["of_each", "mean"])
@pytest.mark.parametrize("term", ["two", "one_logit", "tags"])
def test_a_function_is_a_mean_over_the_items_of_a_step(term: str, function: str) -> None:
    """In parts of unequal size, with masked items and a part without items, as cross-entropy in one part."""
    facts = TERMS[term]
    shape = (12,) if facts.link == "sigmoid" else (12, len(facts.classes))
    logits = torch.randn(shape, generator=torch.Generator().manual_seed(0), requires_grad=True)
    targets = torch.arange(12) % len(facts.classes)
    targets[[1, 10, 11]] = -100
    loss = CustomConfig(target=f"{__name__}:{function}", form="function").build(facts)
    parts = [loss.statistics(logits[part], targets[part]) for part in (slice(7), slice(7, 10), slice(10, 12))]
    expected = CrossEntropyConfig().build(facts)(logits, targets)
    assert torch.allclose(loss.value(sum(parts, torch.zeros(2))), expected)
    (gradient,) = torch.autograd.grad(loss.value(sum(parts, torch.zeros(2))), logits)
    assert torch.allclose(gradient, torch.autograd.grad(expected, logits)[0])


def test_a_class_is_called_with_the_parameters() -> None:
    custom = CustomConfig(target="torch.nn:CrossEntropyLoss", form="function", parameters={"label_smoothing": 0.5})
    logits, targets = torch.randn(5, 4), torch.tensor([0, 1, 2, 3, 3])
    expected = functional.cross_entropy(logits, targets, label_smoothing=0.5)
    assert torch.allclose(custom.build(TERMS["tags"])(logits, targets), expected)


def test_what_is_no_loss_of_items_is_refused() -> None:
    loss = CustomConfig(target=f"{__name__}:pair", form="function").build(TERMS["tags"])
    with pytest.raises(LossInputError, match=r"for each of the 3 items, or their mean, got \(3, 2\)"):
        loss(torch.zeros(3, 4), torch.tensor([0, 1, 2]))
    loss = CustomConfig(target=f"{__name__}:accuracy", form="function").build(TERMS["tags"])
    with pytest.raises(LossInputError, match="must be computed from the logits"):
        loss(torch.zeros(3, 4, requires_grad=True), torch.tensor([0, 1, 2]))
    assert loss(torch.zeros(3, 4), torch.tensor([0, 0, 2])) == pytest.approx(2 / 3), "evaluation needs no gradient"
    with pytest.raises(ConfigError, match=r"form: must be builder for a term over positions"):
        CustomConfig(target=f"{__name__}:pair", form="function").build(TERMS["position"])


def test_wrong_parameters_are_a_problem_before_the_first_step() -> None:
    """A misspelt one was a TypeError, of a function only in the first step; booleans were refused."""
    facts = TERMS["two"]
    config = CustomConfig.model_validate({"target": f"{__name__}:mean", "form": "function", "parameters": {"on": True}})
    (problem,) = config.problems(facts, "loss.custom")
    assert str(problem).startswith(
        "loss.custom.parameters: must be a function that can be called with (logits, targets, on): got an unexpected"
    )
    assert CustomConfig(target=f"{__name__}:of_each", form="function").problems(facts, "loss.custom") == []
    (problem,) = CustomConfig(target=f"{__name__}:pair").problems(facts, "loss.custom")
    assert "missing a required argument: 'targets'" in problem.must
    (problem,) = CustomConfig(target=f"{__name__}:MODULE", form="function").problems(facts, "loss.custom")
    assert (problem.path, problem.got) == ("loss.custom.target", f"{__name__}:MODULE(input)")
    (problem,) = CustomConfig(target="os:system").problems(facts, "loss.custom")
    assert problem.must.startswith("must be a function or class in Python")
