"""Which rows form each step and micro-batch; the steps are the same for any number of workers.

The rows of a step depend only on the seed and the step's number, so a resumed run needs no stored position, and a run
with another number of workers takes the same steps. Workers only divide a step among them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

_POOL = 16
"""Steps whose rows are sorted by length together: more steps mean less padding, but also less shuffling."""


def num_steps(num_rows: int, epochs: float, batch_size: int) -> int:
    """Optimizer steps of a run, each of `batch_size` rows; a step may span the end of an epoch."""
    return max(1, round(epochs * num_rows / batch_size))


def num_evaluations(num_steps: int, epochs: float, evaluations: int | None) -> int:
    """Evaluations of a run with this number of steps: by default one an epoch, and never more than steps."""
    return min(num_steps, evaluations or math.ceil(epochs))


@dataclass(frozen=True)
class Sampling:
    """Which training rows are drawn; by default every row once an epoch.

    Attributes:
        num_rows: Rows of an epoch, which decide the number of steps.
        weights: How often each row is drawn in a pass; once if not given.
        is_positive: For each row whether it is a positive; needed for `positive_share` alone.
        positive_share: The share of positives that each step holds.
    """

    num_rows: int
    weights: Sequence[float] | None = None
    is_positive: Sequence[bool] = ()
    positive_share: float | None = None

    def log_odds_ratio(self, batch_size: int) -> float:
        """The log-odds of a positive among the rows drawn, minus those among all rows; needs `is_positive`."""
        num = [self.is_positive.count(True), self.is_positive.count(False)]
        drawn = [0.0, 0.0]
        if self.positive_share is not None:
            drawn[0] = _positives_in_step(self.positive_share, batch_size)
            drawn[1] = batch_size - drawn[0]
        else:
            for is_one, weight in zip(self.is_positive, self.weights or [1.0] * len(self.is_positive), strict=True):
                drawn[not is_one] += weight
        return math.log(drawn[0] / drawn[1]) - math.log(num[0] / num[1])

    def steps(self, lengths: Sequence[int], batch_size: int, seed: int) -> Steps | _MixedSteps:
        if self.positive_share is None:
            return Steps(lengths, batch_size, seed, self.weights)
        return _MixedSteps(lengths, batch_size, seed, self.is_positive, self.positive_share)


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
        for start in range(begin, end, _POOL * size):
            stop = min(start + _POOL * size, end)
            pool = sorted(order[start:stop], key=lambda row: self.lengths[row])
            steps = [pool[first : first + size] for first in range(0, len(pool), size)]
            generator.shuffle(steps)
            order[start:stop] = [row for step in steps for row in step]
        return order


class _MixedSteps:
    """Steps that all hold the same number of positives: those and the negatives are each drawn in their own passes."""

    def __init__(
        self, lengths: Sequence[int], batch_size: int, seed: int, is_positive: Sequence[bool], share: float
    ) -> None:
        num_positives = _positives_in_step(share, batch_size)
        self._parts = []
        for positive, size in ((True, num_positives), (False, batch_size - num_positives)):
            members = [row for row, is_one in enumerate(is_positive) if is_one == positive]
            if size:
                self._parts.append((members, Steps([lengths[row] for row in members], size, seed)))

    def rows(self, step: int) -> list[int]:
        return [members[row] for members, steps in self._parts for row in steps.rows(step)]


def _positives_in_step(share: float, batch_size: int) -> int:
    """The number of positives in each step: at least one, and not all of it; none of a single row."""
    return min(max(1, round(share * batch_size)), batch_size - 1)


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
