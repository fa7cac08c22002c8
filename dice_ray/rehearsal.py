"""The first steps of a run, really run, and what they say of the whole; nothing is left behind."""

from __future__ import annotations

import math
import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from dice_ray import launch
from dice_ray.config.load import Layer, resolve, values_layer
from dice_ray.config.schema import RunConfig
from dice_ray.settings import nested
from dice_ray.training import batches
from dice_ray.training.checkpoint import Checkpoints
from dice_ray.training.evaluate import EncodedSplit, decoded
from dice_ray.training.loop import fit
from dice_ray.training.step import TrainingTally

NUM_STEPS = 6
"""The first one is not timed: it allocates what the others use again."""
NUM_DEV_ROWS = 64
LONGEST = 60.0
"""Seconds after which no further step is begun."""


def told_metrics(config: RunConfig) -> list[str]:
    """The metrics of dev that a run tells, from its untrained model on a few records."""
    prepared, parts = launch.prepare(config), launch.build(config)
    records = prepared.dev.records[:NUM_DEV_ROWS]
    few = EncodedSplit(records, [row for row in prepared.dev.rows if row["record"] < len(records)])
    items = decoded(
        parts.task, parts.model, few, parts.tokenizer, parts.numerics, TrainingTally(config.training.tokens)
    )
    decisions = parts.task.decide(records, few.rows, items)
    return [f"dev/{name}" for name in parts.task.score(records, few.rows, items, decisions).metrics]


@dataclass(frozen=True)
class Rehearsal:
    """What a run is and how long it may take.

    Attributes:
        records: Of each split.
        rows: What the encoder sees of train and dev: records, or their windows.
        num_timed: The steps that the estimate rests on.
        seconds_a_step: Their mean, for one worker's share of a step.
        seconds_an_evaluation: Of dev.
        seconds_a_checkpoint: To write the weights, the last state and the best one.
        seconds: Of all steps, evaluations and checkpoints.
        peak_memory: Of this process, in bytes.
        peak_gpu_memory: Of the GPU; 0 where there is none.
        weights: The bytes of the model's weights on the disk.
    """

    records: dict[str, int]
    rows: dict[str, int]
    num_parameters: int
    num_steps: int
    num_evaluations: int
    num_timed: int
    seconds_a_step: float
    seconds_an_evaluation: float
    seconds_a_checkpoint: float
    seconds: float
    peak_memory: int
    peak_gpu_memory: int
    weights: int


def rehearse(config: RunConfig) -> Rehearsal:
    """Run the first steps, and dev in part, in this process."""
    training = config.training
    share = math.ceil(training.batch_size / config.launch.workers)
    alone = {"training.batch_size": share, "launch.workers": 1, "launch.how": "auto"}
    one = resolve([Layer("the run", nested(config)), values_layer("the rehearsal", alone)])
    prepared = launch.prepare(config)
    num_steps = batches.num_steps(len(prepared.train.rows), training.epochs, training.batch_size)
    num_evaluations = min(num_steps, training.evaluations or math.ceil(training.epochs))
    launch.check_here(config)
    parts = launch.build(config)
    marks = [time.monotonic()]
    with tempfile.TemporaryDirectory(prefix="dice_ray-") as folder:
        for _ in fit(parts, one.training, Checkpoints(Path(folder))):
            marks.append(time.monotonic())
            if len(marks) > NUM_STEPS or marks[-1] - marks[0] > LONGEST:
                break
        began = time.monotonic()
        Checkpoints(Path(folder)).save_best({"model": parts.model.state_dict()})
        # An evaluation writes the weights with two moments each, and the weights again if it is the best one.
        writing, weights = 4 * (time.monotonic() - began), (Path(folder) / "best.pt").stat().st_size
    timed = marks[1:] if len(marks) > 2 else marks
    step = (timed[-1] - timed[0]) / (len(timed) - 1)
    few = EncodedSplit(prepared.dev.records, prepared.dev.rows[:NUM_DEV_ROWS])
    began = time.monotonic()
    decoded(parts.task, parts.model, few, parts.tokenizer, parts.numerics, TrainingTally(training.tokens))
    evaluation = (time.monotonic() - began) * len(prepared.dev.rows) / len(few.rows) / config.launch.workers
    return Rehearsal(
        records=prepared.splits.report.sizes,
        rows={"train": len(prepared.train.rows), "dev": len(prepared.dev.rows)},
        num_parameters=sum(parameter.numel() for parameter in parts.model.parameters()),
        num_steps=num_steps,
        num_evaluations=num_evaluations,
        num_timed=len(timed) - 1,
        seconds_a_step=step,
        seconds_an_evaluation=evaluation,
        seconds_a_checkpoint=writing,
        seconds=num_steps * step + num_evaluations * (evaluation + writing),
        peak_memory=1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        peak_gpu_memory=torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0,
        weights=weights,
    )
