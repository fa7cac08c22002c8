"""The items of a term as losses use them: shapes checked, flattened, masked; and the error for invalid ones.

Invariant: a masked item changes neither the value nor any gradient, even if its logit is NaN or infinite; an invalid
logit or target that counts always makes the loss NaN. Both must hold without reading a tensor back from an accelerator,
which would stall every step. So masked logits are replaced by 0 before any arithmetic (multiplying by a 0/1 mask keeps
NaN: NaN x 0 is NaN), and validity travels in the result: `nan_if_bad`, added to the statistics, is 0 or NaN. Only when
the training loop sees a loss that is not finite does `bad_input` search the tensors for the row to report.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dice_ray.errors import LossInputError

if TYPE_CHECKING:
    from dice_ray.terms import Link

_IGNORE_INDEX = -100


@dataclass(frozen=True)
class Items:
    """N flattened items.

    Attributes:
        logits: `logits_NC`, zero for masked items; for two classes `margin_N`, whose sigmoid is p of class 1.
        targets: `targets_N`, 0 for masked items.
        valid: `valid_N`, true where an item counts; None means all do.
        nan_if_bad: NaN if a logit that counts is not finite or a target is out of range, else 0.
        kept: `kept_NC`, 1 where mining keeps an item for a class, else 0; None means mining is off.
    """

    logits: Tensor
    targets: Tensor
    valid: Tensor | None
    nan_if_bad: Tensor
    kept: Tensor | None = None

    @property
    def is_two_class(self) -> bool:
        return self.logits.ndim == 1

    @property
    def signs(self) -> Tensor:
        """`sign_N` of two classes: 1 for class 1, -1 for class 0. A product with it takes a tenth of `torch.where`."""
        return self.targets.to(self.logits.dtype).mul_(2).sub_(1)


def flatten_items(link: Link, logits: Tensor, targets: Tensor, mask: Tensor | None) -> Items:
    """Check the shapes of a term's tensors, flatten them, and set masked items to 0.

    Raises:
        LossInputError: The shapes do not match, or, on the CPU and not compiled, a target is out of range.
    """
    _check_shapes(link, logits, targets, mask)
    num_classes = 2 if link == "sigmoid" else logits.shape[-1]
    flat = logits.reshape(-1) if link == "sigmoid" else logits.reshape(-1, num_classes)
    valid_N = valid_items(link, targets, mask)
    targets_N = targets.reshape(-1).long()
    if valid_N is not None:
        targets_N = targets_N.masked_fill(~valid_N, 0)
    targets_N, bad_target = _in_range(targets_N, num_classes)
    if link == "softmax" and num_classes == 2:
        flat = _margin(flat)
    if flat.ndim == 1:
        flat = flat.to(torch.promote_types(flat.dtype, torch.float32))
    masked = None if valid_N is None else ~valid_N if flat.ndim == 1 else ~valid_N[:, None]
    if masked is not None:
        flat = flat.masked_fill(masked, 0)
    checked = flat.detach()
    if link == "position" and mask is not None:
        assert masked is not None
        forbidden_NL = ~mask.reshape(-1, num_classes).bool() & ~masked
        checked = checked.masked_fill(forbidden_NL, 0)
        flat = flat.masked_fill(forbidden_NL, -math.inf)
        bad_target = bad_target | forbidden_NL.gather(1, targets_N[:, None]).any()
    # 0 x finite is 0, 0 x NaN and 0 x infinity are NaN. The sum is in fp32, since one in fp16 overflows.
    nan_if_bad = checked.sum(dtype=torch.promote_types(flat.dtype, torch.float32)) * 0
    return Items(flat, targets_N, valid_N, nan_if_bad.masked_fill(bad_target, math.nan))


def is_readable(tensor: Tensor) -> bool:
    """Whether a value can be read without a stall: not on an accelerator, nor where torch.compile traces the loss."""
    return tensor.is_cpu and not torch.compiler.is_compiling()


def valid_items(link: Link, targets: Tensor, mask: Tensor | None = None) -> Tensor | None:
    """`valid_N`, true where an item counts; None if all do, which is checked on the CPU only."""
    if mask is None and is_readable(targets) and (not targets.numel() or bool(targets.min() >= 0)):
        return None
    valid_N = targets.reshape(-1) != _IGNORE_INDEX
    if mask is not None:
        is_kept = mask.bool().any(-1) if link == "position" else mask.bool()
        valid_N = valid_N & is_kept.reshape(-1)
    return valid_N


def bad_input(link: Link, logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> LossInputError | None:
    """The error for the first row with an invalid logit or target; None if every row is valid.

    It synchronises with the device: call it only after a loss was not finite.
    """
    num_classes = 2 if link == "sigmoid" else logits.shape[-1]
    logits_NC = logits.detach().reshape(targets.numel(), -1)
    counts_NC = torch.ones_like(logits_NC, dtype=torch.bool)
    if (valid_N := valid_items(link, targets, mask)) is not None:
        counts_NC &= valid_N[:, None]
    if link == "position" and mask is not None:
        counts_NC &= mask.reshape(logits_NC.shape).bool()
    bad_NC = ~logits_NC.isfinite() & counts_NC
    if bad_NC.any():
        row, column = (int(index) for index in bad_NC.nonzero()[0])
        value, where = logits_NC[row, column].item(), _where(row, targets.shape)
        return LossInputError(f"Logits must be finite, got {value} in {where}, column {column}.")
    targets_N = targets.reshape(-1)
    bad_N = (targets_N < 0) | (targets_N >= num_classes)
    if link == "position":
        bad_N |= ~counts_NC.gather(1, targets_N.clamp(0, num_classes - 1)[:, None].long())[:, 0]
    bad_N &= counts_NC.any(-1)
    if bad_N.any():
        row = int(bad_N.nonzero()[0])
        return LossInputError(
            f"Targets must be {'an allowed position of' if link == 'position' else 'in'} 0 to {num_classes - 1} "
            f"(or {_IGNORE_INDEX} to be ignored), got {int(targets_N[row])} in {_where(row, targets.shape)}."
        )
    return None


def _in_range(targets_N: Tensor, num_classes: int) -> tuple[Tensor, Tensor]:
    """The targets clamped to valid indices, and whether one was out of range; on the CPU that raises at once."""
    if targets_N.numel() == 0:
        return targets_N, targets_N.new_zeros((), dtype=torch.bool)
    low, high = targets_N.aminmax()
    bad = (low < 0) | (high >= num_classes)
    if not is_readable(targets_N):
        return targets_N.clamp(0, num_classes - 1), bad
    if bad:
        value = int(low if low < 0 else high)
        raise LossInputError(
            f"Targets must be in 0 to {num_classes - 1} for {num_classes} classes (or {_IGNORE_INDEX} to be ignored), "
            f"got {value} in row {int((targets_N == value).nonzero()[0])}."
        )
    return targets_N, bad


def _check_shapes(link: Link, logits: Tensor, targets: Tensor, mask: Tensor | None) -> None:
    items = logits.shape if link == "sigmoid" else logits.shape[:-1]
    letters = {"softmax": "logits_NC", "sigmoid": "logits_N, one logit per item", "position": "logits_NL"}[link]
    if link != "sigmoid" and (logits.ndim < 1 or logits.shape[-1] < 2):
        raise LossInputError(
            f"{letters} must have two or more entries on the last axis, got logits of {tuple(logits.shape)}."
        )
    if targets.shape != items:
        raise LossInputError(
            f"Targets must have the shape {tuple(items)} for logits of {tuple(logits.shape)} ({letters}), "
            f"got {tuple(targets.shape)}."
        )
    expected = logits.shape if link == "position" else items
    if mask is not None and mask.shape != expected:
        raise LossInputError(f"The mask must have the shape {tuple(expected)} ({letters}), got {tuple(mask.shape)}.")
    if targets.is_floating_point() or targets.dtype is torch.bool:
        raise LossInputError(f"Targets must be integers, got {targets.dtype}.")


def _where(row: int, shape: torch.Size) -> str:
    if len(shape) < 2:
        return f"row {row}"
    return f"row {tuple(int(index) for index in torch.unravel_index(torch.tensor(row), shape))}"


class _Margin(torch.autograd.Function):
    """`margin_N` of `logits_N2`; backward fills one gradient, where slicing would fill two and add them."""

    @staticmethod
    def forward(ctx: Any, logits_N2: Tensor) -> Tensor:
        ctx.dtype = logits_N2.dtype
        logits_N2 = logits_N2.to(torch.promote_types(logits_N2.dtype, torch.float32))
        return logits_N2[:, 1] - logits_N2[:, 0]

    @staticmethod
    def backward(ctx: Any, grad_N: Tensor) -> Tensor:
        return torch.stack((-grad_N, grad_N), -1).to(ctx.dtype)


_margin: Callable[[Tensor], Tensor] = _Margin.apply
