"""The dice family: values by hand, relations between its losses, and errors of the published code."""

from __future__ import annotations

import math

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from dice_ray.losses import (
    DiceConfig,
    DiceLoss,
    SelfAdjustingDiceConfig,
    SelfAdjustingDiceLoss,
    TverskyConfig,
    TverskyLoss,
)
from dice_ray.losses.base import Loss
from dice_ray.terms import TermFacts

TWO = TermFacts("label", "softmax", ("no", "yes"), (9, 1), 0)
TAGS = TermFacts("tag", "softmax", ("O", "A", "B"), (8, 1, 1), 0)


def slope(loss: Loss, logits: Tensor, targets: Tensor) -> Tensor:
    leaf = logits.clone().requires_grad_()
    (grad,) = torch.autograd.grad(loss(leaf, targets), leaf)
    return grad


@pytest.mark.parametrize("scope", ["batch", "example"])
@pytest.mark.parametrize("num_classes", [2, 4])
def test_tversky_of_one_half_is_linear_dice_with_twice_the_gamma(scope: str, num_classes: int) -> None:
    logits, targets = torch.randn(30, num_classes, dtype=torch.float64), torch.randint(num_classes, (30,))
    tversky = TverskyLoss(TverskyConfig.model_validate({"scope": scope, "gamma": 0.7}))
    dice = DiceLoss(DiceConfig.model_validate({"scope": scope, "gamma": 1.4, "denominator": "linear"}))
    torch.testing.assert_close(tversky(logits, targets), dice(logits, targets))
    torch.testing.assert_close(slope(tversky, logits, targets), slope(dice, logits, targets))


def test_defaults_follow_the_scope_and_alpha() -> None:
    assert (DiceConfig().gamma, DiceConfig(scope="example").gamma) == (0.01, 1)
    assert (TverskyConfig().beta, TverskyConfig(alpha=0.2).beta, TverskyConfig(alpha=0.2, beta=0.2).beta) == (
        0.5,
        0.8,
        0.2,
    )


def test_parameters_out_of_range() -> None:
    with pytest.raises(ValidationError, match="alpha \\+ beta must be above 0"):
        TverskyConfig(alpha=0, beta=0)
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        DiceConfig(gamma=-1)


def test_parameters_without_effect() -> None:
    def messages(config: DiceConfig | SelfAdjustingDiceConfig | TverskyConfig, facts: TermFacts) -> list[str]:
        return [f"{problem.path}: {problem.must}" for problem in config.problems(facts, "loss.x")]

    pooled = "loss.x.average: has no effect"
    assert messages(DiceConfig(average="pooled"), TAGS) == []
    assert messages(DiceConfig(average="pooled"), TWO)[0].startswith(f"{pooled} with the one foreground class")
    assert messages(DiceConfig(average="pooled", scope="example"), TAGS)[0].startswith(f"{pooled} in example scope")
    assert "alpha has no effect" in messages(TverskyConfig(scope="example", gamma=0), TWO)[0]
    stopped = SelfAdjustingDiceConfig(decay=0, decay_gradient="stopped")
    assert messages(stopped, TWO) == ["loss.x.decay_gradient: has no effect with decay 0, must be full"]


def test_above_its_peak_the_full_gradient_changes_sign_and_the_stopped_does_not() -> None:
    full = SelfAdjustingDiceConfig(scope="example", denominator="linear", decay=1)
    stopped = full.model_copy(update={"decay_gradient": "stopped"})
    logits, ones = torch.tensor([-1.0, 1.0]), torch.tensor([1, 1])
    assert (slope(SelfAdjustingDiceLoss(full, "sigmoid"), logits, ones) > 0).tolist() == [False, True]
    assert (slope(SelfAdjustingDiceLoss(stopped, "sigmoid"), logits, ones) > 0).tolist() == [False, False]
    assert (slope(SelfAdjustingDiceLoss(full, "sigmoid"), logits, 0 * ones) > 0).tolist() == [True, False]
    assert (slope(SelfAdjustingDiceLoss(stopped, "sigmoid"), logits, 0 * ones) > 0).tolist() == [True, True]


