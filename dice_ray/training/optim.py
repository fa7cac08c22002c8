"""The optimizer, and the learning rate as a function of the step.

The rate is computed from the step rather than held by a scheduler of torch or transformers: nothing has to be stored
in a checkpoint, and a resumed run continues with exactly the same rates. After the warm-up the factors are those of
transformers, and `one_cycle` those of torch. The warm-up differs: transformers' first step has rate 0 and is wasted.
"""

from __future__ import annotations

import math
from typing import Any

from torch import nn
from torch.optim import AdamW, Optimizer

from dice_ray.models.layers import depth, num_layers
from dice_ray.training.settings import TrainingConfig


def build_optimizer(model: nn.Module, config: TrainingConfig) -> AdamW:
    """AdamW without weight decay on biases and norms (one-dimensional parameters), with layer-wise learning rates.

    Frozen parameters are not among its parameters.
    """
    top = num_layers(model.get_submodule("encoder")) + 1
    groups: dict[tuple[int, bool], dict[str, Any]] = {}
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        layer, is_decayed = depth(name) if name.startswith("encoder.") else None, parameter.ndim > 1
        below = 0 if layer is None else top - layer
        decay = config.weight_decay if is_decayed else 0.0
        group = {"params": [], "weight_decay": decay, "share": config.layer_decay**below}
        groups.setdefault((below if config.layer_decay < 1 else 0, is_decayed), group)["params"].append(parameter)
    return AdamW(list(groups.values()), lr=config.lr, eps=1e-6, fused=True)


def set_rate(optimizer: Optimizer, config: TrainingConfig, step: int, num_steps: int) -> float:
    """Set the learning rate of every group for a step; returns that of the heads, the highest."""
    lr = config.lr * _factor(config, step, num_steps)
    for group in optimizer.param_groups:
        group["lr"] = lr * group["share"]
    return lr


def _factor(config: TrainingConfig, step: int, num_steps: int) -> float:
    """The learning rate of a step, counted from 0, as a share of the highest one.

    It rises over the first `warmup` share of the steps. The falling schedules would reach 0 one step after the last.
    """
    if config.schedule == "one_cycle":
        return _one_cycle(step, config.warmup * num_steps - 1, num_steps - 1)
    num_warmup = math.ceil(config.warmup * num_steps)
    if step < num_warmup:
        return (step + 1) / (num_warmup + 1)
    remaining = max(0.0, (num_steps - step) / max(1, num_steps - num_warmup))
    return {
        "constant": 1.0,
        "linear": remaining,
        "polynomial": remaining**2,
        "cosine": (1 - math.cos(math.pi * remaining)) / 2,
    }[config.schedule]


def _one_cycle(step: int, top: float, last: int) -> float:
    """Half a cosine up to 1 at step `top`, and another one down to nearly 0 at the last step (Smith 2017).

    The first and the last factor are the defaults of torch's OneCycleLR.
    """
    if step <= top or last == 0:  # a run of one step takes it at the highest rate
        start, end, share = 1 / 25, 1.0, step / top if top > 0 else 1.0
    else:
        start, end, share = 1.0, 1 / 25e4, (step - top) / (last - top)
    return end + (start - end) / 2 * (1 + math.cos(math.pi * share))
