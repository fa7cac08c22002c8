"""When a machine that joins gets its first trial, by how long an actor takes to start and how long a trial takes.

Run as `python -m tests.cluster.joining [START_SECONDS TRIAL_SECONDS] ...`: a line of figures each.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Final
from unittest.mock import patch

import torch
from torch import Tensor

from dice_ray.losses.cross_entropy import CrossEntropyLoss
from dice_ray.losses.items import Items
from dice_ray.terms import TermFacts
from tests.cluster.machines import REPOSITORY
from tests.faults.sweeps import Sweep
from tests.machines import machines

CASES: Final = ((3, 2), (15, 2), (60, 2), (3, 30), (15, 30), (60, 30))
SLOW: Final = """
import os, sys, time

class Slow:
    def find_spec(self, name, *_):
        if name == "dice_ray.tuning.trial" and "default_worker.py" in " ".join(sys.orig_argv):
            with open(os.environ["STARTS"], "a") as starts:
                starts.write("1")
            time.sleep(float(os.environ["START_SECONDS"]))

sys.meta_path.insert(0, Slow())
"""
"""As if the imports of an actor took so long; it counts them."""
STEPS: Final = 10
"""Of a trial."""


class Sleeping(CrossEntropyLoss):
    """Takes its time in each step, and notes where the trial began."""

    def __init__(self, facts: TermFacts, seconds: float, file: Path) -> None:
        super().__init__(facts.link)
        self._seconds, self._file, self._is_new = seconds, file, True

    def losses(self, items: Items) -> Tensor:
        import ray

        if torch.is_grad_enabled():
            if self._is_new:
                with self._file.open("a") as file:
                    file.write(f"{ray.get_runtime_context().get_node_id()} {time.time()}\n")
            self._is_new = False
            time.sleep(self._seconds)
        return super().losses(items)


def sleeping(facts: TermFacts, seconds: float, file: str) -> Sleeping:
    return Sleeping(facts, seconds, Path(file))


def seconds_to_first_trial(start: float, trial: float, patience: float) -> tuple[float | None, int, int]:
    """Seconds after a third machine joins two busy ones; trials that began meanwhile; actors that started for them.

    None where it has got none after the patience.
    """
    with tempfile.TemporaryDirectory(prefix="dr-") as name:
        folder = Path(name)
        begun, starts = folder / "begun", folder / "starts"
        (folder / "sitecustomize.py").write_text(SLOW)
        own = {
            "PYTHONPATH": f"{folder}:{REPOSITORY}",
            "STARTS": str(starts),
            "START_SECONDS": str(start),
            "RAY_worker_niceness": "0",
        }
        parameters = json.dumps({"seconds": trial / STEPS, "file": str(begun)})
        settings = (
            *("data.source.synthetic.size=100", f"training.batch_size={100 // STEPS}", "training.epochs=1"),
            *("training.evaluations=1", "loss=custom", "loss.custom.target=tests.cluster.joining:sleeping"),
            f"loss.custom.parameters={parameters}",
        )
        with patch.dict(os.environ, own), machines(folder) as cluster:
            options, environment = ("--address", cluster.address), cluster.environment
            sweep = Sweep(folder, folder, num_trials=999, settings=settings, options=options, environment=environment)
            with sweep.driver() as driver:
                assert sweep.wait_for(driver, lambda: len(machines_of(begun)) == 2), sweep.messages
                num_begun, num_starts = len(begun.read_text().splitlines()), len(starts.read_text())
                cluster.add()
                joined = time.monotonic()
                sweep.wait_for(driver, lambda: len(machines_of(begun)) == 3 or time.monotonic() > joined + patience)
                has_trial, seconds = len(machines_of(begun)) == 3, time.monotonic() - joined
                num_begun, num_starts = (
                    len(begun.read_text().splitlines()) - num_begun,
                    len(starts.read_text()) - num_starts,
                )
    return seconds if has_trial else None, num_begun, num_starts


def machines_of(begun: Path) -> set[str]:
    """The machines on which trials have begun."""
    return {line.split()[0] for line in begun.read_text().splitlines()} if begun.exists() else set()


def main(words: list[str]) -> None:
    given = [float(word) for word in words]
    for start, trial in zip(given[::2], given[1::2], strict=True) if given else CASES:
        seconds, num_begun, num_starts = seconds_to_first_trial(start, trial, patience=4 * start + 2 * trial + 60)
        first = "none" if seconds is None else f"{seconds:.0f} s"
        print(
            f"an actor starts in {start:g} s, a trial takes {trial:g} s: first trial after {first}, meanwhile "
            f"{num_begun} trials began, and {num_starts} actors started",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
