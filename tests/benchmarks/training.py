"""The training loop against Hugging Face's Trainer: examples a second, peak memory, where time goes, two workers."""

from __future__ import annotations

import argparse
import json
import os
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

from dice_ray.api.shipped import preset_file
from dice_ray.config.load import Layer, read_layer, resolve, values_layer
from dice_ray.config.schema import RunConfig
from dice_ray.data import sources
from dice_ray.models.encoder import ModelConfig, load_tokenizer
from dice_ray.run import build
from dice_ray.training import loop, step
from dice_ray.training.checkpoint import Checkpoints
from dice_ray.training.evaluate import EncodedSplit
from tests.benchmarks.trainer import MODES, Theirs, clock

DATA = {"MRPC": "mrpc", "UD POS": "ud_ewt", "SQuAD windows": "squad2_dev"}
"""Presets: their batch sizes and lengths are those of both sides."""
SIZES: dict[str, dict[str, Any]] = {
    "BERT-base": {},  # the defaults of BertConfig
    "MiniLM": {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536},
    "tiny": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128},
}
STEPS = {mode: steps * (8 if torch.cuda.is_available() else 1) for mode, steps in {"default": 8, "best": 16}.items()}
"""Of an epoch: enough where both sides group by length, which they do among many steps, and for a GPU's short steps."""
OF_ONE_LENGTH = "SQuAD windows"
"""Nothing is grouped there, and a step takes ten times as long: half of the steps will do."""


