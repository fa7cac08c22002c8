"""Which rows are in which step and micro-batch: the same steps for any number of workers."""

from __future__ import annotations

import random
from collections.abc import Sequence

POOL = 16
"""Steps whose rows are sorted by length together: more leave less padding, and less of the shuffle."""


def num_steps(num_rows: int, epochs: float, batch_size: int) -> int:
    """Optimizer steps of a run: each holds `batch_size` rows, the last one of an epoch goes on into the next epoch."""
    return max(1, round(epochs * num_rows / batch_size))


class Steps:
    """The rows of each step: an endless run of shuffled epochs, cut by `batch_size`, rows of like length together."""

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int) -> None:
        self.lengths, self.batch_size, self.seed = lengths, batch_size, seed
        self._orders: dict[int, list[int]] = {}

    def rows(self, step: int) -> list[int]:
        """The `batch_size` rows of a step, whatever steps were asked for before."""
        num_rows = len(self.lengths)
        positions = range(step * self.batch_size, (step + 1) * self.batch_size)
        epochs = range(positions[0] // num_rows, positions[-1] // num_rows + 1)
        self._orders = {epoch: self._orders.get(epoch) or self._order(epoch) for epoch in epochs}
        return [self._orders[position // num_rows][position % num_rows] for position in positions]

    def _order(self, epoch: int) -> list[int]:
        """The rows of an epoch: shuffled, then each pool of steps sorted by length and its steps shuffled.

        Rows that share their step with the epoch before or with the next one stay as they fell.
        """
        num_rows, size = len(self.lengths), self.batch_size
        shuffle = random.Random(f"{self.seed} {epoch}").shuffle
        order = list(range(num_rows))
        shuffle(order)
        begin = min(-epoch * num_rows % size, num_rows)
        end = num_rows - (num_rows - begin) % size
        for start in range(begin, end, POOL * size):
            stop = min(start + POOL * size, end)
            pool = sorted(order[start:stop], key=lambda row: self.lengths[row])
            steps = [pool[first : first + size] for first in range(0, len(pool), size)]
            shuffle(steps)
            order[start:stop] = [row for step in steps for row in step]
        return order


def micro_batches(
    rows: Sequence[int], lengths: Sequence[int], max_tokens: int, num_workers: int
) -> list[list[list[int]]]:
    """Each worker's share of a step, cut so that no micro-batch is padded to more tokens; a row alone may be longer.

    Shares and micro-batches hold rows of like length, the longest first.
    """
    by_length = sorted(rows, key=lambda row: -lengths[row])
    shares: list[list[list[int]]] = []
    for rank in range(num_workers):
        share: list[list[int]] = []
        for row in by_length[rank::num_workers]:
            if not share or (len(share[-1]) + 1) * lengths[share[-1][0]] > max_tokens:
                share.append([])
            share[-1].append(row)
        shares.append(share)
    return shares


def num_padded(micro_batch: Sequence[int], lengths: Sequence[int]) -> int:
    """The tokens of a micro-batch, padding included."""
    return len(micro_batch) * max(lengths[row] for row in micro_batch)
