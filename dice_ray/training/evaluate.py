"""Predictions of a split, gathered from all workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from dice_ray.tasks.base import Row, Task
from dice_ray.training import workers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class EncodedSplit:
    """A split's records and the rows that the encoder sees of them."""

    records: Sequence[Any]
    rows: Sequence[Row]


@torch.no_grad()
def decoded(
    task: Task[Any], model: nn.Module, split: EncodedSplit, tokenizer: PreTrainedTokenizerBase, batch_size: int
) -> list[Any]:
    """What the task decodes of every row, in the order of rows; each row is predicted by exactly one worker."""
    model.eval()
    lengths = [len(row["input_ids"]) for row in split.rows]
    by_length = sorted(range(len(lengths)), key=lengths.__getitem__)
    mine = workers.share(by_length)
    found: dict[int, Any] = {}
    for start in range(0, len(mine), batch_size):
        batch = task.collate(split.rows, mine[start : start + batch_size], tokenizer)
        logits = model(batch.inputs, batch.targets)
        found.update(zip(batch.rows, task.decode(logits, batch), strict=True))
    everything = {row: item for part in workers.gathered(found) for row, item in part.items()}
    return [everything[row] for row in range(len(split.rows))]
