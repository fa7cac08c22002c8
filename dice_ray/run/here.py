"""Training a run in this process; each worker of Ray Train does the same."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

import torch

from dice_ray.config.schema import RunConfig
from dice_ray.errors import RunError, counted
from dice_ray.run import store, trained
from dice_ray.run.build import build, choose_numerics, prepare
from dice_ray.training import workers
from dice_ray.training.checkpoint import Checkpoints
from dice_ray.training.evaluate import never
from dice_ray.training.loop import Evaluation, StepProgress, fit

Events: TypeAlias = Generator[Evaluation | StepProgress, None, None]
"""What a run reports: progress after a step, or an evaluation. Closing the generator stops the run."""


def train_here(config: RunConfig, folder: Path, is_stopped: Callable[[], bool] = never) -> Events:
    """Train a run, or a worker's part of it; after the first checkpoint, the folder can be used to predict."""
    if config.launch.threads is not None:
        torch.set_num_threads(config.launch.threads)
    parts = build(config)
    if workers.rank() == 0:
        prepared = prepare(config)
        trained.store(config, folder, parts.task, prepared.facts, parts.model, parts.tokenizer, prepared.splits.digest)
    with closing(fit(parts, config.training, Checkpoints(folder), is_stopped)) as events:
        for event in events:
            store.send(folder)
            yield event
    store.send(folder)


def check_machine(config: RunConfig) -> None:
    """This process must have the GPUs of a run and support its precision.

    Raises:
        RunError: It does not.
    """
    check_gpus(config.launch.num_gpus(auto=0), torch.cuda.device_count())
    choose_numerics(config)


def check_gpus(needed: float, available: int) -> None:
    """Raises a RunError where a run needs more GPUs than there are."""
    if needed > available:
        raise RunError(f"there must be {counted(needed, 'GPU')} (launch.workers x launch.gpus), got {available}")
