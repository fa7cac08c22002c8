"""The items of a term as the losses take them: shapes checked, flattened, masked; and what was wrong with bad ones."""

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

IGNORE_INDEX = -100


@dataclass(frozen=True)
class Items:
    """N items, flat.

    Attributes:
        logits: `logits_NC` with zeros for a masked item; of two classes, `margin_N`: its sigmoid is p of class 1.
        targets: `targets_N`, 0 for a masked item.
        valid: `valid_N`, true where an item counts; none means all do.
        zero: 0 that is NaN when a logit that counts is not finite or a target is out of range.
        kept: `kept_NC`, true where mining keeps an item for a class; none means all are.
    """

    logits: Tensor
    targets: Tensor
    valid: Tensor | None
    zero: Tensor
    kept: Tensor | None = None

    @property
    def is_two_class(self) -> bool:
        return self.logits.ndim == 1


def read(link: Link, logits: Tensor, targets: Tensor, mask: Tensor | None) -> Items:
    """Check the shapes of a term's tensors, flatten them, and empty what is masked.

    Raises:
        LossInputError: Shapes do not fit, or a target is out of range (looked at here where that costs no device sync).
    """
    _check_shapes(link, logits, targets, mask)
    num_classes = 2 if link == "sigmoid" else logits.shape[-1]
    flat = logits.reshape(-1) if link == "sigmoid" else logits.reshape(-1, num_classes)
    valid_N = valid(link, targets, mask)
    targets_N = targets.reshape(-1).long()
    if valid_N is not None:
        targets_N = targets_N.masked_fill(~valid_N, 0)
    targets_N, bad_target = _in_range(targets_N, num_classes)
    if link == "softmax" and num_classes == 2:
        flat = _margin(flat)
    if flat.ndim == 1:
        flat = flat.to(torch.promote_types(flat.dtype, torch.float32))
    off = None if valid_N is None else ~valid_N if flat.ndim == 1 else ~valid_N[:, None]
    if off is not None:
        flat = flat.masked_fill(off, 0)
    if link == "position" and mask is not None:
        assert off is not None
        outside_NL = ~mask.reshape(-1, num_classes).bool() & ~off
        zero = flat.detach().masked_fill(outside_NL, 0)
        flat = flat.masked_fill(outside_NL, -math.inf)
        bad_target = bad_target | outside_NL.gather(1, targets_N[:, None]).any()
    else:
        zero = flat.detach()
    zero = zero.sum(dtype=torch.promote_types(flat.dtype, torch.float32)) * 0
    return Items(flat, targets_N, valid_N, zero.masked_fill(bad_target, math.nan))


def valid(link: Link, targets: Tensor, mask: Tensor | None = None) -> Tensor | None:
    """`valid_N`, true where an item counts; none where all do and finding that out costs no device sync."""
    valid_N = targets.reshape(-1) != IGNORE_INDEX
    if mask is not None:
        mask_N = mask.reshape(len(valid_N), -1).bool().any(-1) if link == "position" else mask.reshape(-1).bool()
        valid_N = valid_N & mask_N
    elif targets.is_cpu and bool(valid_N.all()):
        return None
    return valid_N


