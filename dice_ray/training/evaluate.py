"""Predictions of a split, gathered from all workers.

A worker that raised an error by itself would leave the others waiting in the gather. So errors are gathered like
results, and every worker then raises the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from dice_ray.errors import NonFiniteError, RunError
from dice_ray.losses.reduction import num_workers
from dice_ray.models.encoder import EncoderWithHeads
from dice_ray.tasks.base import Row, Task
from dice_ray.training import batches, workers
from dice_ray.training.memory import attempted
from dice_ray.training.precision import Numerics, forward, on_device
from dice_ray.training.step import TrainingTally

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def never() -> bool:
    """The default of `is_stopped`: nothing asks to stop."""
    return False


class Stopped(Exception):
    """An evaluation was asked to stop; it changed nothing, and can be repeated."""


@dataclass(frozen=True)
class EncodedSplit:
    """A split's records and the rows that the encoder sees of them."""

    records: Sequence[Any]
    rows: Sequence[Row]


def decoded(
    task: Task[Any],
    model: EncoderWithHeads,
    split: EncodedSplit,
    tokenizer: PreTrainedTokenizerBase,
    numerics: Numerics,
    tally: TrainingTally,
    is_stopped: Callable[[], bool] = never,
) -> list[Any]:
    """The task's decoded predictions of all rows, in their order; each row is predicted by exactly one worker.

    When memory runs out, the remaining rows are cut into micro-batches of half the tokens, and the tally records it.

    Raises:
        RunError: A single row does not fit into memory.
        NonFiniteError: A prediction is not a number.
        Stopped: `is_stopped()` on any worker.
    """
    model.eval()

    @torch.no_grad()
    def predict(indices: Sequence[int]) -> dict[int, Any]:
        batch = on_device(task.collate(split.rows, indices, tokenizer), numerics.device)
        logits = forward(model, batch, numerics)
        # A task may set logits to -inf; above it, all must be numbers.
        if wrong := [name for name, each in logits.items() if not bool((each < torch.inf).all())]:
            raise NonFiniteError(
                f"the logits of a prediction must be finite, got nan or inf in those of {wrong[0]}, rows "
                f"{indices[:8]}{'...' if len(indices) > 8 else ''}: the training diverged, or they are too large for "
                "training.precision"
            )
        return dict(zip(batch.rows, task.decode(logits, batch), strict=True))

    lengths = [len(row["input_ids"]) for row in split.rows]
    remaining = batches.micro_batches(range(len(lengths)), lengths, tally.max_tokens, num_workers())[workers.rank()]
    predictions: dict[int, Any] = {}
    error: Exception | None = None
    try:
        while remaining:
            if is_stopped():
                raise Stopped
            first, *others = remaining
            if (of_first := attempted(partial(predict, first))) is not None:
                predictions |= of_first
                remaining = others
            else:
                tally.halve([first], lengths)
                rows = [row for micro_batch in remaining for row in micro_batch]
                remaining = batches.micro_batches(rows, lengths, tally.max_tokens, 1)[0]
    except (NonFiniteError, RunError, Stopped) as failed:
        error = failed
    by_worker = workers.gathered((predictions, error, tally.max_tokens, tally.num_halvings))
    if errors := [error for _, error, _, _ in by_worker if error is not None]:
        raise errors[0]
    tally.max_tokens = min(max_tokens for _, _, max_tokens, _ in by_worker)
    tally.num_halvings = max(num_halvings for _, _, _, num_halvings in by_worker)
    by_row = {row: item for items, _, _, _ in by_worker for row, item in items.items()}
    return [by_row[row] for row in range(len(split.rows))]
