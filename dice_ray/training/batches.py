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
    """The rows of each step: an endless run of shuffled passes, cut by `batch_size`, rows of like length together.

    A pass holds every row once; with weights as often as its weight says, a fraction by chance, anew in each pass.
    """

    def __init__(
        self, lengths: Sequence[int], batch_size: int, seed: int, weights: Sequence[float] | None = None
    ) -> None:
        self.lengths, self.batch_size, self.seed = lengths, batch_size, seed
        weights = weights or [1.0] * len(lengths)
        self._always = [row for row, weight in enumerate(weights) for _ in range(int(weight))]
        self._sometimes = [row for row, weight in enumerate(weights) if weight % 1]
        self._num_sometimes = round(sum(weight % 1 for weight in weights))
        self._orders: dict[int, list[int]] = {}

    def rows(self, step: int) -> list[int]:
        """The `batch_size` rows of a step, whatever steps were asked for before."""
        size = len(self._always) + self._num_sometimes
        positions = range(step * self.batch_size, (step + 1) * self.batch_size)
        passes = range(positions[0] // size, positions[-1] // size + 1)
        self._orders = {number: self._orders.get(number) or self._order(number) for number in passes}
        return [self._orders[position // size][position % size] for position in positions]

    def _order(self, number: int) -> list[int]:
        """The rows of a pass: shuffled, then each pool of steps sorted by length and its steps shuffled.

        Rows that share their step with the pass before or with the next one stay as they fell.
        """
        state, size = random.Random(f"{self.seed} {number}"), self.batch_size
        order = self._always + state.sample(self._sometimes, self._num_sometimes)
        state.shuffle(order)
        num_rows = len(order)
        begin = min(-number * num_rows % size, num_rows)
        end = num_rows - (num_rows - begin) % size
        for start in range(begin, end, POOL * size):
            stop = min(start + POOL * size, end)
            pool = sorted(order[start:stop], key=lambda row: self.lengths[row])
            steps = [pool[first : first + size] for first in range(0, len(pool), size)]
            state.shuffle(steps)
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
