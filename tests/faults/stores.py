"""MLflow away, refusing, answering nonsense or nothing, while runs write to it: everything arrives once in the end."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import chdir
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import dice_ray
from dice_ray.errors import RunError
from dice_ray.tracking.reader import curves, read, texts
from dice_ray.tracking.record import RunRecord
from dice_ray.tracking.spool import unsent_spools
from dice_ray.tracking.writer import Writer
from tests.faults.tries import Rows, Try
from tests.tracking.servers import Proxy, Server

EXPERIMENT: Final = "faults"
BEFORE: Final = 10.0
"""Seconds before the fault, in which runs begin too."""
PATIENCE: Final = 5.0
"""Seconds that a call of a run may take: no run waits for the store."""
QUICK: Final = {"data.source.synthetic.size": 200, "training.epochs": 2, "training.evaluations": 8}

Disturb = Callable[[Server, Proxy], None]
"""Lets a fault begin, and last."""


@dataclass
class Run:
    """A run that writes from a random moment on, for some seconds, as a run of `dice-ray train` does.

    Attributes:
        noticed: When the writer first had a failure.
        longest: Of its calls, in seconds.
    """

    key: str
    folder: Path
    uri: str
    begins: float
    lasts: float
    points: list[tuple[int, float]] = field(default_factory=list)
    noticed: float | None = None
    longest: float = 0.0
    error: str | None = None

    def work(self) -> None:
        time.sleep(self.begins)
        try:
            self._write()
        except RunError as error:
            if "wait" not in str(error):
                self.error = str(error)

    def _write(self) -> None:
        writer = Writer(EXPERIMENT, self.uri, self.folder)
        record = RunRecord(writer, self.key)
        self._timed(lambda: record.opened(self.key, {"training.lr": self.begins}, {"mine": self.key}, "loss: dice\n"))
        for step in range(1, 21):
            time.sleep(self.lasts / 20)
            self.points.append((step, random.random()))
            self._timed(partial(record.evaluated, step, {"dev/f1": self.points[-1][1]}))
            if self.noticed is None and writer.failure is not None:
                self.noticed = time.monotonic()
        score, step = max((score, step) for step, score in self.points)
        record.ended("FINISHED", objective="dev/f1", best=(step, {"dev/f1": score}))
        writer.close()
        if self.noticed is None and writer.failure is not None:
            self.noticed = time.monotonic()

    def _timed(self, call: Callable[[], None]) -> None:
        start = time.monotonic()
        call()
        self.longest = max(self.longest, time.monotonic() - start)


def disturbed(disturb: Disturb, lasts: float, folder: Path, tries: int, *, has_proxy: bool = True) -> Iterator[Try]:
    """So many runs at once, each hit at another moment of its life; two more are whole runs of `train`."""
    store = f"sqlite:///{folder / 'mlflow.db'}"
    Writer("first", store).close()
    server = Server(folder, store)
    if disturb is not nothing:
        server.start()
    try:
        with Proxy(server.uri) as proxy:
            threading.Thread(target=proxy.serve_forever, daemon=True).start()
            uri = proxy.uri if has_proxy else server.uri
            yield from _tried(partial(disturb, server, proxy), lasts, server, uri, folder, tries)
            proxy.shutdown()
    finally:
        server.stop()


def _tried(
    disturb: Callable[[], None], lasts: float, server: Server, uri: str, folder: Path, tries: int
) -> Iterator[Try]:
    runs = [
        Run(f"r{number}", folder / f"r{number}", uri, random.uniform(0, BEFORE + lasts), random.uniform(2, 20))
        for number in range(tries)
    ]
    writing = [threading.Thread(target=run.work) for run in runs]
    start = time.monotonic()
    for thread in writing:
        thread.start()
    disturbing = threading.Timer(BEFORE, disturb)
    disturbing.start()
    whole = [_trained(f"whole{number}", uri, folder) for number in range(min(2, tries))]
    for thread in [*writing, disturbing]:
        thread.join()
    server.start()
    for spool in list(unsent_spools(folder)):  # as `dice-ray runs` does
        Writer(spool.experiment, uri, spool.file.parent).close()
    for run in runs:
        began = start + max(BEFORE, run.begins)
        moment = f"begun {run.begins - BEFORE:+.0f} s from the fault, writing for {run.lasts:.0f} s"
        yield _checked(run, moment, server.uri, None if run.noticed is None else max(0.0, run.noticed - began))
    for name, trouble in zip(("whole0", "whole1"), whole, strict=False):
        yield _checked_whole(name, trouble, server.uri)


def _trained(name: str, uri: str, folder: Path) -> str | None:
    """Train a whole run; what its user would have to read as an error."""
    with chdir(folder):
        os.environ["MLFLOW_TRACKING_URI"] = uri
        try:
            dice_ray.train("synthetic_pairs", QUICK, name=name)
        except RunError as error:
            return None if "wait" in str(error) else str(error)
        finally:
            del os.environ["MLFLOW_TRACKING_URI"]
    return None


def _checked(run: Run, moment: str, store: str, seconds: float | None) -> Try:
    faults = [run.error] if run.error else []
    if run.longest > PATIENCE:
        faults.append(f"a call of the run took {run.longest:.1f} s")
    expected = Counter(("dev/f1", step, score) for step, score in run.points)
    step, best = max(run.points, key=lambda point: point[1])
    expected[("dev/best_f1", step, best)] += 1  # at the step of its checkpoint
    points = curves(EXPERIMENT, store)
    points = points[points["id"] == run.key]
    stored = Counter(points[["metric", "step", "value"]].itertuples(index=False, name=None))
    runs = read(EXPERIMENT, store)
    runs = runs[runs["id"] == run.key]
    lost, doubled = (expected - stored).total(), (stored - expected).total()
    if len(runs) != 1:
        return Try(moment, seconds, lost + (not len(runs)), doubled + max(0, len(runs) - 1), tuple(faults))
    (row,) = runs.to_dict("records")
    if row["status"] != "FINISHED" or float(row["params.training.lr"]) != run.begins:
        faults.append(f"it is {row['status']}, with lr {row['params.training.lr']}")
    lost += texts(runs, "config.yaml", store) != {run.key: "loss: dice\n"}
    return Try(moment, seconds, lost, doubled, tuple(faults))


def _checked_whole(name: str, trouble: str | None, store: str) -> Try:
    runs, points = read("train", store), curves("train", store)
    scores = points[(points["id"] == name) & (points["metric"] == "dev/f1")]
    faults = [trouble] if trouble else []
    states = runs[runs["id"] == name]["status"].tolist()
    if states != ["FINISHED"]:
        faults.append(f"in MLflow it is {states}")
    lost, doubled = 8 - scores["step"].nunique(), len(scores) - scores["step"].nunique()
    return Try("a whole run of `train`", lost=lost, doubled=doubled, faults=tuple(faults))


def nothing(server: Server, proxy: Proxy) -> None:
    """The store is not there from the beginning, and comes when all runs have ended."""


def away(seconds: float, server: Server, proxy: Proxy) -> None:
    server.stop()
    time.sleep(seconds)
    server.start()


def answering(status: int, seconds: float, server: Server, proxy: Proxy) -> None:
    proxy.status = status
    time.sleep(seconds)
    proxy.status = 0


def erroneous(seconds: float, server: Server, proxy: Proxy) -> None:
    """500 before the server was asked, and after it has done what it was asked for."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        proxy.status, proxy.fault = random.choice([(500, ""), (0, "late error"), (503, "")])
        time.sleep(0.5)
    proxy.status, proxy.fault = 0, ""


def flapping(seconds: float, server: Server, proxy: Proxy) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        proxy.status = random.choice([401, 403, 404, 0])
        time.sleep(random.uniform(0.2, 2))
    proxy.status = 0


def answered(fault: str, seconds: float, server: Server, proxy: Proxy) -> None:
    proxy.fault = fault
    time.sleep(seconds)
    proxy.fault = ""


ROWS: Final[Rows] = {
    "MLflow away for 60 s": partial(disturbed, partial(away, 60), 60, has_proxy=False),
    "MLflow never there, until all has ended": partial(disturbed, nothing, 5, has_proxy=False),
    "MLflow answers 500": partial(disturbed, partial(erroneous, 20), 20),
    "MLflow answers 429": partial(disturbed, partial(answering, 429, 20), 20),
    "MLflow answers 401, 403, 404 by turns": partial(disturbed, partial(flapping, 20), 20),
    "MLflow's answers break off": partial(disturbed, partial(answered, "half", 20), 20),
    "MLflow hangs": partial(disturbed, partial(answered, "hang", 60), 60),
    "MLflow's answers are no JSON": partial(disturbed, partial(answered, "no JSON", 20), 20),
}
