"""Out-of-memory errors of CPUs and other devices are caught, and no other errors."""

from __future__ import annotations

import pytest
import torch

from dice_ray.errors import RunError
from dice_ray.training.memory import attempted
from dice_ray.training.step import TrainingTally


def no_memory() -> torch.Tensor:
    """Allocate more than any machine has."""
    return torch.empty(2**60, dtype=torch.uint8)


def raised(error: Exception) -> torch.Tensor:
    raise error


def test_out_of_memory_returns_none_and_other_errors_pass() -> None:
    assert attempted(lambda: 3) == 3
    assert attempted(no_memory) is None
    assert attempted(lambda: raised(torch.OutOfMemoryError("CUDA out of memory"))) is None
    assert attempted(lambda: raised(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `...`"))) is None
    assert attempted(lambda: raised(torch.AcceleratorError("CUDA error: out of memory"))) is None
    with pytest.raises(RuntimeError, match="size of tensor"):
        attempted(lambda: torch.ones(2) + torch.ones(3))


def test_the_limit_is_halved_until_each_row_is_alone() -> None:
    lengths = [10, 8, 4]
    for max_tokens, micro_batches, expected in ((100, [[0, 1], [2]], 10), (12, [[0, 1]], 6)):
        tally = TrainingTally(max_tokens)
        tally.halve(micro_batches, lengths)
        assert (tally.max_tokens, tally.num_halvings) == (expected, 1)
    with pytest.raises(RunError, match="a row of 10 tokens must fit into memory"):
        TrainingTally(100).halve([[0], [2]], lengths)
