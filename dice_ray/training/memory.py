"""Memory that runs out, on a GPU or a CPU: half of the tokens are tried next; and what is free, which is given back."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from dice_ray.errors import RunError
from dice_ray.training.batches import num_padded

T = TypeVar("T")

_OF_CPU = "can't allocate memory"
"""What torch says where a CPU has none left: it has an exception of its own for other devices alone."""


def attempted(stage: Callable[[], T]) -> T | None:
    """What a stage gives; none where it runs out of memory."""
    try:
        return stage()
    except RuntimeError as error:
        if not isinstance(error, torch.OutOfMemoryError) and _OF_CPU not in str(error):
            raise
    return None


def halved(max_tokens: int, micro_batches: Sequence[Sequence[int]], lengths: Sequence[int]) -> int:
    """The most tokens of a micro-batch from now on: half of what the largest of these had, for which memory ran out.

    Raises:
        RunError: Every one of them had one row.
    """
    largest = max(num_padded(each, lengths) for each in micro_batches)
    if all(len(each) == 1 for each in micro_batches):
        raise RunError(
            f"a row of {largest} tokens must fit into memory, and one alone does not: take a smaller encoder or "
            "max_length, or training.activations recompute"
        )
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return min(max_tokens, largest) // 2


def give_back() -> None:
    """Give the memory that is free to the machine again.

    glibc keeps it in pieces between those in use: rows of ever other lengths leave ever more of them, several times
    what training needs after an hour in the same process.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
