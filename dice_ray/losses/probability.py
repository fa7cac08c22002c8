"""Probabilities and log probabilities for the losses, with closed-form gradients in the logit and without one-hot.

Invariant: everything is computed in fp32 (fp64 for fp64 logits), and stays finite for logits up to 1e4 in magnitude,
whatever the type of the logits. A log probability is z_t - max - log(sum), never log(p): p underflows to 0. The
gradient is written in the logit, where it is bounded by 1; through p it would be the product 1/p x p(1-p), that is inf
x 0. The result does not depend on autocast either: custom functions and explicit casts fix the types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from dice_ray.losses.items import Items


def target_log_prob(items: Items, smoothing: float = 0.0) -> Tensor:
    """`log_p_N` of each item's target class; smoothed, (1 - smoothing) log p_t + smoothing mean_j log p_j."""
    if items.is_two_class:
        margin_N = torch.where(items.targets == 1, items.logits, -items.logits)
        log_p_N = F.logsigmoid(margin_N)
        # The log odds of two classes are their margin.
        return log_p_N - smoothing / 2 * margin_N if smoothing else log_p_N
    return _target_log_prob(items.logits, items.targets, smoothing)


def softmax(logits_NC: Tensor) -> Tensor:
    """`p_NC` in fp32, or fp64 for fp64 logits."""
    if logits_NC.is_cpu and logits_NC.shape[1] < 16:
        e_NC, sum_N1, _ = _exponentials(logits_NC)
        return e_NC.div_(sum_N1)
    return logits_NC.softmax(-1, torch.promote_types(logits_NC.dtype, torch.float32))


def softmax_and_log_prob(logits_NC: Tensor, targets_N1: Tensor) -> tuple[Tensor, Tensor]:
    """`p_NC`, and `log_p_N1` of the targets' classes, exact even where p underflows to 0."""
    e_NC, sum_N1, max_N1 = _exponentials(logits_NC)
    log_p_N1 = logits_NC.gather(1, targets_N1).to(e_NC.dtype) - max_N1 - sum_N1.log()
    return e_NC.div_(sum_N1), log_p_N1


def _exponentials(logits_NC: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`e_NC` = exp(z - max), its row sum `sum_N1` and the row maximum `max_N1`: p = e / sum.

    Written out, since torch's softmax on the CPU takes 7 times as long with fewer classes than a vector register holds,
    and since backward can fold the division by the sum into another per-row operation.
    """
    logits_NC = logits_NC.to(torch.promote_types(logits_NC.dtype, torch.float32))
    max_N1 = logits_NC.amax(-1, keepdim=True)
    e_NC = (logits_NC - max_N1).exp_()
    return e_NC, e_NC.sum(-1, keepdim=True), max_N1


class _TargetLogProb(torch.autograd.Function):
    """log p_t = z_t - max - log(sum); d/dz_j = [j = t] - p_j. Smoothed, z_t and [j = t] are weighted means with those
    of all classes.
    """

    @staticmethod
    def forward(ctx: Any, logits_NC: Tensor, targets_N: Tensor, smoothing: float) -> Tensor:
        e_NC, sum_N1, max_N1 = _exponentials(logits_NC)
        targets_N1 = targets_N[:, None]
        ctx.dtype, ctx.smoothing = logits_NC.dtype, smoothing
        ctx.save_for_backward(e_NC, sum_N1, targets_N1)
        z_N1 = logits_NC.gather(1, targets_N1).to(e_NC.dtype)
        if smoothing:
            z_N1 = torch.lerp(z_N1, logits_NC.mean(-1, keepdim=True, dtype=e_NC.dtype), smoothing)
        return (z_N1 - max_N1 - sum_N1.log())[:, 0]

    @staticmethod
    def backward(ctx: Any, grad_N: Tensor) -> tuple[Tensor, None, None]:
        e_NC, sum_N1, targets_N1 = ctx.saved_tensors
        grad_N1 = grad_N[:, None]
        grad_NC = e_NC * (-grad_N1 / sum_N1)
        if ctx.smoothing:
            grad_NC += grad_N1 * (ctx.smoothing / grad_NC.shape[1])
        grad_NC.scatter_add_(1, targets_N1, grad_N1 * (1 - ctx.smoothing))
        return grad_NC.to(ctx.dtype), None, None


_target_log_prob: Callable[[Tensor, Tensor, float], Tensor] = _TargetLogProb.apply
