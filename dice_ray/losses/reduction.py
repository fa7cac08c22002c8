"""One loss of a step that is spread over workers and micro-batches: its statistics added up, its gradient exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch import Tensor

if TYPE_CHECKING:
    from dice_ray.losses.base import Loss


def step_loss(loss: Loss, statistics: Tensor, *, num_items: Tensor | None = None) -> Tensor:
    """The step's loss, over the items of all workers; its gradient is that of this worker's items.

    The workers' gradients add up to the gradient of the step: DDP averages them, so multiply by their number before
    `backward`.

    Args:
        loss: The loss of the term.
        statistics: Those of all items that this worker holds in the step; with `num_items`, those of one micro-batch.
        num_items: For a mean over items: how many the whole step has, over all workers and micro-batches (`summed` of
            `loss.num_items`, known before the forward pass). Then nothing is exchanged here, and the results of
            micro-batches and workers add up to the step's loss.
    """
    if num_items is not None:
        assert loss.is_item_mean, "only a mean over items can be formed from its micro-batches"
        return loss.value(torch.stack((statistics[0], num_items.to(statistics))))
    total = sum_over_workers(statistics.detach())
    return loss.value(statistics + (total - statistics).detach())


def sum_over_workers(local: Tensor) -> Tensor:
    """The sum over the workers."""
    if num_workers() == 1:
        return local
    total = local.clone()
    dist.all_reduce(total)
    return total


def gathered(local_NK: Tensor, fill: float) -> tuple[Tensor, int]:
    """The rows of all workers, each padded with `fill` to the longest, and at which row those of this worker begin."""
    if num_workers() == 1:
        return local_NK, 0
    longest = torch.tensor(len(local_NK), device=local_NK.device)
    dist.all_reduce(longest, op=dist.ReduceOp.MAX)
    padded = local_NK.new_full((int(longest), *local_NK.shape[1:]), fill)
    padded[: len(local_NK)] = local_NK
    parts = [torch.empty_like(padded) for _ in range(num_workers())]
    dist.all_gather(parts, padded)
    return torch.cat(parts), dist.get_rank() * int(longest)


def num_workers() -> int:
    """How many workers share a step: 1 without a process group."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1
