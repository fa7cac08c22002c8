"""Predictions of a split, gathered from all workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from dice_ray.losses.reduction import num_workers
from dice_ray.models.encoder import EncoderWithHeads
from dice_ray.tasks.base import Row, Task
from dice_ray.training import batches, workers
from dice_ray.training.precision import Numerics, forward, on_device

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class EncodedSplit:
    """A split's records and the rows that the encoder sees of them."""

    records: Sequence[Any]
    rows: Sequence[Row]


@torch.no_grad()
def decoded(
    task: Task[Any],
    model: EncoderWithHeads,
    split: EncodedSplit,
    tokenizer: PreTrainedTokenizerBase,
    numerics: Numerics,
    max_tokens: int,
) -> list[Any]:
    """What the task decodes of every row, in the order of rows; each row is predicted by exactly one worker."""
    model.eval()
    lengths = [len(row["input_ids"]) for row in split.rows]
    shares = batches.micro_batches(range(len(lengths)), lengths, max_tokens, num_workers())
    found: dict[int, Any] = {}
    for indices in shares[workers.rank()]:
        batch = on_device(task.collate(split.rows, indices, tokenizer), numerics.device)
        found.update(zip(batch.rows, task.decode(forward(model, batch, numerics), batch), strict=True))
    everything = {row: item for part in workers.gathered(found) for row, item in part.items()}
    return [everything[row] for row in range(len(split.rows))]