def bad_input(link: Link, logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> LossInputError | None:
    """Why the statistics of these tensors are NaN: the first row that no loss can take, if there is one.

    It looks at the tensors, which waits for the device: call it when a loss was not finite.
    """
    num_classes = 2 if link == "sigmoid" else logits.shape[-1]
    logits_NC = logits.detach().reshape(targets.numel(), -1)
    counts_NC = torch.ones_like(logits_NC, dtype=torch.bool)
    if (valid_N := valid(link, targets, mask)) is not None:
        counts_NC &= valid_N[:, None]
    if link == "position" and mask is not None:
        counts_NC &= mask.reshape(logits_NC.shape).bool()
    bad_NC = ~logits_NC.isfinite() & counts_NC
    if bad_NC.any():
        row, column = (int(index) for index in bad_NC.nonzero()[0])
        where = _where(row, targets.shape)
        return LossInputError(
            f"Logits must be finite, got {logits_NC[row, column].item()} in {where}, column {column}."
        )
    targets_N = targets.reshape(-1)
    bad_N = (targets_N < 0) | (targets_N >= num_classes)
    if link == "position":
        bad_N |= ~counts_NC.gather(1, targets_N.clamp(0, num_classes - 1)[:, None].long())[:, 0]
    bad_N &= counts_NC.any(-1)
    if bad_N.any():
        row = int(bad_N.nonzero()[0])
        return LossInputError(
            f"Targets must be {'an allowed position of' if link == 'position' else 'in'} 0 to {num_classes - 1} "
            f"(or {IGNORE_INDEX} to be ignored), got {int(targets_N[row])} in {_where(row, targets.shape)}."
        )
    return None


def _in_range(targets_N: Tensor, num_classes: int) -> tuple[Tensor, Tensor]:
    """The targets, safe to index with, and whether one was out of range; on the CPU that is an error at once."""
    if targets_N.numel() == 0:
        return targets_N, targets_N.new_zeros((), dtype=torch.bool)
    low, high = targets_N.aminmax()
    bad = (low < 0) | (high >= num_classes)
    if not targets_N.is_cpu:
        return targets_N.clamp(0, num_classes - 1), bad
    if bad:
        value = int(low if low < 0 else high)
        raise LossInputError(
            f"Targets must be in 0 to {num_classes - 1} for {num_classes} classes (or {IGNORE_INDEX} to be ignored), "
            f"got {value} in row {int((targets_N == value).nonzero()[0])}."
        )
    return targets_N, bad


def _check_shapes(link: Link, logits: Tensor, targets: Tensor, mask: Tensor | None) -> None:
    items = logits.shape if link == "sigmoid" else logits.shape[:-1]
    letters = {"softmax": "logits_NC", "sigmoid": "logits_N, one logit an item", "position": "logits_NL"}[link]
    if link != "sigmoid" and (logits.ndim < 1 or logits.shape[-1] < 2):
        raise LossInputError(f"{letters} must hold two or more on the last axis, got logits of {_shape(logits.shape)}.")
    if targets.shape != items:
        raise LossInputError(
            f"Targets must have the shape {_shape(items)} for logits of {_shape(logits.shape)} ({letters}), "
            f"got {_shape(targets.shape)}."
        )
    expected = logits.shape if link == "position" else items
    if mask is not None and mask.shape != expected:
        raise LossInputError(
            f"The mask must have the shape {_shape(expected)}, as {letters} has, got {_shape(mask.shape)}."
        )
    if targets.is_floating_point() or targets.dtype is torch.bool:
        raise LossInputError(f"Targets must be whole numbers, got {targets.dtype}.")


def _shape(shape: torch.Size) -> str:
    return str(tuple(shape))


def _where(row: int, shape: torch.Size) -> str:
    if len(shape) < 2:
        return f"row {row}"
    return f"row {tuple(int(index) for index in torch.unravel_index(torch.tensor(row), shape))}"


class _Margin(torch.autograd.Function):
    """`margin_N` of `logits_N2`; the gradient is written once, where slicing would fill two tensors and add them."""

    @staticmethod
    def forward(ctx: Any, logits_N2: Tensor) -> Tensor:
        ctx.dtype = logits_N2.dtype
        logits_N2 = logits_N2.to(torch.promote_types(logits_N2.dtype, torch.float32))
        return logits_N2[:, 1] - logits_N2[:, 0]

    @staticmethod
    def backward(ctx: Any, grad_N: Tensor) -> Tensor:
        return torch.stack((-grad_N, grad_N), -1).to(ctx.dtype)


_margin: Callable[[Tensor], Tensor] = _Margin.apply
