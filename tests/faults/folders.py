"""Run folders that two drivers want, or that were copied, moved, renamed or made read-only after a kill."""

from __future__ import annotations

import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from dice_ray.tracking.reader import read
from tests.faults import lone
from tests.faults.lone import NAME, TRAIN
from tests.faults.sweeps import checked
from tests.faults.tries import Rows, Try

ELSEWHERE: Final = (*TRAIN[:-1], "elsewhere")
"""The command under another name."""


def after_a_kill(then: Callable[[str, Path], Try], folder: Path, tries: int) -> Iterator[Try]:
    """A run is killed at a random moment; its folder is not as it was when it is resumed."""
    for _ in range(tries):
        with tempfile.TemporaryDirectory(dir=folder) as own:
            work = Path(own) / "work"
            work.mkdir()
            lone.new_store(folder, work)
            with lone.driver(work, *TRAIN) as driver:
                moment = driver.random_moment()
                driver.stop()
            if not (work / "dice_ray_runs" / NAME / "config.yaml").exists():
                moment += ", before its folder was made"
                yield checked(lambda: _resumed(moment, work, []))  # noqa: B023  called at once
            else:
                yield checked(partial(then, moment, work))


def _resumed(moment: str, work: Path, faults: list[str]) -> Try:
    """Resume the run, which must end."""
    lone.must_end(work, TRAIN, faults)
    return lone.checked(moment, None, _store(work), faults)


def _store(work: Path) -> str:
    return f"sqlite:///{work / 'mlflow.db'}"


def moved(moment: str, work: Path) -> Try:
    """The whole working directory, with MLflow's store."""
    return _resumed(moment, work.rename(work.with_name("moved")), [])


def renamed(moment: str, work: Path) -> Try:
    """The run goes on under its new name, and the one of the old name stays as it was killed where MLflow knows it."""
    folder = work / "dice_ray_runs"
    (folder / NAME).rename(folder / ELSEWHERE[-1])
    faults: list[str] = []
    lone.must_end(work, ELSEWHERE, faults)
    runs = read("train", _store(work))
    if (found := runs[runs["id"] == NAME]["status"].tolist()) not in ([], ["KILLED"]):
        faults.append(f"{NAME} is {found} in MLflow")
    return lone.checked(moment, None, _store(work), faults, (ELSEWHERE[-1],), others=(NAME,))


def copied(moment: str, work: Path) -> Try:
    """The copy and the original go on, in a random order; each is a run of its own."""
    runs = work / "dice_ray_runs"
    shutil.copytree(runs / NAME, runs / ELSEWHERE[-1])
    faults: list[str] = []
    for command in random.sample([TRAIN, ELSEWHERE], 2):
        lone.must_end(work, command, faults)
    return lone.checked(moment, None, _store(work), faults, (NAME, ELSEWHERE[-1]))


def read_only(moment: str, work: Path) -> Try:
    """One clear error, and the run goes on when its folder can be written again."""
    faults = []
    start = time.monotonic()
    with _read_only(work / "dice_ray_runs"), lone.driver(work, *TRAIN) as driver:
        code = driver.wait()
        seconds = time.monotonic() - start
        if code != 1 or "Traceback" in driver.messages or "written" not in driver.messages:
            faults.append(f"exit {code}: {driver.messages[-300:]}")
    outcome = _resumed(moment, work, faults)
    return Try(moment, seconds, outcome.lost, outcome.doubled, outcome.faults)


@contextmanager
def _read_only(folder: Path) -> Iterator[None]:
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def two_drivers(folder: Path, tries: int) -> Iterator[Try]:
    """A second driver of a name is refused while the first one runs, which does not notice it."""
    for _ in range(tries):
        with tempfile.TemporaryDirectory(dir=folder) as own:
            yield checked(partial(_two_drivers, folder, Path(own)))


def _two_drivers(above: Path, work: Path) -> Try:
    lone.new_store(above, work)
    faults = []
    with lone.driver(work, *TRAIN, output="first.txt") as first:
        moment = first.random_moment()
        start = time.monotonic()
        with lone.driver(work, *TRAIN) as second:
            code = second.wait()
            seconds = time.monotonic() - start
            codes = (first.wait(), code)
    refused = [driver for driver, code in zip((first, second), codes, strict=True) if code]
    if len(refused) == 2 or any("must have one driver" not in driver.messages for driver in refused):
        faults.append(f"exit {codes}: {' and '.join(driver.messages[-200:] for driver in refused)}")
    return lone.checked(moment, seconds if refused else None, _store(work), faults)


ROWS: Final[Rows] = {
    "two drivers on one name": two_drivers,
    "a killed run's folder copied": partial(after_a_kill, copied),
    "a killed run's folder renamed": partial(after_a_kill, renamed),
    "the working directory of a killed run moved": partial(after_a_kill, moved),
    "a killed run's folder read-only": partial(after_a_kill, read_only),
}
