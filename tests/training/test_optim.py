"""The optimizer's groups, and the learning rates compared with those of torch and transformers."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.optim import SGD
from torch.optim.lr_scheduler import LRScheduler, OneCycleLR

from dice_ray.training.optim import _factor, build_optimizer, set_rate
from dice_ray.training.settings import TrainingConfig

NUM_STEPS = 40


def factors(**settings: object) -> list[float]:
    config = TrainingConfig.model_validate(settings)
    return [_factor(config, step, NUM_STEPS) for step in range(NUM_STEPS)]


@pytest.mark.parametrize("schedule", ["linear", "cosine", "polynomial", "constant"])
def test_the_rate_rises_to_the_highest_and_falls_to_nearly_0(schedule: str) -> None:
    found = factors(schedule=schedule, warmup=0.25)
    assert found[:10] == pytest.approx([(step + 1) / 11 for step in range(10)])
    assert found[10] == max(found) == 1
    assert found == sorted(found[:10]) + sorted(found[10:], reverse=True)
    last = {"linear": 1 / 30, "polynomial": 1 / 900, "cosine": (1 - math.cos(math.pi / 30)) / 2, "constant": 1}
    assert found[-1] == pytest.approx(last[schedule])
    assert factors(schedule=schedule, warmup=0)[0] == 1


@pytest.mark.parametrize("schedule", ["linear", "cosine", "polynomial"])
def test_after_the_warm_up_the_rate_is_that_of_transformers(schedule: str) -> None:
    from transformers import (
        get_cosine_schedule_with_warmup,
        get_linear_schedule_with_warmup,
        get_polynomial_decay_schedule_with_warmup,
    )

    optimizer = SGD([nn.Parameter(torch.zeros(1))], lr=1)
    theirs: dict[str, LRScheduler] = {
        "linear": get_linear_schedule_with_warmup(optimizer, 10, NUM_STEPS),
        "cosine": get_cosine_schedule_with_warmup(optimizer, 10, NUM_STEPS),
        "polynomial": get_polynomial_decay_schedule_with_warmup(optimizer, 10, NUM_STEPS, lr_end=0, power=2),
    }
    expected = []
    for _ in range(NUM_STEPS):
        expected.append(theirs[schedule].get_last_lr()[0])
        optimizer.step()
        theirs[schedule].step()
    assert factors(schedule=schedule, warmup=0.25)[10:] == pytest.approx(expected[10:])


@pytest.mark.parametrize("warmup", [0.3, 0.05])
def test_one_cycle_is_that_of_torch(warmup: float) -> None:
    optimizer = SGD([nn.Parameter(torch.zeros(1))], lr=1)
    theirs = OneCycleLR(optimizer, max_lr=1, total_steps=NUM_STEPS, pct_start=warmup, cycle_momentum=False)
    expected = []
    for _ in range(NUM_STEPS):
        expected.append(theirs.get_last_lr()[0])
        optimizer.step()
        if len(expected) < NUM_STEPS:
            theirs.step()
    assert factors(schedule="one_cycle", warmup=warmup) == pytest.approx(expected)


def test_a_run_of_one_step_takes_it_at_the_highest_rate() -> None:
    for schedule in ("linear", "cosine", "polynomial", "one_cycle", "constant"):
        config = TrainingConfig.model_validate({"schedule": schedule, "warmup": 0})
        assert _factor(config, 0, 1) == 1
    assert _factor(TrainingConfig(schedule="one_cycle"), 0, 1) == 1, "it trained at 4e-6 of the rate"


def model() -> nn.Module:
    """Names as encoders have them: embeddings, two layers, a norm above them, a head."""
    layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
    inner = nn.ModuleDict({"embeddings": nn.Embedding(5, 4), "layer": layers, "final_norm": nn.LayerNorm(4)})
    return nn.ModuleDict({"encoder": inner, "heads": nn.ModuleDict({"label": nn.Linear(4, 2)})})


def test_lower_layers_learn_at_a_lower_rate() -> None:
    net, config = model(), TrainingConfig(lr=1, layer_decay=0.5, schedule="constant", warmup=0)
    optimizer = build_optimizer(net, config)
    assert set_rate(optimizer, config, 0, NUM_STEPS) == 1
    rates = {id(each): group["lr"] for group in optimizer.param_groups for each in group["params"]}
    found = {name: rates[id(parameter)] for name, parameter in net.named_parameters()}
    assert found == {
        "encoder.embeddings.weight": 0.125,
        "encoder.layer.0.weight": 0.25,
        "encoder.layer.0.bias": 0.25,
        "encoder.layer.1.weight": 0.5,
        "encoder.layer.1.bias": 0.5,
        "encoder.final_norm.weight": 1,
        "encoder.final_norm.bias": 1,
        "heads.label.weight": 1,
        "heads.label.bias": 1,
    }


def test_biases_and_norms_are_not_decayed() -> None:
    net = model()
    groups = build_optimizer(net, TrainingConfig(weight_decay=0.1)).param_groups
    assert len(groups) == 2
    decays = {id(each): group["weight_decay"] for group in groups for each in group["params"]}
    assert {name: decays[id(each)] for name, each in net.named_parameters()} == {
        name: 0.1 if name.endswith("weight") and "norm" not in name else 0.0 for name, _ in net.named_parameters()
    }
