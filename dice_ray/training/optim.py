"""The optimizer and its schedule, as functions of the step."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR

from dice_ray.training.settings import TrainingConfig


def build_optimizer(model: nn.Module, config: TrainingConfig) -> AdamW:
    """AdamW; biases and norms, the parameters of one axis, are not decayed."""
    decayed = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    others = [parameter for parameter in model.parameters() if parameter.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": config.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return AdamW(groups, lr=config.lr, eps=1e-6)


def build_schedule(optimizer: torch.optim.Optimizer, config: TrainingConfig, num_steps: int) -> LambdaLR:
    """Linear warm-up over the first `warmup` share of the steps, then down to zero linearly, or constant."""
    num_warmup = math.ceil(config.warmup * num_steps)

    def factor(step: int) -> float:
        if step < num_warmup:
            return (step + 1) / (num_warmup + 1)
        if config.schedule == "constant":
            return 1.0
        return max(0.0, (num_steps - step) / max(1, num_steps - num_warmup))

    return LambdaLR(optimizer, factor)
