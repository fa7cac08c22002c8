"""Sweeps that are disturbed while they run: their drivers, random moments, and what is lost or doubled at the end."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeAlias

import psutil

from dice_ray.metrics.catalogue import best_evaluation
from dice_ray.tracking.reader import curves, read
from dice_ray.tracking.schema import is_constant
from dice_ray.tuning.ledger import Ledger, TrialOutcome
from tests.faults.tries import Try, sharing
from tests.machines import of_driver
from tests.processes import TRIAL, title, titled

NUM_TRIALS: Final = 6
NUM_STEPS: Final = 50
"""Of each trial."""
NAME: Final = "sweep"
SETTINGS: Final = (
    *("data.source.synthetic.size=200", "training.epochs=2", "training.evaluations=4", "training.batch_size=8"),
    *("loss=custom", "loss.custom.target=tests.faults.counted:counted", 'loss.custom.parameters={"file": "steps"}'),
)
PROGRAM: Final = "from dice_ray.cli.app import main; main()"
SECONDS: Final = 600
"""What takes longer hangs."""


@dataclass(frozen=True)
class Sweep:
    """A sweep of quick trials in a folder, which `dice-ray` drives in a process of its own.

    Attributes:
        folder: Where the driver runs.
        scratch: Where Ray leaves its files: a short path, since it holds sockets.
        cpus: Of the local Ray: so many trials run at once.
        num_trials: Of the sweep.
        space: Its address.
        settings: Over `SETTINGS`.
        options: Of `tune` and of `resume`.
        environment: Of the driver, over the one of this process.
        prefix: The words before a command that runs on the driver's machine.
    """

    folder: Path
    scratch: Path
    cpus: int = 1
    num_trials: int = NUM_TRIALS
    space: str = "tests.tuning.spaces:rate"
    settings: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    only_tune: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        return self.folder / "dice_ray_runs" / NAME

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.path / "ledger.jsonl")

    @property
    def steps(self) -> int:
        """How many steps have been trained."""
        file = self.folder / "steps"
        return file.stat().st_size if file.exists() else 0

    @property
    def messages(self) -> str:
        """What the last driver wrote to its stderr, in one line."""
        return " ".join((self.folder / "driver.txt").read_text(errors="replace").split())

    @property
    def store(self) -> str:
        return self.environment.get("MLFLOW_TRACKING_URI", f"sqlite:///{self.folder / 'mlflow.db'}")

    @contextmanager
    def driver(self) -> Iterator[subprocess.Popen[bytes]]:
        """`dice-ray tune`, or `resume` where there is something to resume; nothing of it is left after the block."""
        words = ["resume", NAME]
        if not (self.path / "plan.yaml").exists():
            settings = [word for each in (*SETTINGS, *self.settings) for word in ("--set", each)]
            words = ["tune", "synthetic_pairs", *settings, "--space", self.space, "--trials", str(self.num_trials)]
            words += ["--scheduler", "none", "--name", NAME, *self.only_tune]
        own = {"TMPDIR": str(self.scratch), "RAY_worker_niceness": "0"}  # Ray's 15 starves beside other rows
        if not self.options:  # a cluster says itself what it has
            own["RAY_OVERRIDE_RESOURCES"] = json.dumps({"CPU": self.cpus})
        command = ["-c", PROGRAM, *words, *self.options]
        with running(self.folder, {**own, **self.environment}, command, self.prefix) as driver:
            yield driver

    def finish(self) -> int:
        """Run the driver to its end; its exit status."""
        with self.driver() as driver:
            return driver.wait(SECONDS)

    def wait(self, driver: subprocess.Popen[bytes], steps: int) -> bool:
        """Wait until so many more steps have been trained; False where the driver has ended before."""
        until = self.steps + steps
        return self.wait_for(driver, lambda: self.steps > until)

    def wait_for(self, driver: subprocess.Popen[bytes], holds: Callable[[], bool]) -> bool:
        """Wait until a condition holds; False where the driver has ended before."""
        deadline = time.monotonic() + SECONDS
        while driver.poll() is None:
            if holds():
                return True
            assert time.monotonic() < deadline, f"the driver hangs: {self.messages[-300:]}"
            time.sleep(0.02)
        return False

    def random_moment(self, driver: subprocess.Popen[bytes], *, in_startup: bool) -> str | None:
        """Wait for one, in words; None where the driver has ended before. One in five is before the first step."""
        if in_startup and random.random() < 0.2:
            seconds = random.uniform(0, 10)
            with suppress(subprocess.TimeoutExpired):
                driver.wait(seconds)
                return None
            return f"{seconds:.1f} s after its start"
        steps = random.randrange(60)
        return f"after {self.steps} steps" if self.wait(driver, steps) else None

    def trials(self, driver: subprocess.Popen[bytes]) -> list[psutil.Process]:
        """The processes in which trials train now."""
        return [trial for trial in titled(*TRIAL, below=driver.pid) if title(trial).endswith(".train")]

    def check(self, before: Sequence[Ledger], again: int, code: int, failed: Collection[str] = ()) -> Try:
        """In what the ledger and MLflow are not those of a sweep that nothing has disturbed.

        Args:
            before: The ledger as it was at each fault.
            again: How many trials went on from their last checkpoint, at most.
            code: The exit status of the last driver.
            failed: What the reason of a failure may begin with.
        """
        if code:
            return Try("", lost=1, faults=(f"the driver ended with {code}: {self.messages[-200:]}",))
        ledger, faults = self.ledger, []
        for ended in ledger.outcomes.values():
            if ended.failure is not None and not ended.failure.startswith(tuple(failed) or "no reason"):
                faults.append(f"{ended.id} failed: {ended.failure[:200]}")
        expected = {f"{number:04d}" for number in range(1, self.num_trials + 1)}
        lost = Counter(trials=len(expected - ledger.outcomes.keys()))
        doubled = Counter(lines=ledger.path.read_bytes().count(b"\n") - 2 * self.num_trials)
        for each in before:
            lost["events"] += len(_missing(each, ledger))
        runs, points = read(NAME, self.store), curves(NAME, self.store)
        lost["runs"] = len({*ledger.outcomes, NAME} - set(runs["id"]))
        doubled["runs"] = len(runs) - runs["id"].nunique()
        states = dict(zip(runs["id"], runs["status"], strict=True))
        for id_, ended in ledger.outcomes.items():
            if states.get(id_) != ("FAILED" if ended.state == "failed" else "FINISHED"):
                faults.append(f"{id_} is {states.get(id_)} in MLflow and {ended.state} in the ledger")
        if states.get(NAME) != "FINISHED":
            faults.append(f"the sweep is {states.get(NAME)} in MLflow")
        points = points[points["id"] != NAME]  # of which MLflow has the outcome
        stored = Counter(points[["id", "step", "metric", "value"]].itertuples(index=False, name=None))
        noted = Counter(point for ended in ledger.outcomes.values() for point in _points(ended))
        lost["points"] = (noted - stored).total()
        doubled["points"] = int(points.duplicated(["id", "step", "metric"]).sum())
        # A trial that hangs or takes too much memory fails when it is tried again, without what it had reported before.
        if unknown := {id_ for id_, *_ in stored - noted if ledger.outcomes[id_].state != "failed"}:
            faults.append(f"MLflow has other points than the ledger: {sorted(unknown)}")
        if not failed:
            stops = [[0, *(step for step, _ in ended.curve)] for ended in ledger.outcomes.values()]
            least = sum(steps[-1] for steps in stops)
            most = least + again * max(step - last for steps in stops for last, step in pairwise(steps))
            lost["steps"], doubled["steps"] = max(0, least - self.steps), max(0, self.steps - most)
        faults += [f"{number} {what} lost" for what, number in lost.items() if number]
        faults += [f"{number} {what} doubled" for what, number in doubled.items() if number]
        return Try("", lost=lost.total(), doubled=doubled.total(), faults=tuple(faults))


def _missing(before: Ledger, after: Ledger) -> list[str]:
    """The trials of which an event was noted that is not noted any more."""
    began = [id_ for id_, spec in before.specs.items() if after.specs.get(id_) != spec]
    return began + [id_ for id_, ended in before.outcomes.items() if after.outcomes.get(id_) != ended]


def _points(ended: TrialOutcome) -> Iterator[tuple[str, int, str, float]]:
    for (step, _), metrics in zip(ended.curve, ended.metrics, strict=True):
        yield from ((ended.id, step, name, value) for name, value in metrics.items() if not is_constant(name))
    if ended.curve:
        step, score = ended.curve[best_evaluation([score for _, score in ended.curve], ended.metrics)]
        yield ended.id, step, "dev/best_f1", score


Kill: TypeAlias = Callable[[Sweep, "subprocess.Popen[bytes]"], float | None]
"""Disturbs a sweep now; the seconds until it is noticed. Raises AssertionError where it is noticed wrongly."""
Make: TypeAlias = Callable[[Path, Path], Sweep]


def killed_in_turn(
    folder: Path, tries: int, kill: Kill, make: Make = Sweep, *, in_startup: bool = True, most: int = 20
) -> Iterator[Try]:
    """Tries that end the driver: a sweep is resumed after each, and hit again until it ends, so many times at most."""
    while tries > 0:
        kills: list[Try] = []
        before: list[Ledger] = []
        again = 0
        with fresh(folder, make) as sweep:
            has_ended = False
            while not has_ended and len(kills) < min(tries, most):
                with sweep.driver() as driver:
                    moment = sweep.random_moment(driver, in_startup=in_startup)
                    has_ended = moment is None
                    assert not driver.returncode, f"the driver ended before a fault: {sweep.messages[-300:]}"
                    if moment is not None:
                        kills.append(tried(moment, kill, sweep, driver))
                        before.append(sweep.ledger)
                        again += len(before[-1].unfinished)
            whole = checked(partial(_finished, sweep, before, again))
        tries -= len(kills)
        yield from sharing(kills, whole)
        if not kills:
            yield Try("the driver ended before any fault", faults=(whole.faults or ("no fault",)))
            return


def survived_in_turn(
    folder: Path, tries: int, kill: Kill, make: Make = Sweep, *, most: int = NUM_TRIALS, failed: Collection[str] = ()
) -> Iterator[Try]:
    """Tries that the driver survives, so many at most in one sweep; trials may fail for these reasons."""
    while tries > 0:
        kills: list[Try] = []
        before: list[Ledger] = []
        with fresh(folder, make) as sweep:
            with sweep.driver() as driver:
                while len(kills) < min(tries, most) and sweep.wait(driver, 20 + random.randrange(40)):
                    moment = f"after {sweep.steps} steps"
                    before.append(sweep.ledger)
                    kills.append(tried(moment, kill, sweep, driver))
                code = driver.wait(SECONDS)
            whole = checked(partial(sweep.check, before, sweep.cpus * len(kills), code, failed))
        tries -= len(kills)
        yield from sharing(kills, whole)
        if not kills:
            yield Try("the driver ended before any fault", faults=(whole.faults or ("no fault",)))
            return


def _finished(sweep: Sweep, before: Sequence[Ledger], again: int) -> Try:
    return sweep.check(before, again, sweep.finish())


def tried(moment: str, kill: Kill, sweep: Sweep, driver: subprocess.Popen[bytes]) -> Try:
    try:
        return Try(moment, kill(sweep, driver))
    except (AssertionError, psutil.Error, subprocess.TimeoutExpired) as error:
        return Try(moment, faults=(" ".join(str(error).split())[:300],))


def checked(check: Callable[[], Try]) -> Try:
    """The outcome of a check, also where it cannot be made: then something is lost."""
    try:
        return check()
    except Exception as error:  # noqa: BLE001  whatever stops the check is a fault of what was to be checked
        return Try("", faults=(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}",))


@contextmanager
def fresh(folder: Path, make: Make = Sweep) -> Iterator[Sweep]:
    """A sweep in folders of its own."""
    with tempfile.TemporaryDirectory(dir=folder) as own, tempfile.TemporaryDirectory(prefix="dr-") as scratch:
        yield make(Path(own), Path(scratch))


@contextmanager
def running(
    folder: Path, environment: Mapping[str, str], arguments: Sequence[str], prefix: Sequence[str] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """A Python process in a folder: nothing of it is left after the block."""
    with (
        (folder / "driver.txt").open("w") as output,
        subprocess.Popen(
            [*prefix, sys.executable, *arguments],
            cwd=folder,
            env=of_driver(environment),
            stdout=subprocess.DEVNULL,
            stderr=output,
            start_new_session=True,
        ) as driver,
    ):
        try:
            yield driver
        finally:
            with suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
