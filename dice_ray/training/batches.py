"""Which rows form each step and micro-batch; the steps are the same for any number of workers.

The rows of a step depend only on the seed and the step's number, so a resumed run needs no stored position, and a run
with another number of workers takes the same steps. Workers only divide a step among them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

POOL = 16
"""Steps whose rows are sorted by length together: more steps mean less padding, but also less shuffling."""


def num_steps(num_rows: int, epochs: float, batch_size: int) -> int:
    """Optimizer steps of a run, each of `batch_size` rows; a step may span the end of an epoch."""
    return max(1, round(epochs * num_rows / batch_size))


def num_evaluations(num_steps: int, epochs: float, evaluations: int | None) -> int:
    """Evaluations of a run with this number of steps: by default one an epoch, and never more than steps."""
    return min(num_steps, evaluations or math.ceil(epochs))


class Steps:
    """The rows of each step: shuffled passes over all rows, cut into steps of rows of similar length.

    A pass holds every row once. With weights it holds a row `weight` times, rounded down, and as many rows more as the
    fractional parts sum to, drawn in each pass from the rows that have one.
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
        """The `batch_size` rows of a step; steps may be requested in any order."""
        size = len(self._always) + self._num_sometimes
        positions = range(step * self.batch_size, (step + 1) * self.batch_size)
        passes = range(positions[0] // size, positions[-1] // size + 1)
        self._orders = {number: self._orders.get(number) or self._order(number) for number in passes}
        return [self._orders[position // size][position % size] for position in positions]

    def _order(self, number: int) -> list[int]:
        """The rows of a pass: shuffled, then sorted by length within each pool of steps, whose steps are shuffled.

        Rows of the first and last step are not sorted if that step is shared with the previous or next pass.
        """
        # A string seed is hashed by random.Random itself: unlike hash(), the same in every process.
        generator, size = random.Random(f"{self.seed} {number}"), self.batch_size
        order = self._always + generator.sample(self._sometimes, self._num_sometimes)
        generator.shuffle(order)
        num_rows = len(order)
        begin = min(-number * num_rows % size, num_rows)
        end = num_rows - (num_rows - begin) % size
        for start in range(begin, end, POOL * size):
            stop = min(start + POOL * size, end)
            pool = sorted(order[start:stop], key=lambda row: self.lengths[row])
            steps = [pool[first : first + size] for first in range(0, len(pool), size)]
            generator.shuffle(steps)
            order[start:stop] = [row for step in steps for row in step]
        return order


def micro_batches(
    rows: Sequence[int], lengths: Sequence[int], max_tokens: int, num_workers: int
) -> list[list[list[int]]]:
    """Each worker's share of a step, cut into micro-batches of at most `max_tokens` tokens, padding included.

    A row longer than that is a micro-batch of its own. Rows are in descending order of length.
    """
    by_length = sorted(rows, key=lambda row: -lengths[row])
    shares: list[list[list[int]]] = []
    for rank in range(num_workers):
        share: list[list[int]] = []
        # Dealt out in turn, so that every worker gets rows of about the same lengths.
        for row in by_length[rank::num_workers]:
            if not share or (len(share[-1]) + 1) * lengths[share[-1][0]] > max_tokens:
                share.append([])
            share[-1].append(row)
        shares.append(share)
    return shares


def num_padded(micro_batch: Sequence[int], lengths: Sequence[int]) -> int:
    """The number of tokens of a micro-batch, padding included."""
    return len(micro_batch) * max(lengths[row] for row in micro_batch)