@dataclass(frozen=True)
class Cell:
    """One data set, encoder and mode; everything in it is the same for both sides."""

    data: str
    size: str
    mode: str
    folder: Path

    def __str__(self) -> str:
        return f"{self.data:13} {self.size:6} {self.mode:7}"

    @property
    def encoder(self) -> Path:
        return self.folder / f"{self.data} {self.size}"

    @property
    def batch_size(self) -> int:
        return resolve([self.preset]).training.batch_size

    @property
    def num_rows(self) -> int:
        return STEPS[self.mode] // (2 if self.data == OF_ONE_LENGTH else 1) * self.batch_size

    def config(self, **values: Any) -> RunConfig:
        settings = {
            "model.encoder": str(self.encoder),
            "training.epochs": 1,
            "training.precision": "auto" if self.mode == "best" else "fp32",
        }
        return resolve([self.preset, values_layer("benchmark", settings | values)])

    @property
    def preset(self) -> Layer:
        return read_layer(preset_file(DATA[self.data]))

    def save_encoder(self) -> None:
        """An encoder of random weights in a folder, as both sides load it."""
        from transformers import BertConfig, BertModel

        if self.encoder.exists():
            return
        config = resolve([self.preset])
        records = sources.load(config.data).train
        task = config.task.build(config.task.classes(records))
        torch.manual_seed(0)
        BertModel(BertConfig(**SIZES[self.size])).save_pretrained(self.encoder)
        load_tokenizer(ModelConfig(), task.texts(records)).save_pretrained(self.encoder)

    def parts(self, **values: Any) -> loop.Parts:
        """What is trained, on rows from all over the training split."""
        parts = build.build(self.config(**values))
        rows = [parts.train.rows[number * len(parts.train.rows) // self.num_rows] for number in range(self.num_rows)]
        train = EncodedSplit(parts.train.records, rows)
        first = max(row["record"] for row in parts.dev.rows[:8]) + 1
        return replace(parts, train=train, dev=EncodedSplit(parts.dev.records[:first], parts.dev.rows[:8]))

    def theirs(self, parts: loop.Parts) -> Theirs:
        return Theirs(parts, self.encoder, self.mode, self.batch_size)


def ours(parts: loop.Parts, config: RunConfig) -> float:
    """Seconds of an epoch, without scoring and checkpoints: there are none in the Trainer's."""
    scores = {parts.objective: 0.0}, dict[str, float]()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(mock.patch.object(loop, "_dev_scores", return_value=scores))
        for name in ("save_best", "save_last"):
            stack.enter_context(mock.patch.object(Checkpoints, name))
        begin = clock()
        list(loop.fit(parts, config.training, Checkpoints(Path(folder))))
        return clock() - begin


def speed(cells: list[Cell], rounds: int) -> dict[str, float]:
    """How many times as many examples a second ours does: the median over rounds, the least over cells of a mode."""
    print("examples/s over those of the Trainer: median and range of interleaved rounds")
    found: dict[str, list[float]] = {}
    for cell in cells:
        parts, config = cell.parts(), cell.config()
        theirs = cell.theirs(parts)
        times = [(theirs(cell.folder), ours(parts, config)) for _ in range(rounds + 1)][1:]  # the first one warms up
        ratios = sorted(other / own for other, own in times)
        found.setdefault(f"{cell.mode}_ratio", []).append(statistics.median(ratios))
        own, other = (cell.num_rows / statistics.median(each) for each in zip(*[t[::-1] for t in times], strict=True))
        spread = f"{found[f'{cell.mode}_ratio'][-1]:5.2f} [{ratios[0]:.2f}, {ratios[-1]:.2f}]"
        print(f"{cell} {spread}  {own:8.1f} beside {other:.1f} examples/s", flush=True)
    return {name: min(each) for name, each in found.items()}


def memory(cells: list[Cell], rounds: int) -> dict[str, float]:
    """Ours over theirs, the most over cells."""
    print("peak memory of training over that of the Trainer, each in a process of its own")
    found = []
    for cell in cells:
        own, other = _peak(cell, "ours"), _peak(cell, "theirs")
        found.append(own / other)
        print(f"{cell} {found[-1]:5.2f}  ({own:.0f} MB beside {other:.0f} MB)", flush=True)
    return {"memory_ratio": max(found)}


def _peak(cell: Cell, side: str) -> float:
    """The memory that training takes in a process of its own, or on its GPU, in MB."""
    command = [sys.executable, "-m", "tests.benchmarks.training", "--alone", side, str(cell.folder)]
    command += ["--data", cell.data, "--size", cell.size, "--mode", cell.mode]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


def alone(cell: Cell, side: str) -> None:
    """One side in this process: what it took at most over what it had at its start."""
    parts = cell.parts()
    theirs = cell.theirs(parts) if side == "theirs" else None
    if theirs:
        theirs.model.to(parts.numerics.device)
    before, before_on_gpu = psutil.Process().memory_info().rss, torch.cuda.memory_allocated()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here: what made the rows does not count
    if theirs:
        theirs(cell.folder)
    else:
        ours(parts, cell.config())
    if torch.cuda.is_available():
        print((torch.cuda.max_memory_allocated() - before_on_gpu) / 1e6)
        return
    (peak,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    print((int(peak.split()[1]) * 1024 - before) / 1e6)


@contextmanager
def clocked(seconds: list[float]) -> Iterator[None]:
    """Notes the time within forward and loss, backward, clipping and the optimizer's step."""

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            begin = clock()
            found = function(*arguments, **named)
            seconds.append(clock() - begin)
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


def outside(cells: list[Cell], rounds: int) -> dict[str, float]:
    """The share of a step's time that is neither forward nor backward nor the optimizer's step, the most over cells."""
    print("share of time outside forward, backward and step")
    found = []
    for cell in cells:
        parts, shares = cell.parts(), []
        for _ in range(max(rounds, 2)):  # a share varies less than a ratio of two sides
            seconds: list[float] = []
            with clocked(seconds):
                whole = ours(parts, cell.config())
            shares.append(1 - sum(seconds) / whole)
        found.append(statistics.median(shares[1:]))
        print(f"{cell} {found[-1]:6.1%}", flush=True)
    return {"outside_share": max(found)}


def scaling(cells: list[Cell], rounds: int) -> dict[str, float]:
    """How much faster two workers of a thread take a step of doubled batch than one; the least over cells."""
    print("two workers over one, a step of twice the rows: by the clock (load of the machine), by CPU time")
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    found = []
    for cell in cells:
        times = []
        for number in range(rounds):
            loads = []
            for size in (1, 2):
                loads.append(os.getloadavg()[0])
                spawn(_in_group, (size, cell, str(cell.folder / f"{cell} {size} {number}")), nprocs=size)
            one, two = (json.loads((cell.folder / f"{cell} {size} {number}.json").read_text()) for size in (1, 2))
            times.append([first / second for first, second in zip(one, two, strict=True)])
            wall, cpu = times[-1]
            print(f"{cell} {wall:5.2f} ({loads[0]:.1f}, {loads[1]:.1f})  {cpu:5.2f}", flush=True)
        found.append([statistics.median(each) for each in zip(*times, strict=True)])
    return {"two_workers_ratio": min(wall for wall, _ in found), "two_workers_cpu_ratio": min(cpu for _, cpu in found)}


def _in_group(rank: int, size: int, cell: Cell, file: str) -> None:
    """Seconds of an epoch of doubled steps on so many workers of a thread: by the clock, and of the first one's CPU."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{file}", rank=rank, world_size=size)
    settings = {"training.batch_size": 2 * cell.batch_size}
    parts = cell.parts(**settings)
    ours(parts, cell.config(**settings))
    dist.barrier()
    begin = time.perf_counter()
    cpu = ours(parts, cell.config(**settings))
    dist.barrier()
    if rank == 0:
        Path(f"{file}.json").write_text(json.dumps([time.perf_counter() - begin, cpu]))
    dist.destroy_process_group()


def _quiet() -> None:
    """Without the words of transformers about fresh heads, and its bars."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


MEASURES = {"speed": speed, "memory": memory, "outside": outside, "scaling": scaling}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", nargs="+", choices=MEASURES, default=list(MEASURES))
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--size", nargs="+", choices=SIZES, default=["MiniLM"])
    parser.add_argument("--mode", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--alone", nargs=2, metavar=("SIDE", "FOLDER"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    _quiet()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(chosen.alone[1] if chosen.alone else folder)
        cells = [Cell(data, size, mode, place) for data in chosen.data for size in chosen.size for mode in chosen.mode]
        if chosen.alone:
            alone(cells[0], chosen.alone[0])
            return
        for cell in cells:
            cell.save_encoder()
        gpu = f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
        print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs; 1 thread{gpu}", flush=True)
        figures: dict[str, float] = {}
        for name in chosen.measure:
            figures |= MEASURES[name](cells[:1] if name == "scaling" else cells, chosen.rounds)
        print(json.dumps({name: round(value, 3) for name, value in figures.items()}))


if __name__ == "__main__":
    main()
