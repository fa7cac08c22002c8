"""Out-of-memory errors, after which micro-batches are halved, and free memory returned to the operating system."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import TypeVar

import torch

ResultT = TypeVar("ResultT")

_CPU_MESSAGE = "can't allocate memory"
"""How torch's plain RuntimeError for a CPU out of memory reads; only other devices have an exception class."""


def attempted(stage: Callable[[], ResultT]) -> ResultT | None:
    """The result of a stage; `None` if it runs out of memory. Other errors pass through."""
    try:
        return stage()
    except RuntimeError as error:
        if not isinstance(error, torch.OutOfMemoryError) and _CPU_MESSAGE not in str(error):
            raise
    return None


def release_free_memory() -> None:
    """Return free memory to the operating system, where the C library can.

    glibc keeps freed blocks that lie between used ones. Batches of varying length fragment the heap: after an hour in
    one process it held several times what training needed.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