@pytest.mark.parametrize("num_classes", [2, 3])
@pytest.mark.parametrize("scope", ["batch", "example"])
def test_the_stopped_gradient_is_that_of_a_detached_weight(num_classes: int, scope: str) -> None:
    logits, targets = torch.randn(20, num_classes, dtype=torch.float64), torch.randint(num_classes, (20,))
    leaf = logits.clone().requires_grad_()
    p = leaf.softmax(-1)[:, 1:]
    u = p * (1 - p).detach() ** 0.3
    y = torch.nn.functional.one_hot(targets, num_classes)[:, 1:]
    uy, v = u * y, u**2
    if scope == "batch":
        uy, v, y = uy.sum(0), v.sum(0), y.sum(0)
    (1 - (2 * uy + 1) / (v + y + 1)).mean().backward()
    written = {"scope": scope, "gamma": 1, "decay": 0.3, "decay_gradient": "stopped"}
    loss = SelfAdjustingDiceLoss(SelfAdjustingDiceConfig.model_validate(written), background=0)
    torch.testing.assert_close(slope(loss, logits, targets), leaf.grad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("num_classes", [2, 3])
def test_the_published_form_gives_nan_where_ours_is_finite(dtype: torch.dtype, num_classes: int) -> None:
    gap = {torch.float32: 18.1, torch.float16: 9.5, torch.bfloat16: 7.5}[dtype]
    logits = torch.zeros(4, num_classes, dtype=dtype)
    logits[:, 1] = gap
    targets = torch.tensor([0, 1, 1, 0])
    published = logits.clone().requires_grad_()
    p = published.softmax(-1)[:, 1]
    ((1 - p) ** 0.01 * p).sum().backward()
    assert published.grad is not None
    ours = slope(SelfAdjustingDiceLoss(), logits, targets)
    assert published.grad.isnan().any()
    assert ours.isfinite().all()


@pytest.mark.parametrize("gap", [5.0, 17.0, 60.0, 90.0, 300.0])
def test_it_is_accurate_where_one_minus_p_rounds_to_zero(gap: float) -> None:
    """The gradient in fp32 equals that in fp64, also where 1 - p underflows."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(6, 5, dtype=torch.float64, generator=generator)
    logits[:, 2] += gap
    targets = torch.tensor([2, 2, 0, 1, 2, 4])
    for decay in (0.01, 0.5, 1.0):
        loss = SelfAdjustingDiceLoss(SelfAdjustingDiceConfig(decay=decay, gamma=1))
        exact = slope(loss, logits, targets)
        torch.testing.assert_close(slope(loss, logits.float(), targets).double(), exact, rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("scope", ["batch", "example"])
@pytest.mark.parametrize("num_classes", [1, 2, 4])
@pytest.mark.parametrize("logit", [-45.0, -50.0, -60.0, -110.0, -1e4])
def test_without_smoothing_a_class_without_items_has_loss_one_and_no_gradient(
    logit: float, num_classes: int, scope: str
) -> None:
    """p^2 of a logit of -50 is denormal in fp32, so its reciprocal is infinite; of -60 it is 0, as if 0/0."""
    config = DiceConfig.model_validate({"scope": scope, "gamma": 0})
    loss = DiceLoss(config, "sigmoid" if num_classes == 1 else "softmax", background=0)
    row = [logit] if num_classes == 1 else [0.0, *[logit] * (num_classes - 1)]
    leaf = torch.tensor([row] * 3).squeeze(1).requires_grad_()
    value = loss(leaf, torch.tensor([0, 0, 0]))
    (grad,) = torch.autograd.grad(65536 * value, leaf)
    assert value == 1
    assert not grad.any()


def test_precision_alone_is_right_where_probabilities_are_tiny() -> None:
    """With alpha 1 and no smoothing, the coefficient is a ratio of sums that both tend to 0."""
    loss = TverskyLoss(TverskyConfig(alpha=1, gamma=0))
    logits, targets = torch.tensor([[0.0, -80.0], [0, -81], [0, -82]]), torch.tensor([1, 0, 1])
    exact = loss(logits.double(), targets)
    torch.testing.assert_close(loss(logits, targets).double(), exact, rtol=1e-3, atol=0)
    torch.testing.assert_close(
        slope(loss, logits, targets).double(), slope(loss, logits.double(), targets), rtol=1e-3, atol=0
    )
    assert slope(loss, logits - torch.tensor([0, 15.0]), targets).isfinite().all()


def test_sums_over_many_items_are_formed_in_fp32() -> None:
    logits = torch.zeros(100_000, dtype=torch.float16)
    assert DiceLoss(link="sigmoid")(logits, torch.ones(100_000, dtype=torch.long)).item() == pytest.approx(
        0.2, rel=1e-4
    )


def test_a_mask_does_not_grow_with_the_square_of_the_items() -> None:
    """Published: a mask of shape [N, 1] broadcast against N scores to N x N numbers, and masked nothing."""
    logits, targets = torch.randn(200_000, 1), torch.zeros(200_000, 1, dtype=torch.long)
    mask = torch.zeros(200_000, 1, dtype=torch.bool)
    assert DiceLoss(link="sigmoid")(logits, targets, mask) == 0


def test_one_scope_at_a_time() -> None:
    """Published for several classes: numerators of single items over a denominator of the whole set."""
    logits, targets = torch.zeros(4, 3), torch.tensor([0, 1, 2, 0])
    batch = DiceLoss(DiceConfig(gamma=0, denominator="linear"), background=0)(logits, targets)
    assert batch.item() == pytest.approx(1 - (2 / 3) / (4 / 3 + 1))


def test_classes_are_on_the_last_axis() -> None:
    logits = torch.full((2, 3, 4), -20.0)
    targets = torch.tensor([[0, 1, 2], [3, 0, 1]])
    logits.scatter_(-1, targets[..., None], 20.0)
    assert DiceLoss(background=0)(logits, targets).item() == pytest.approx(0, abs=1e-6)


def test_a_confident_positive_of_two_classes_by_one_logit_and_by_two() -> None:
    margins, targets = torch.randn(20), torch.randint(2, (20,))
    two = torch.stack((torch.zeros(20), margins), 1)
    for config in (DiceConfig(), DiceConfig(scope="example", classes="all")):
        torch.testing.assert_close(DiceLoss(config)(two, targets), DiceLoss(config, "sigmoid")(margins, targets))
    assert math.isclose(
        DiceLoss(DiceConfig(classes="all"))(two, targets),
        DiceLoss(DiceConfig(classes="all"))(two.flip(1), 1 - targets),
        rel_tol=1e-6,
    )
