"""What data-parallel workers exchange: nothing where there is one."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist


def rank() -> int:
    """This worker's number."""
    return dist.get_rank() if dist.is_initialized() else 0


def num_workers() -> int:
    """How many workers share each step."""
    return dist.get_world_size() if dist.is_initialized() else 1


def gathered(item: Any) -> list[Any]:
    """Every worker's item, in the order of ranks."""
    if not dist.is_initialized():
        return [item]
    items: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(items, item)
    return items
