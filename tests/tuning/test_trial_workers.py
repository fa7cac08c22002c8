"""A trial on Ray Train whose own process is killed: its workers go, and it goes on to its end with others."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import psutil
import pytest

from dice_ray.config.load import Layer, values_layer
from dice_ray.tuning import search
from dice_ray.tuning.ledger import Ledger
from dice_ray.tuning.plan import SweepPlan

if TYPE_CHECKING:
    from dice_ray.tuning.progress import Progress

SPACE = f"{Path(__file__).with_name('spaces.py')}:two_rates"


def processes(*titles: str) -> set[int]:
    commands = {each.pid: _command(each) for each in psutil.Process().children(recursive=True)}
    return {pid for pid, command in commands.items() if any(title in command for title in titles)}


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


class Killer:
    """A screen that kills the trial's process at its first score, and times how long its workers outlive it."""

    def __init__(self, terminal: TextIO) -> None:
        self.seconds: float | None = None
        self.left: set[int] = set()
        self.watching: threading.Thread | None = None

    def __enter__(self) -> Killer:
        return self

    def __exit__(self, *error: object) -> None:
        if self.watching is not None:
            self.watching.join(60)

    def update(self, state: Progress) -> None:
        trials = processes("ray::ResourceTrainable", "ray::Trial")  # at work, and between two steps
        if state.best_score is not None and self.watching is None and len(trials) == 1:
            (trial,), self.left = trials, processes("RayTrainWorker")
            self.watching = threading.Thread(target=self.watch)
            os.kill(trial, signal.SIGKILL)
            self.watching.start()

    def watch(self) -> None:
        killed = time.monotonic()
        while self.left & processes("RayTrainWorker") and time.monotonic() - killed < 60:
            time.sleep(0.1)
        self.seconds = time.monotonic() - killed


@pytest.mark.ray
def test_a_killed_trial_frees_its_workers_and_goes_on(tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    wide = {"launch.workers": 2, "training.epochs": 12, "training.evaluations": 12}
    plan = SweepPlan(
        name="wide", layers=(*layers, values_layer("--set", wide)), space=SPACE, trials=1, scheduler="none"
    )
    killers: list[Killer] = []

    def show(terminal: TextIO) -> Killer:
        killers.append(Killer(terminal))
        return killers[-1]

    assert search.run(plan, tmp_path / "wide", num_cpus=3, show=show).done == 1  # no CPU is left for others
    assert len(killers[0].left) == 2
    assert killers[0].seconds is not None
    assert killers[0].seconds < 10
    (ended,) = Ledger(tmp_path / "wide" / "ledger.jsonl").ended.values()
    assert len({step for step, _ in ended.curve}) == len(ended.curve) == 12
