"""Predictions of a split: each row once for any number of workers, also after running out of memory."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from dice_ray.errors import NonFiniteError, RunError
from dice_ray.training.evaluate import EncodedSplit, decoded
from dice_ray.training.step import TrainingTally
from tests.training.test_step import CUT, WHOLE, limit_memory, on_workers, parts_of

SIZES = (1, 2, 7, 23)
"""Rows of a split: fewer than the workers, and numbers that two and three do not divide."""
CASES = ("tags cross_entropy", "pairs cross_entropy")


def found_on(size: int, case: str, limit: int | None = None) -> tuple[list[Any], list[int], TrainingTally]:
    """The decoded first rows, the rows that this worker predicted, and the tally."""
    parts = parts_of(case)
    if limit is not None:
        limit_memory(parts.model.encoder, limit, "forward")
    seen: list[int] = []
    task = copy.copy(parts.task)  # runs share theirs

    def noted(logits: Any, batch: Any) -> list[Any]:
        seen.extend(batch.rows)
        return parts.task.decode(logits, batch)

    task.decode = noted  # type: ignore[method-assign]
    split = EncodedSplit(parts.train.records, parts.train.rows[:size])
    tally = TrainingTally(WHOLE)
    return decoded(task, parts.model, split, parts.tokenizer, parts.numerics, tally), seen, tally


def _plain(items: list[Any]) -> list[Tensor]:
    """Decoded rows as tensors, which can be compared and stored."""
    return [torch.as_tensor(item, dtype=torch.float64) for item in items]


def _of_all_sizes(rank: int) -> dict[str, list[Any]]:
    found = {f"{case} {size}": found_on(size, case) for case in CASES for size in SIZES}
    return {name: [_plain(items), seen] for name, (items, seen, _) in found.items()}


@pytest.mark.parametrize("num_workers", [2, 3])
def test_each_row_is_predicted_once_whatever_the_workers(tmp_path: Path, num_workers: int) -> None:
    by_worker = on_workers(num_workers, tmp_path, _of_all_sizes)
    for name, (wanted, _) in _of_all_sizes(0).items():
        seen = [row for found in by_worker for row in found[name][1]]
        assert sorted(seen) == list(range(len(wanted))), name
        for found in by_worker:
            torch.testing.assert_close(found[name][0], wanted, rtol=1e-5, atol=1e-6, msg=name)


@pytest.mark.parametrize("case", CASES)
def test_out_of_memory_halves_the_micro_batch_and_changes_no_prediction(case: str) -> None:
    wanted, _, _ = found_on(23, case)
    found, seen, tally = found_on(23, case, limit=CUT)
    torch.testing.assert_close(_plain(found), _plain(wanted), rtol=1e-5, atol=1e-6)
    assert sorted(seen) == list(range(23))
    assert tally.max_tokens < WHOLE
    assert tally.num_halvings >= 1


def test_a_row_that_does_not_fit_alone_is_an_error() -> None:
    with pytest.raises(RunError, match=r"a row of \d+ tokens must fit into memory"):
        found_on(7, CASES[0], limit=3)


@pytest.mark.parametrize("logit", [torch.nan, torch.inf])
def test_a_prediction_that_is_no_number_is_an_error(logit: float) -> None:
    """A model that diverged in the last step before an evaluation was scored: nan was the first class."""
    parts = parts_of(CASES[0])
    with torch.no_grad():
        next(iter(parts.model.heads.parameters())).fill_(logit)
    split = EncodedSplit(parts.train.records, parts.train.rows[:2])
    with pytest.raises(NonFiniteError, match=r"must be finite, got nan or inf in those of tag, rows \[.*diverged"):
        decoded(parts.task, parts.model, split, parts.tokenizer, parts.numerics, TrainingTally(WHOLE))


def _one_out_of_memory(rank: int) -> tuple[list[Tensor], int, int, str]:
    """Only the second worker runs out of memory: of some, then of all."""
    found, _, tally = found_on(23, CASES[0], CUT if rank else None)
    with pytest.raises(RunError) as failed:
        found_on(23, CASES[0], 3 if rank else None)
    return _plain(found), tally.max_tokens, tally.num_halvings, str(failed.value)


def test_workers_agree_where_one_of_them_runs_out_of_memory(tmp_path: Path) -> None:
    first, second = on_workers(2, tmp_path, _one_out_of_memory)
    assert first[1:] == second[1:]
    assert first[1] < WHOLE
    assert first[2] >= 1
    for found in (first, second):
        torch.testing.assert_close(found[0], _plain(found_on(23, CASES[0])[0]), rtol=0, atol=0)
