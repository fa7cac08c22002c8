"""What data-parallel workers exchange beside gradients: nothing where there is one."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist

from dice_ray.losses.reduction import num_workers


def rank() -> int:
    """This worker's number."""
    return dist.get_rank() if num_workers() > 1 else 0


def share(rows: list[int]) -> list[int]:
    """What this worker takes of a step's or a split's rows: every row goes to exactly one worker."""
    return rows[rank() :: num_workers()]


def gathered(item: Any) -> list[Any]:
    """Every worker's item, in the order of ranks."""
    if num_workers() == 1:
        return [item]
    items: list[Any] = [None] * num_workers()
    dist.all_gather_object(items, item)
    return items
