"""Predictions of a split, gathered from all workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from dice_ray.errors import RunError
from dice_ray.losses.reduction import num_workers
from dice_ray.models.encoder import EncoderWithHeads
from dice_ray.tasks.base import Row, Task
from dice_ray.training import batches, workers
from dice_ray.training.memory import attempted
from dice_ray.training.precision import Numerics, forward, on_device
from dice_ray.training.step import Tally

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


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
    tally: Tally,
) -> list[Any]:
    """What the task decodes of every row, in the order of rows; each row is predicted by exactly one worker.

    Where memory runs out, the rows that are left are cut into micro-batches of half the tokens, as the tally notes.

    Raises:
        RunError: A row alone does not fit into memory.
    """
    model.eval()

    @torch.no_grad()
    def predicted(indices: Sequence[int]) -> dict[int, Any]:
        batch = on_device(task.collate(split.rows, indices, tokenizer), numerics.device)
        return dict(zip(batch.rows, task.decode(forward(model, batch, numerics), batch), strict=True))

    lengths = [len(row["input_ids"]) for row in split.rows]
    left = batches.micro_batches(range(len(lengths)), lengths, tally.max_tokens, num_workers())[workers.rank()]
    found: dict[int, Any] = {}
    failure: RunError | None = None
    while left and failure is None:
        first, *others = left
        if (items := attempted(partial(predicted, first))) is not None:
            found |= items
            left = others
            continue
        try:
            tally.halve([first], lengths)
        except RunError as error:
            failure = error  # told to the other workers, which would wait for this one
        left = batches.micro_batches([row for each in left for row in each], lengths, tally.max_tokens, 1)[0]
    parts = workers.gathered((found, failure, tally.max_tokens, tally.num_halvings))
    if failures := [failure for _, failure, _, _ in parts if failure is not None]:
        raise failures[0]
    tally.max_tokens = min(max_tokens for _, _, max_tokens, _ in parts)
    tally.num_halvings = max(num_halvings for _, _, _, num_halvings in parts)
    everything = {row: item for items, _, _, _ in parts for row, item in items.items()}
    return [everything[row] for row in range(len(split.rows))]
