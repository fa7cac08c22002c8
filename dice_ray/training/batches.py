"""Which rows are in which step: the same for any number of workers."""

from __future__ import annotations

import random
from functools import lru_cache


def num_steps(num_rows: int, epochs: float, batch_size: int) -> int:
    """Optimizer steps of a run: each holds `batch_size` rows, the last one of an epoch goes on into the next epoch."""
    return max(1, round(epochs * num_rows / batch_size))


def step_rows(step: int, num_rows: int, batch_size: int, seed: int) -> list[int]:
    """The rows of a step: the next `batch_size` of an endless run of shuffled epochs."""
    positions = range(step * batch_size, (step + 1) * batch_size)
    return [_epoch_order(num_rows, seed, position // num_rows)[position % num_rows] for position in positions]


@lru_cache(maxsize=4)
def _epoch_order(num_rows: int, seed: int, epoch: int) -> tuple[int, ...]:
    order = list(range(num_rows))
    random.Random(f"{seed} {epoch}").shuffle(order)
    return tuple(order)
