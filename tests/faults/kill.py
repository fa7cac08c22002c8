"""A sweep of which something is killed at a random moment: its driver, which is then resumed, a trial, or a machine."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import psutil

from dice_ray.tracking.reader import curves, read
from dice_ray.tracking.schema import is_constant
from dice_ray.tuning.ledger import Ledger
from tests.machines import machines, of_driver
from tests.processes import TRIAL, title, titled

NUM_TRIALS: Final = 10
NUM_STEPS: Final = 50
"""Of each trial."""
DRIVER: Final = f"""
import sys
from pathlib import Path
from dice_ray.config.load import values_layer
from dice_ray.run.driver import Driver
from dice_ray.tuning import sweep
from dice_ray.tuning.plan import SweepPlan

data = {{"task": "sentence_pair", "data.source": "synthetic", "data.source.synthetic.size": 200}}
loss = {{"loss": "custom", "loss.custom.target": "tests.faults.counted:counted"}}
steps = {{"loss.custom.parameters": {{"file": "steps"}}}}
quick = {{"training.epochs": 2, "training.evaluations": 4, "training.batch_size": 8}}
layers = (values_layer("preset", data | loss | steps | quick),)
plan = SweepPlan(name="sweep", layers=layers, space="tests.tuning.spaces:rate", trials={NUM_TRIALS}, scheduler="none")
assert sweep.run(plan, Path("sweep"), Driver(num_cpus=2, address=sys.argv[1])).is_finished
"""


@dataclass(frozen=True)
class Kill:
    """What a kill left, and what became of the sweep.

    Attributes:
        moment: What was killed and when, for the report of a failure.
        before: The ledger as it was then.
        stopped: How many trials it stopped, at most.
        code: The exit code of the driver that ended the sweep.
        folder: Where the sweep ran.
    """

    moment: str
    before: Ledger
    stopped: int
    code: int
    folder: Path

    def faults(self) -> list[str]:
        """In what the ledger and MLflow are not those of a sweep of which nothing was killed."""
        if self.code:
            return [f"the driver ended with {self.code}"]
        file = self.folder / "sweep" / "ledger.jsonl"
        ledger = Ledger(file)
        if failed := [ended for ended in ledger.outcomes.values() if ended.state == "failed"]:
            return [f"{ended.id} failed: {ended.failure}" for ended in failed]
        found = []
        if sorted(ledger.outcomes) != [f"{number:04d}" for number in range(1, NUM_TRIALS + 1)]:
            found.append(f"ended: {sorted(ledger.outcomes)}")
        if file.read_bytes().count(b"\n") != 2 * NUM_TRIALS:
            found.append("a trial began or ended twice")
        kept = (
            self.before.specs.items() <= ledger.specs.items(),
            self.before.outcomes.items() <= ledger.outcomes.items(),
        )
        if not all(kept):
            found.append("the ledger forgot what it had noted")
        store = f"sqlite:///{self.folder / 'mlflow.db'}"
        runs, points = read("sweep", store), curves("sweep", store)
        if sorted(runs["id"]) != sorted([*ledger.outcomes, "sweep"]) or set(runs["status"]) != {"FINISHED"}:
            found.append(f"in MLflow: {runs[['id', 'status']].to_dict('records')}")
        stored = points[["id", "step", "metric", "value"]].itertuples(index=False, name=None)
        if Counter(stored) != Counter(_points(ledger)):
            found.append("the points of MLflow are not those of the ledger")
        stops = [[0, *(step for step, _ in ended.curve)] for ended in ledger.outcomes.values()]
        least = sum(steps[-1] for steps in stops)
        most = least + self.stopped * max(step - before for before, step in pairwise(stops[0]))
        if not least <= (trained := (self.folder / "steps").stat().st_size) <= most:
            found.append(f"trained {trained} steps, of {least} to {most}")
        return found


def driver_killed(folder: Path, scratch: Path) -> Kill:
    """Kill the driver, see that its trials go too, and run it again to the end.

    Args:
        folder: Where the sweep runs.
        scratch: Where Ray leaves its files: a short path, since it holds sockets.
    """
    with driver_of(folder, {"TMPDIR": str(scratch)}) as driver:
        when = _random_moment(folder, driver)
        trials = titled(*TRIAL, below=driver.pid)
        driver.kill()
        driver.wait()
        _, alive = psutil.wait_procs(trials, timeout=100)
        assert not alive, "the trials outlive their driver"
    before = _ledger(folder)
    with driver_of(folder, {"TMPDIR": str(scratch)}) as driver:
        return Kill(f"driver, {when}", before, len(before.unfinished), driver.wait(600), folder)


def trial_killed(folder: Path, scratch: Path) -> Kill:
    """Kill the process of a trial that trains; the driver goes on."""
    with driver_of(folder, {"TMPDIR": str(scratch)}) as driver:
        when = _random_moment(folder, driver)
        while not (trials := [trial for trial in titled(*TRIAL, below=driver.pid) if title(trial).endswith(".train")]):
            assert driver.poll() is None
        before = _ledger(folder)
        random.choice(trials).kill()
        code = driver.wait(600)
    assert "Trial task failed" in (folder / "sweep" / "log.txt").read_text(), "the kill hit no trial"
    return Kill(f"trial, {when}", before, 1, code, folder)


def machine_killed(folder: Path, scratch: Path) -> Kill:
    """Kill one of two machines of a cluster, each with room for one trial; the driver goes on."""
    with machines(scratch) as cluster, driver_of(folder, cluster.environment, cluster.address) as driver:
        when = _random_moment(folder, driver)
        before = _ledger(folder)
        cluster.lose()
        return Kill(f"machine, {when}", before, 1, driver.wait(600), folder)


def machine_added_and_killed(folder: Path, scratch: Path) -> Kill:
    """Add a machine to two, see that a trial starts there, and kill one of the two; the driver goes on."""
    (folder / "hold").touch()
    with machines(scratch) as cluster, driver_of(folder, cluster.environment, cluster.address) as driver:
        wait_for_trials(2, folder, driver)
        cluster.add()
        seconds = wait_for_trials(3, folder, driver)
        (folder / "hold").unlink()
        when = _random_moment(folder, driver)
        before = _ledger(folder)
        cluster.lose()
        moment = f"machine, {when}, another one was added and used within {seconds:.0f} s"
        return Kill(moment, before, 1, driver.wait(600), folder)


def head_killed(folder: Path, scratch: Path) -> Kill:
    """Kill the head of a cluster of two machines, and run the driver again on another cluster."""
    with machines(scratch) as cluster, driver_of(folder, cluster.environment, cluster.address) as driver:
        when = _random_moment(folder, driver)
        cluster.lose_head()
        assert driver.wait(30) == 1
        output = (folder / "driver.txt").read_text()
        assert "dice-ray resume sweep --address HOST:PORT" in output, output
        before = _ledger(folder)
    with machines(scratch) as cluster, driver_of(folder, cluster.environment, cluster.address) as driver:
        return Kill(f"head, {when}", before, len(before.unfinished), driver.wait(600), folder)


KILLS: Final[Mapping[str, Callable[[Path, Path], Kill]]] = {
    "driver": driver_killed,
    "trial": trial_killed,
    "machine": machine_killed,
    "machine after another was added": machine_added_and_killed,
    "head": head_killed,
}


@contextmanager
def driver_of(
    folder: Path, environment: Mapping[str, str], address: str = "local", script: str = DRIVER
) -> Iterator[subprocess.Popen[bytes]]:
    """The driver of the sweep: nothing of it is left after the block."""
    command = [sys.executable, "-c", script, address]
    with (
        (folder / "driver.txt").open("w") as output,
        subprocess.Popen(
            command, cwd=folder, env=of_driver(environment), stderr=output, start_new_session=True
        ) as driver,
    ):
        try:
            yield driver
        finally:
            with suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)


def _random_moment(folder: Path, driver: subprocess.Popen[bytes]) -> str:
    """Wait for it, by the steps that are trained: a fast machine has not ended all before; in words."""
    moment = random.randrange(NUM_STEPS * (NUM_TRIALS - 4))
    ledger, steps = folder / "sweep" / "ledger.jsonl", folder / "steps"
    while not ledger.exists() or (steps.stat().st_size if steps.exists() else 0) < moment:
        assert driver.poll() is None
        time.sleep(0.02)
    return f"after {moment} steps"


def wait_for_trials(number: int, folder: Path, driver: subprocess.Popen[bytes]) -> float:
    """Wait until so many trials run; the seconds that it took."""
    start = time.monotonic()
    while len(_ledger(folder).unfinished) < number:
        assert driver.poll() is None
        assert time.monotonic() - start < 240
        time.sleep(0.1)
    return time.monotonic() - start


def _ledger(folder: Path) -> Ledger:
    return Ledger(folder / "sweep" / "ledger.jsonl")


def _points(ledger: Ledger) -> Iterator[tuple[str, int, str, float]]:
    for id_, ended in ledger.outcomes.items():
        for (step, _), metrics in zip(ended.curve, ended.metrics, strict=True):
            yield from ((id_, step, name, value) for name, value in metrics.items() if not is_constant(name))
        yield id_, ended.curve[-1][0], "dev/best_f1", max(score for _, score in ended.curve)
