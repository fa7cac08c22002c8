"""Out-of-memory errors, after which micro-batches are halved, and free memory returned to the operating system."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import TypeVar

import torch

ResultT = TypeVar("ResultT")

_MESSAGES = ("can't allocate memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDA error: out of memory")
"""In torch's RuntimeError where a CPU, or CUDA or cuBLAS on a GPU, is out of memory; its allocators for other devices
have an exception class.
"""


def attempted(stage: Callable[[], ResultT]) -> ResultT | None:
    """The result of a stage; `None` if it runs out of memory. Other errors pass through."""
    try:
        return stage()
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
    return None


def is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(message in str(error) for message in _MESSAGES)


def release_free_memory() -> None:
    """Return free memory to the operating system, where the C library can.

    glibc keeps freed blocks that lie between used ones. Batches of varying length fragment the heap: after an hour in
    one process it held several times what training needed.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
