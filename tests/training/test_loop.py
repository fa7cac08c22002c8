"""The loop: it learns, it goes on where it was stopped, it stops where nothing is finite, it is exact over workers."""

from __future__ import annotations

import os
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import spawn

from dice_ray import launch
from dice_ray.config.load import Layer, resolve, values_layer
from dice_ray.config.schema import RunConfig
from dice_ray.errors import ConfigError, NonFiniteError, RunError
from dice_ray.training import batches
from dice_ray.training.checkpoint import Checkpoints
from dice_ray.training.loop import Evaluation, Progress

PRESET = Layer(
    "preset", {"task": "sentence_pair", "data": {"source": {"synthetic": {"size": 200, "positive_share": 0.3}}}}
)


def small(**values: Any) -> RunConfig:
    settings = {"training.epochs": 2, "training.batch_size": 16, "training.lr": 2e-3, "training.evaluations": 5}
    paths = {path.replace("__", "."): value for path, value in values.items()}
    return resolve([PRESET, values_layer("test", settings | paths)])


def test_evaluations_are_evenly_spaced_and_the_last_is_the_end(tmp_path: Path) -> None:
    told = list(launch.start(small(), tmp_path))
    assert [evaluation.step for evaluation in told] == [5, 10, 15, 20, 25]
    assert [evaluation.finished for evaluation in told] == [False] * 4 + [True]
    assert told[-1].epoch == 2.0
    assert {"train/loss", "dev/f1", "dev/f1_tuned", "dev/collapsed"} <= set(told[-1].metrics)


def test_every_other_step_tells_how_far_the_run_is(tmp_path: Path) -> None:
    told = list(launch.steps(small(training__evaluations=2), tmp_path))
    assert [each.step for each in told] == list(range(1, 26))
    assert [each.step for each in told if isinstance(each, Evaluation)] == [12, 25]
    steps = [each for each in told if isinstance(each, Progress)]
    assert {each.num_steps for each in steps} == {25}
    assert steps[-1].epoch == pytest.approx(24 * 16 / 200)
    lengths = [len(row["input_ids"]) for row in launch.prepare(small()).train.rows]
    assert steps[0].num_tokens == sum(lengths[row] for row in batches.step_rows(0, 200, 16, seed=1))
    assert all(0 < later.num_tokens - before.num_tokens < 16 * max(lengths) * 2 for before, later in pairwise(steps))
    first = told[11]
    assert isinstance(first, Evaluation)
    losses = [each.loss for each in steps[:11]]
    assert min(losses) < 12 * first.metrics["train/loss"] - sum(losses) < 1.2 * max(losses)


def test_an_interrupted_run_tells_its_history_and_ends_as_if_it_was_not(tmp_path: Path) -> None:
    whole = list(launch.start(small(loss="dice"), tmp_path / "whole"))
    stopped = launch.start(small(loss="dice"), tmp_path / "stopped")
    first = [next(stopped) for _ in range(random.randint(1, 4))]
    del stopped
    assert list(launch.start(small(loss="dice"), tmp_path / "stopped")) == whole
    assert whole[: len(first)] == first
    states = [Checkpoints(tmp_path / name).last() for name in ("whole", "stopped")]
    assert states[0] is not None
    assert states[1] is not None
    torch.testing.assert_close(states[0]["model"], states[1]["model"], rtol=0, atol=0)


def test_a_finished_run_only_tells_its_history(tmp_path: Path) -> None:
    whole = list(launch.start(small(), tmp_path))
    written = (tmp_path / "last.pt").stat().st_mtime_ns
    assert list(launch.start(small(), tmp_path)) == whole
    assert (tmp_path / "last.pt").stat().st_mtime_ns == written


def test_a_seed_decides_everything(tmp_path: Path) -> None:
    runs = {
        (seed, again): list(launch.start(small(training__seed=seed), tmp_path / f"{seed}{again}"))
        for seed in (1, 2)
        for again in "ab"
    }
    assert runs[1, "a"] == runs[1, "b"]
    assert runs[1, "a"] != runs[2, "a"]


def test_the_best_checkpoint_is_the_one_scored(tmp_path: Path) -> None:
    config = small(loss="tversky", training__epochs=6)
    told = list(launch.start(config, tmp_path))
    best = max(evaluation.metrics["dev/f1"] for evaluation in told)
    assert launch.evaluate(config, tmp_path, "dev")["dev/f1"] == best > 0.3


def test_what_is_not_finite_stops_the_run_before_the_optimizer_steps(tmp_path: Path) -> None:
    config = small(training__lr=1e30)
    with pytest.raises(
        NonFiniteError, match=r"at step \d+, learning rate .*, rows \[.* Logits must be finite, got nan in"
    ):
        list(launch.start(config, tmp_path))


def test_a_torn_checkpoint_is_refused_by_name(tmp_path: Path) -> None:
    list(launch.start(small(), tmp_path))
    path = tmp_path / "last.pt"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(RunError, match=r"last\.pt must be a checkpoint"):
        next(launch.start(small(), tmp_path))


def test_more_rows_a_step_than_there_are_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"training\.batch_size: must be at most the rows of the training split, 200"):
        next(launch.start(small(training__batch_size=201), tmp_path))


def _train_worker(rank: int, num_workers: int, folder: Path, losses: list[str]) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1"}
    dist.init_process_group("gloo", f"file://{folder}/rendezvous", rank=rank, world_size=num_workers)
    for loss in losses:
        told = list(launch.start(small(loss=loss, model__dropout=0.0), folder / loss))
        assert told[-1].finished
    dist.barrier()  # a worker that leaves early takes the other's connection with it
    dist.destroy_process_group()


def test_two_workers_tread_the_path_of_one(tmp_path: Path) -> None:
    losses = ["weighted_cross_entropy", "focal", "dice", "self_adjusting_dice", "tversky"]
    spawn(_train_worker, (2, tmp_path, losses), nprocs=2)
    for loss in losses:
        alone = list(launch.start(small(loss=loss, model__dropout=0.0), tmp_path / "alone" / loss))
        told = list(launch.start(small(loss=loss, model__dropout=0.0), tmp_path / loss))
        assert [_losses(evaluation) for evaluation in told] == pytest.approx(
            [_losses(each) for each in alone], rel=1e-4
        )


def _losses(evaluation: Evaluation) -> float:
    return evaluation.metrics["train/loss"]
