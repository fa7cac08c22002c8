"""Communication between data-parallel workers; no-ops where there is only one.

Gradients are all-reduced after the backward passes of a step rather than during them as DDP does: a worker that ran out
of memory in the middle of a backward pass would leave the others waiting in a collective for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from dice_ray.losses.reduction import num_workers, sum_over_workers

_BUCKET = 2**22
"""Elements per all-reduce: one bucket is copied while another one is being reduced."""


def rank() -> int:
    return dist.get_rank() if num_workers() > 1 else 0


def gathered(item: Any) -> list[Any]:
    """Every worker's item, in the order of ranks."""
    if num_workers() == 1:
        return [item]
    items: list[Any] = [None] * num_workers()
    dist.all_gather_object(items, item)
    return items


def any_of(conditions: Sequence[bool], device: torch.device) -> list[bool]:
    """Whether each of the conditions holds on at least one worker."""
    if num_workers() == 1:
        return list(conditions)
    return [bool(num) for num in sum_over_workers(torch.tensor(conditions, dtype=torch.float, device=device)).tolist()]


def sum_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """All-reduce the gradients to their sum; a parameter that a worker did not use counts as zero there."""
    if num_workers() == 1:
        return
    pending = []
    for bucket in _buckets([parameter for parameter in parameters if parameter.requires_grad]):
        for parameter in bucket:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        gradients = [parameter.grad for parameter in bucket if parameter.grad is not None]
        # A bucket of one gradient is reduced in place; larger ones are copied into one tensor and back.
        flat = gradients[0].view(-1) if len(gradients) == 1 else torch.cat([each.view(-1) for each in gradients])
        pending.append((gradients, flat, dist.all_reduce(flat, async_op=True)))
    for gradients, flat, work in pending:
        work.wait()
        if len(gradients) > 1:
            pieces = flat.split([gradient.numel() for gradient in gradients])
            torch._foreach_copy_(gradients, [p.view_as(g) for p, g in zip(pieces, gradients, strict=True)])


def _buckets(parameters: list[nn.Parameter]) -> list[list[nn.Parameter]]:
    buckets: list[list[nn.Parameter]] = []
    size = _BUCKET
    for parameter in parameters:
        if size + parameter.numel() > _BUCKET:
            buckets.append([])
            size = 0
        buckets[-1].append(parameter)
        size += parameter.numel()
    return buckets
