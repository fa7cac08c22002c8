"""Runs the first steps of a run and estimates time and memory of the whole; only cached data are left behind."""

from __future__ import annotations

import math
import resource
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from dice_ray.config.schema import RunConfig
from dice_ray.run.build import build, check_machine, prepare
from dice_ray.training import batches
from dice_ray.training.checkpoint import BEST, Checkpoints
from dice_ray.training.evaluate import EncodedSplit, decoded
from dice_ray.training.loop import fit
from dice_ray.training.step import TrainingTally

_NUM_STEPS = 6
"""The first step is not timed: it allocates memory that the others reuse."""


@dataclass(frozen=True)
class Rehearsal:
    """The size of a run, and an estimate of its time.

    Attributes:
        records: Number of records of each split.
        rows: Number of rows that the encoder sees of train and dev: records, or windows of them.
        num_trained: Of the parameters, those that are not frozen.
        num_timed: Number of timed steps.
        seconds_a_step: Their mean, for one worker's share of a step.
        seconds_an_evaluation: Of dev.
        seconds: Of all steps, evaluations and checkpoints.
        seconds_to_start: Until the first step, without imports: to read the data and to build the model.
        peak_memory: Of this process, in bytes.
        peak_gpu_memory: What torch took of it, in bytes; 0 without a GPU.
        gpu_memory: Of the GPU, in bytes; 0 without one.
        weights: Bytes of the model's weights on the disk.
        few_items: A warning if dev or test has few items of its rarest class.
    """

    records: dict[str, int]
    rows: dict[str, int]
    num_parameters: int
    num_trained: int
    num_steps: int
    num_evaluations: int
    num_timed: int
    seconds_a_step: float
    seconds_an_evaluation: float
    seconds: float
    seconds_to_start: float
    peak_memory: int
    peak_gpu_memory: int
    gpu_memory: int
    weights: int
    few_items: str | None


def _peak_memory() -> int:
    """The most memory that this process has had, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux KiB
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def rehearse(config: RunConfig) -> Rehearsal:
    """Run the first steps and a part of dev in this process."""
    called = time.monotonic()
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()  # a notebook may have trained before
    training = config.training
    share = math.ceil(training.batch_size / config.launch.workers)
    # Evaluations and their checkpoints are timed by themselves.
    one_worker = training.model_copy(update={"batch_size": share, "evaluations": 1})
    prepared = prepare(config)
    check_machine(config)
    parts = build(config)
    num_steps = batches.num_steps(parts.sampling.num_rows, training.epochs, training.batch_size)
    num_evaluations = batches.num_evaluations(num_steps, training.epochs, training.evaluations)
    marks = [time.monotonic()]
    with tempfile.TemporaryDirectory(prefix="dice_ray-") as folder:
        for _ in fit(parts, one_worker, Checkpoints(Path(folder))):
            marks.append(time.monotonic())
            if len(marks) > _NUM_STEPS or marks[-1] - marks[0] > 60:  # seconds
                break
        began = time.monotonic()
        Checkpoints(Path(folder)).save_best({"model": parts.model.stored()})
        # An evaluation writes the weights with AdamW's two moments, and the weights again if it is the best one.
        writing, weights = 4 * (time.monotonic() - began), (Path(folder) / BEST).stat().st_size
    timed = marks[1:] if len(marks) > 2 else marks
    step = (timed[-1] - timed[0]) / (len(timed) - 1)
    few = EncodedSplit(prepared.dev.records, prepared.dev.rows[:64])
    began = time.monotonic()
    decoded(parts.task, parts.model, few, parts.tokenizer, parts.numerics, TrainingTally(training.tokens))
    evaluation = (time.monotonic() - began) * len(prepared.dev.rows) / len(few.rows) / config.launch.workers
    return Rehearsal(
        records=prepared.splits.report.sizes,
        rows={"train": len(prepared.train.rows), "dev": len(prepared.dev.rows)},
        num_parameters=sum(parameter.numel() for parameter in parts.model.parameters()),
        num_trained=sum(each.numel() for each in parts.model.parameters() if each.requires_grad),
        num_steps=num_steps,
        num_evaluations=num_evaluations,
        num_timed=len(timed) - 1,
        seconds_a_step=step,
        seconds_an_evaluation=evaluation,
        seconds=num_steps * step + num_evaluations * (evaluation + writing),
        seconds_to_start=marks[0] - called,
        peak_memory=_peak_memory(),
        peak_gpu_memory=torch.cuda.max_memory_reserved() if torch.cuda.is_available() else 0,
        gpu_memory=torch.cuda.get_device_properties(0).total_memory if torch.cuda.is_available() else 0,
        weights=weights,
        few_items=prepared.report().few_items(),
    )
