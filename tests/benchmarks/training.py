"""The training loop against Hugging Face's Trainer: examples a second, peak memory, where time goes, two workers."""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import psutil
import torch
import torch.distributed as dist
from torch import nn
from torch.multiprocessing.spawn import spawn

from dice_ray import launch
from dice_ray.config.load import read_layer, resolve, values_layer
from dice_ray.config.schema import RunConfig
from dice_ray.data import sources
from dice_ray.models.encoder import ModelConfig, load_tokenizer
from dice_ray.shipped import preset_file
from dice_ray.training import loop, step
from dice_ray.training.checkpoint import Checkpoints
from dice_ray.training.evaluate import EncodedSplit

CLOCK = time.process_time
"""One thread computes: what else runs on the machine slows neither side."""
BATCH_SIZE = 32
PRESETS = {"MRPC": "mrpc", "UD POS": "ud_ewt"}
SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128},
    "MiniLM": {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536},
}
ROWS = {("tiny", "default"): 1024, ("tiny", "best"): 2048, ("MiniLM", "default"): 256, ("MiniLM", "best"): 768}
"""In an epoch: enough where both sides group by length, which they do among many steps."""
MODES: dict[str, dict[str, Any]] = {"default": {}, "best": {"bf16": True, "train_sampling_strategy": "group_by_length"}}
"""What the Trainer is given: nothing, which is fp32 in random order; and what makes it fastest."""


@dataclass(frozen=True)
class Cell:
    """One data set, encoder and mode; everything in it is the same for both sides."""

    data: str
    size: str
    mode: str
    folder: Path

    @property
    def encoder(self) -> Path:
        return self.folder / f"{self.data} {self.size}"

    @property
    def num_rows(self) -> int:
        return ROWS[self.size, self.mode]

    def config(self, **values: Any) -> RunConfig:
        settings = {
            "model.encoder": str(self.encoder),
            "training.epochs": 1,
            "training.batch_size": BATCH_SIZE,
            "training.precision": "bf16" if self.mode == "best" else "fp32",
        }
        return resolve([read_layer(preset_file(PRESETS[self.data])), values_layer("benchmark", settings | values)])

    def save_encoder(self) -> None:
        """An encoder of random weights in a folder, as both sides load it."""
        from transformers import BertConfig, BertModel

        config = resolve([read_layer(preset_file(PRESETS[self.data]))])
        records = sources.load(config.data).train
        task = config.task.build(config.task.classes(records))
        torch.manual_seed(0)
        BertModel(BertConfig(**SIZES[self.size])).save_pretrained(self.encoder)
        load_tokenizer(ModelConfig(), task.texts(records)).save_pretrained(self.encoder)

    def parts(self, num_rows: int, **values: Any) -> loop.Parts:
        parts = launch.build(self.config(**values))
        train = EncodedSplit(parts.train.records, parts.train.rows[:num_rows])
        first = max(row["record"] for row in parts.dev.rows[:8]) + 1
        return replace(parts, train=train, dev=EncodedSplit(parts.dev.records[:first], parts.dev.rows[:8]))


def ours(parts: loop.Parts, config: RunConfig) -> float:
    """Seconds of this process in an epoch, without scoring and checkpoints: there are none in the Trainer's."""
    scores = {parts.objective: 0.0}, dict[str, float]()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(mock.patch.object(loop, "_dev_scores", return_value=scores))
        for name in ("save_best", "save_last"):
            stack.enter_context(mock.patch.object(Checkpoints, name))
        begin = CLOCK()
        list(loop.fit(parts, config.training, Checkpoints(Path(folder))))
        return CLOCK() - begin


class Theirs:
    """The same rows and encoder in Hugging Face's Trainer."""

    def __init__(self, cell: Cell, parts: loop.Parts) -> None:
        from transformers import (
            AutoModelForSequenceClassification,
            AutoModelForTokenClassification,
            DataCollatorForTokenClassification,
            DataCollatorWithPadding,
        )

        self.cell, self.parts = cell, parts
        rows = parts.train.rows
        names = ("input_ids", "token_type_ids", "attention_mask")
        if cell.data == "MRPC":
            self.model = AutoModelForSequenceClassification.from_pretrained(cell.encoder, num_labels=2)
            labels: list[Any] = [row["label"] for row in rows]
            self.collator: Any = DataCollatorWithPadding(parts.tokenizer)
        else:
            num_labels = max(max(row["tags"], default=0) for row in rows) + 1
            self.model = AutoModelForTokenClassification.from_pretrained(cell.encoder, num_labels=num_labels)
            tags = [dict(zip(row["places"], row["tags"], strict=True)) for row in rows]
            labels = [
                [tag.get(place, -100) for place in range(len(row["input_ids"]))]
                for tag, row in zip(tags, rows, strict=True)
            ]
            self.collator = DataCollatorForTokenClassification(parts.tokenizer)
        self.rows = [
            {**{name: row[name] for name in names}, "labels": label} for row, label in zip(rows, labels, strict=True)
        ]

    def __call__(self) -> float:
        """Seconds of this process in an epoch."""
        from transformers import Trainer, TrainerCallback, TrainingArguments

        times: list[float] = []

        class Clock(TrainerCallback):
            def on_epoch_begin(self, *_: Any, **__: Any) -> None:
                times.append(CLOCK())

            def on_epoch_end(self, *_: Any, **__: Any) -> None:
                times.append(CLOCK())

        quiet: dict[str, Any] = {
            "report_to": "none",
            "save_strategy": "no",
            "disable_tqdm": True,
            "use_cpu": True,
            "warmup_steps": 2,
        }
        arguments = TrainingArguments(
            str(self.cell.folder / "trainer"),
            num_train_epochs=1,
            per_device_train_batch_size=BATCH_SIZE,
            **quiet,
            **MODES[self.cell.mode],
        )
        trainer = Trainer(
            self.model, arguments, train_dataset=self.rows, data_collator=self.collator, callbacks=[Clock()]
        )
        trainer.train()
        return times[1] - times[0]


