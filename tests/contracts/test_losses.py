"""The contract of every registered loss, on every kind of term that it supports."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from dice_ray.losses import LossConfig
from dice_ray.losses.base import Loss, LossBranch
from dice_ray.losses.items import bad_input
from dice_ray.losses.mining import MiningConfig
from dice_ray.losses.reduction import step_loss
from dice_ray.settings import branches_of
from dice_ray.terms import TermFacts
from tests.contracts.losses import CASES, draw, item_mask
from tests.losses.reference import REFERENCES, reference

MINABLE = {name: case for name, case in CASES.items() if case[0].can_mine(case[1]) and not case[1].labels}
DIFFERENTIATED = {name: case for name, case in CASES.items() if getattr(case[0], "decay_gradient", "full") == "full"}
"""Without the configurations whose gradient deliberately is not that of the value."""
ADDITIVE = {name: case for name, case in CASES.items() if case[0].name != "listwise"}
"""Without the loss whose statistics are slots for the items of each worker; test_reduction.py has it on two workers."""
every_case = pytest.mark.parametrize(("config", "facts"), CASES.values(), ids=CASES)
every_minable_case = pytest.mark.parametrize(("config", "facts"), MINABLE.values(), ids=MINABLE)


def value_and_grad(loss: Loss, logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    leaf = logits.clone().requires_grad_()
    value = loss(leaf, targets, mask)
    (grad,) = torch.autograd.grad(value, leaf)
    return value.detach(), grad


def expected(
    config: LossBranch, facts: TermFacts, logits: Tensor, targets: Tensor, mask: Tensor | None = None, ratio: float = 0
) -> float:
    return reference(config, facts, logits.numpy(), targets.numpy(), None if mask is None else mask.numpy(), ratio)


def test_every_registered_loss_is_in_the_suite() -> None:
    assert {config.name for config, _ in CASES.values()} == set(branches_of(LossConfig)) == set(REFERENCES)


@every_case
def test_it_equals_the_formula(config: LossBranch, facts: TermFacts) -> None:
    loss = config.build(facts)
    logits, targets = draw(facts, 40)
    mask = item_mask(facts, torch.arange(40) % 5 != 0, logits, targets)
    assert loss(logits, targets).item() == pytest.approx(expected(config, facts, logits, targets), rel=1e-6)
    assert loss(logits, targets, mask).item() == pytest.approx(expected(config, facts, logits, targets, mask), rel=1e-6)
    assert loss(logits.float(), targets).item() == pytest.approx(loss(logits, targets).item(), rel=1e-4)


@pytest.mark.parametrize(("config", "facts"), DIFFERENTIATED.values(), ids=DIFFERENTIATED)
def test_its_gradient_is_that_of_its_value(config: LossBranch, facts: TermFacts) -> None:
    loss = config.build(facts).double()
    logits, targets = draw(facts, 6)
    mask = item_mask(facts, torch.arange(6) != 1, logits, targets)
    assert torch.autograd.gradcheck(lambda z: loss(z, targets, mask), logits.requires_grad_())


@every_case
def test_masked_rows_change_nothing(config: LossBranch, facts: TermFacts) -> None:
    loss = config.build(facts)
    logits, targets = draw(facts, 12)
    value, grad = value_and_grad(loss, logits, targets)
    garbage = torch.full_like(logits[:3], math.nan)
    longer = torch.cat((logits[:5], garbage, logits[5:]))
    ignored = torch.cat((targets[:5], torch.full_like(targets[:3], -100), targets[5:]))
    kept = ignored != -100
    mask = kept if facts.link != "position" else kept[:, None].expand_as(longer)
    for case in ((ignored, None), (ignored.clamp(min=0), mask)):
        same_value, same_grad = value_and_grad(loss, longer, *case)
        torch.testing.assert_close(same_value, value)
        torch.testing.assert_close(same_grad[kept].reshape(grad.shape), grad)
        assert not same_grad[~kept].any()


@every_case
def test_the_order_of_items_does_not_matter(config: LossBranch, facts: TermFacts) -> None:
    loss = config.build(facts)
    logits, targets = draw(facts, 15)
    order = torch.randperm(15, generator=torch.Generator().manual_seed(1))
    value, grad = value_and_grad(loss, logits, targets)
    same_value, same_grad = value_and_grad(loss, logits[order], targets[order])
    torch.testing.assert_close(same_value, value)
    torch.testing.assert_close(same_grad, grad[order])


@every_case
def test_degenerate_steps_are_finite_and_correct(config: LossBranch, facts: TermFacts) -> None:
    loss = config.build(facts)
    logits, targets = draw(facts, 8)
    steps = {
        "an empty class": (logits, targets.clamp(min=1)),
        "all masked": (logits, torch.full_like(targets, -100)),
        "all of the last class": (logits, torch.full_like(targets, len(facts.classes) - 1)),
        "all of the first class": (logits, torch.zeros_like(targets)),
        "N = 0": (logits[:0], targets[:0]),
        "N = 1": (logits[:1], targets[:1]),
    }
    for name, (odd_logits, odd_targets) in steps.items():
        value, grad = value_and_grad(loss, odd_logits, odd_targets)
        want = expected(config, facts, odd_logits, odd_targets)
        assert value.item() == pytest.approx(want, rel=1e-5, abs=1e-7), name
        assert grad.isfinite().all(), name
        if name in ("all masked", "N = 0"):
            assert value == 0, name
            assert not grad.any(), name


@every_case
def test_it_is_finite_to_a_logit_of_ten_thousand(config: LossBranch, facts: TermFacts) -> None:
    loss = config.build(facts)
    logits, targets = draw(facts, 24)
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for scale in (6.25, 8.4, 16.7, 17.4, 90.0, 104.0, 1e4):
            value, grad = value_and_grad(loss, (logits.sign() * scale).to(dtype), targets)
            assert value.dtype == torch.float32
            assert grad.dtype == dtype
            assert value.isfinite(), (dtype, scale)
            assert grad.isfinite().all(), (dtype, scale)
            assert grad.abs().max() < 10, (dtype, scale)


@every_case
def test_single_precision_equals_double_at_any_gap_between_logits(config: LossBranch, facts: TermFacts) -> None:
    """Probabilities that underflow, squared ones from a logit of -50, change neither value nor gradient."""
    loss = config.build(facts)
    logits, targets = draw(facts, 8)
    rare = torch.zeros_like(targets)
    for scale in (50.0, 100.0, 300.0):
        for case in (targets, rare):
            single = (logits.sign() * scale + logits).float()
            value, grad = value_and_grad(loss, single, case)
            exact, exact_grad = value_and_grad(config.build(facts).double(), single.double(), case)
            want = expected(config, facts, single.double(), case)
            assert exact.item() == pytest.approx(want, rel=1e-6, abs=1e-12), scale
            assert value.item() == pytest.approx(want, rel=1e-4, abs=1e-6), scale
            torch.testing.assert_close(grad, exact_grad.float(), rtol=1e-4, atol=1e-6, msg=f"logits of {scale:g}")


@pytest.mark.parametrize(("config", "facts"), ADDITIVE.values(), ids=ADDITIVE)
def test_shards_of_a_step_add_up(config: LossBranch, facts: TermFacts) -> None:
    loss = config.build(facts)
    logits, targets = draw(facts, 20)
    targets[13] = -100
    value, grad = value_and_grad(loss, logits, targets)
    bounds = [(0, 3), (3, 3), (3, 14), (14, 20)]
    shards = [logits[first:last].clone().requires_grad_() for first, last in bounds]
    parts = [loss.statistics(shard, targets[first:last]) for shard, (first, last) in zip(shards, bounds, strict=True)]
    total = torch.stack(parts).sum(0).detach()
    if loss.is_item_mean:
        num_items = torch.stack([loss.num_items(targets[first:last]) for first, last in bounds]).sum()
        losses = [step_loss(loss, part, num_items=num_items) for part in parts]
        torch.testing.assert_close(torch.stack(losses).sum().detach(), value)
    else:
        losses = [loss.value(part + (total - part).detach()) for part in parts]
    torch.testing.assert_close(loss.value(total), value)
    grads = torch.autograd.grad(losses, shards)
    torch.testing.assert_close(torch.cat(grads), grad)


@every_case
def test_leading_axes_are_flattened(config: LossBranch, facts: TermFacts) -> None:
    loss = config.build(facts)
    logits, targets = draw(facts, 12)
    folded = logits.reshape(3, 4, *logits.shape[1:])
    assert loss(folded, targets.reshape(3, 4, *targets.shape[1:])) == loss(logits, targets)


@every_case
def test_a_logit_that_is_not_finite_is_reported(config: LossBranch, facts: TermFacts) -> None:
    loss = config.build(facts)
    logits, targets = draw(facts, 6)
    ignored = targets.index_fill(0, torch.tensor([4]), -100)
    assert bad_input(facts.link, logits, targets) is None
    for bad in (math.nan, math.inf, -math.inf):
        logits[4 if facts.link == "sigmoid" else (4, 1)] = bad
        assert loss(logits, targets).isnan()
        row = (4, 0) if facts.labels else 4
        assert f"got {bad} in row {row}" in str(bad_input(facts.link, logits, targets))
        assert loss(logits, ignored).isfinite()
        assert bad_input(facts.link, logits, ignored) is None


@every_minable_case
def test_mining_keeps_the_items_of_the_reference(config: LossBranch, facts: TermFacts) -> None:
    logits, targets = draw(facts, 30)
    targets[targets >= 0] = targets.clamp(max=len(facts.classes) - 1) * (torch.arange(30) % 3 == 0)
    for ratio in (0.3, 1.0, 1.5, 1000.0):
        loss = MiningConfig(ratio=ratio).wrap(config.build(facts))
        mask = torch.arange(30) % 7 != 0
        want = expected(config, facts, logits, targets, mask, ratio)
        value, grad = value_and_grad(loss, logits, targets, mask)
        assert value.item() == pytest.approx(want, rel=1e-6)
        assert grad.isfinite().all()


@every_minable_case
def test_mining_that_keeps_all_changes_nothing(config: LossBranch, facts: TermFacts) -> None:
    loss = config.build(facts)
    logits, targets = draw(facts, 30)
    assert MiningConfig().wrap(loss) is loss
    for case in (targets, torch.zeros_like(targets), torch.full_like(targets, -100)):
        value, grad = value_and_grad(loss, logits, case)
        same_value, same_grad = value_and_grad(MiningConfig(ratio=1000).wrap(loss), logits, case)
        torch.testing.assert_close(same_value, value)
        torch.testing.assert_close(same_grad, grad)


@settings(max_examples=60)
@given(
    name=st.sampled_from(sorted(CASES)),
    num_items=st.integers(0, 9),
    scale=st.sampled_from([0.0, 0.5, 5.0, 20.0]),
    seed=st.integers(0, 1000),
    ignored=st.floats(0, 1),
)
def test_any_step_equals_the_formula(name: str, num_items: int, scale: float, seed: int, ignored: float) -> None:
    config, facts = CASES[name]
    logits, targets = draw(facts, num_items, seed=seed, scale=scale)
    targets[torch.from_numpy(np.random.default_rng(seed).random(num_items) < ignored)] = -100
    value, grad = value_and_grad(config.build(facts), logits, targets)
    assert value.item() == pytest.approx(expected(config, facts, logits, targets), rel=1e-5, abs=1e-6)
    assert grad.isfinite().all()


@every_case
def test_autocast_changes_nothing(config: LossBranch, facts: TermFacts) -> None:
    loss = config.build(facts)
    logits, targets = draw(facts, 16)
    value, grad = value_and_grad(loss, logits.float(), targets)
    with torch.autocast("cpu", torch.bfloat16):
        same_value, same_grad = value_and_grad(loss, logits.float(), targets)
    assert same_value == value
    assert torch.equal(same_grad, grad)