def peak(cell: Cell, side: str) -> float:
    """The memory that training takes in a process of its own, in MB."""
    command = [sys.executable, "-m", "tests.benchmarks.training", "--alone", side, "--cell"]
    command += [cell.data, cell.size, cell.mode, str(cell.folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


def alone(cell: Cell, side: str) -> None:
    parts = cell.parts(cell.num_rows)
    theirs = Theirs(cell, parts) if side == "theirs" else None
    before = psutil.Process().memory_info().rss
    if theirs:
        theirs()
    else:
        ours(parts, cell.config())
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before) / 1e6)


@contextmanager
def clocked(seconds: list[float]) -> Iterator[None]:
    """Notes the time within forward and loss, backward, clipping and the optimizer's step."""

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            begin = CLOCK()
            found = function(*arguments, **named)
            seconds.append(CLOCK() - begin)
            return found

        return call

    with ExitStack() as stack:
        for owner, name in [
            (step, "forward"),
            (step.Gradient, "_weighted"),
            (torch.autograd, "backward"),
            (nn.utils, "clip_grad_norm_"),
            (torch.optim.AdamW, "step"),
        ]:
            stack.enter_context(mock.patch.object(owner, name, timed(getattr(owner, name))))
        yield


def share_outside(cell: Cell) -> float:
    """The share of a step's time that is neither forward nor backward nor the optimizer's step."""
    parts = cell.parts(cell.num_rows)
    ours(parts, cell.config())
    seconds: list[float] = []
    with clocked(seconds):
        whole = ours(parts, cell.config())
    return 1 - sum(seconds) / whole


def _in_group(rank: int, size: int, cell: Cell, file: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{file}", rank=rank, world_size=size)
    settings = {"training.batch_size": 2 * BATCH_SIZE}
    parts = cell.parts(8 * 2 * BATCH_SIZE, **settings)
    ours(parts, cell.config(**settings))
    dist.barrier()
    begin = time.perf_counter()
    ours(parts, cell.config(**settings))
    if rank == 0:
        Path(f"{file}.seconds").write_text(str(time.perf_counter() - begin))
    dist.barrier()
    dist.destroy_process_group()


def in_group(cell: Cell, size: int, file: Path) -> float:
    """Seconds of an epoch of doubled steps with so many workers of one thread."""
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    spawn(_in_group, (size, cell, str(file)), nprocs=size)
    return float(Path(f"{file}.seconds").read_text())


def compared(cell: Cell, rounds: int) -> float:
    """How many times as many examples a second ours does: the median over rounds."""
    parts, config = cell.parts(cell.num_rows), cell.config()
    theirs = Theirs(cell, parts)
    times = [(theirs(), ours(parts, config)) for _ in range(rounds + 1)][1:]  # the first round warms up
    ratios = sorted(other / own for other, own in times)
    median, spread = statistics.median(ratios), f"[{ratios[0]:.2f}, {ratios[-1]:.2f}]"
    rate = cell.num_rows / statistics.median(own for _, own in times)
    print(f"{cell.data:7} {cell.size:7} {cell.mode:8} {median:5.2f} {spread} {rate:8.1f} examples/s", flush=True)
    return median


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--alone", choices=["ours", "theirs"], help=argparse.SUPPRESS)
    parser.add_argument("--cell", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.alone:
        data, size, mode, folder = arguments.cell
        alone(Cell(data, size, mode, Path(folder)), arguments.alone)
    else:
        with tempfile.TemporaryDirectory() as folder:
            report(Path(folder), arguments.rounds)


def report(folder: Path, rounds: int) -> None:
    cells = [Cell(data, size, mode, folder) for size in SIZES for data in PRESETS for mode in MODES]
    for cell in cells[:: len(MODES)]:
        cell.save_encoder()
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs; 1 thread, batch {BATCH_SIZE}")
    print("examples/s over those of the Trainer: median and range of interleaved rounds")
    ratios = {cell: compared(cell, rounds) for cell in cells}
    large = [cell for cell in cells if cell.size == "MiniLM"]
    print("peak memory of training over that of the Trainer, each in a process of its own")
    memory = {}
    for cell in large:
        own, other = peak(cell, "ours"), peak(cell, "theirs")
        memory[cell] = own / other
        print(
            f"{cell.data:7} {cell.size:7} {cell.mode:8} {memory[cell]:5.2f}  ({own:.0f} MB, {other:.0f} MB)", flush=True
        )
    outside = {cell: share_outside(cell) for cell in large}
    print("share of time outside forward, backward and step: " + ", ".join(f"{each:.1%}" for each in outside.values()))
    two = [
        in_group(large[0], 1, folder / f"1-{index}") / in_group(large[0], 2, folder / f"2-{index}")
        for index in range(rounds)
    ]
    print(f"two workers over one, a step of {2 * BATCH_SIZE} rows: " + ", ".join(f"{each:.2f}" for each in two))
    figures = {
        "default_ratio": min(ratio for cell, ratio in ratios.items() if cell.mode == "default"),
        "best_ratio": min(ratio for cell, ratio in ratios.items() if cell.mode == "best"),
        "memory_ratio": max(memory.values()),
        "outside_share": max(outside.values()),
        "two_workers_ratio": statistics.median(two),
    }
    print(json.dumps({name: round(value, 3) for name, value in figures.items()}))


if __name__ == "__main__":
    main()
