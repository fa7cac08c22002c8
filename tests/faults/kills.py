"""Processes killed and signals sent at random moments: the driver, a trial, Ray and its workers, and whole machines."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import psutil

from dice_ray.tracking.reader import read
from tests.faults.sweeps import NAME, NUM_TRIALS, Kill, Sweep, checked, fresh, killed_in_turn, survived_in_turn, tried
from tests.faults.tries import Rows, Try, sharing
from tests.machines import Machines, machines
from tests.processes import TRIAL, WORKER, titled

GRACE: Final = 10
"""Seconds between SIGTERM and SIGKILL, as clusters give."""


def driver_killed(sweep: Sweep, driver: subprocess.Popen[bytes]) -> float:
    """Seconds until the trials have gone too."""
    trials = titled(*TRIAL, below=driver.pid)
    driver.kill()
    start = time.monotonic()
    driver.wait()
    _, alive = psutil.wait_procs(trials, timeout=100)
    assert not alive, "the trials outlive their driver"
    return time.monotonic() - start


def part_of_ray_killed(name: str, sweep: Sweep, driver: subprocess.Popen[bytes]) -> float:
    """Seconds until the driver has ended, with one line that says how to go on, and no run is RUNNING in MLflow."""
    (killed,) = (each for each in psutil.Process(driver.pid).children(recursive=True) if each.name() == name)
    killed.kill()
    start = time.monotonic()
    code = driver.wait(100)
    seconds = time.monotonic() - start
    said = re.search(
        rf"its process {name} was killed, .*: `dice-ray resume {NAME}` goes on from there$", sweep.messages
    )
    assert code == 1, f"the driver ended with {code}: {sweep.messages[-200:]}"
    assert said, f"the message must say how to go on: {sweep.messages[-300:]}"
    assert "Traceback" not in sweep.messages
    assert "RUNNING" not in set(read(NAME, sweep.store)["status"]), "runs are left RUNNING in MLflow"
    return seconds


def head_killed(cluster: Machines, sweep: Sweep, driver: subprocess.Popen[bytes]) -> float:
    """Seconds until the driver has ended, with one line that says how to go on."""
    cluster.lose_head()
    start = time.monotonic()
    code = driver.wait(100)
    seconds = time.monotonic() - start
    assert code == 1, f"the driver ended with {code}: {sweep.messages[-200:]}"
    assert f"dice-ray resume {NAME} --address HOST:PORT" in sweep.messages, sweep.messages[-300:]
    assert "RUNNING" not in set(read(NAME, sweep.store)["status"]), "runs are left RUNNING in MLflow"
    return seconds


def signalled(number: int, times: int, patience: float, sweep: Sweep, driver: subprocess.Popen[bytes]) -> float:
    """Seconds until the driver has ended by the signal; what is left after the patience is killed.

    Ctrl-C in a terminal reaches all processes of the driver's group.
    """
    send = os.killpg if number == signal.SIGINT else os.kill
    start = time.monotonic()
    for left in reversed(range(times)):
        with suppress(ProcessLookupError):
            send(driver.pid, number)
        if left:
            with suppress(subprocess.TimeoutExpired):
                driver.wait(random.uniform(0, 3))
    with suppress(subprocess.TimeoutExpired):
        driver.wait(patience)
    if driver.poll() is None and number != signal.SIGTERM:
        raise AssertionError(f"the driver has not ended after {patience:.0f} s")
    # Python itself ends by the signal, before the program handles it; a sweep may have come to its end before.
    codes = {128 + number, -number} | ({0} if len(sweep.ledger.outcomes) == NUM_TRIALS else set())
    assert driver.poll() is None or driver.returncode in codes, f"the driver ended with {driver.returncode}"
    # Before anything is stored Python itself may be interrupted, while it imports the program.
    assert not sweep.path.exists() or "Traceback" not in sweep.messages, f"a traceback: {sweep.messages[-300:]}"
    return time.monotonic() - start


def process_killed(titles: tuple[str, ...], sweep: Sweep, driver: subprocess.Popen[bytes]) -> float:
    """Kill the process in which a trial trains; seconds until another one goes on with it."""
    assert sweep.wait_for(driver, lambda: bool(titled(*titles, below=driver.pid))), "no trial trains"
    random.choice(titled(*titles, below=driver.pid)).kill()
    start, steps = time.monotonic(), sweep.steps
    sweep.wait_for(driver, lambda: sweep.steps > steps + 1)  # a step may have been noted before the kill
    return time.monotonic() - start


def train_workers(folder: Path, scratch: Path) -> Sweep:
    return Sweep(folder, scratch, settings=("launch.how=ray_train",))


def nodes(folder: Path, tries: int) -> Iterator[Try]:
    """One of two machines is lost, and another one comes, again and again; the driver goes on."""
    while tries > 0:
        with tempfile.TemporaryDirectory(prefix="dr-") as scratch, machines(Path(scratch)) as cluster:
            kill = partial(node_lost, cluster)
            # Ray tries a trial three times.
            kills = list(survived_in_turn(folder, min(tries, 4), kill, partial(_on, cluster), most=4))
        tries -= len(kills)
        yield from kills


def node_lost(cluster: Machines, sweep: Sweep, driver: subprocess.Popen[bytes]) -> float | None:
    """Seconds until its trial is taken as lost, None where it had none, and the new machine has one."""
    failures = _failures(sweep)
    is_busy = len(sweep.ledger.unfinished) == 2
    cluster.lose()
    start = time.monotonic()
    if is_busy:
        sweep.wait_for(driver, lambda: _failures(sweep) > failures or time.monotonic() - start > 60)
    seconds = time.monotonic() - start if _failures(sweep) > failures else None
    cluster.add()
    return seconds


def _failures(sweep: Sweep) -> int:
    return (sweep.path / "log.txt").read_text(errors="replace").count("Trial task failed")


def heads(folder: Path, tries: int) -> Iterator[Try]:
    """The head of a cluster is lost; the sweep goes on on another cluster."""
    with fresh(folder) as sweep:
        kills: list[Try] = []
        before, again = [], 0
        has_ended = False
        while len(kills) < tries and not has_ended:
            with tempfile.TemporaryDirectory(prefix="dr-") as scratch, machines(Path(scratch)) as cluster:
                at = _on(cluster, sweep.folder, Path(scratch))
                with at.driver() as driver:
                    moment = at.random_moment(driver, in_startup=False)
                    has_ended = moment is None
                    if moment is not None:
                        kills.append(tried(moment, partial(head_killed, cluster), at, driver))
                        before.append(at.ledger)
                        again += len(before[-1].unfinished)
        whole = checked(lambda: sweep.check(before, again, sweep.finish()))
    yield from sharing(kills, whole)
    if kills and len(kills) < tries:
        yield from heads(folder, tries - len(kills))


def _on(cluster: Machines, folder: Path, scratch: Path) -> Sweep:
    return Sweep(folder, scratch, cpus=2, options=("--address", cluster.address), environment=cluster.environment)


def _in_turn(kill: Kill, *, in_startup: bool = True) -> Callable[[Path, int], Iterator[Try]]:
    return partial(killed_in_turn, kill=kill, in_startup=in_startup)


ROWS: Final[Rows] = {
    "kill -9 of the driver": _in_turn(driver_killed),
    "kill -9 of a trial's process": partial(survived_in_turn, kill=partial(process_killed, TRIAL)),
    "kill -9 of a worker of Ray Train": partial(
        survived_in_turn, kill=partial(process_killed, (WORKER,)), make=train_workers
    ),
    "kill -9 of the raylet": _in_turn(partial(part_of_ray_killed, "raylet"), in_startup=False),
    "kill -9 of the GCS": _in_turn(partial(part_of_ray_killed, "gcs_server"), in_startup=False),
    "SIGTERM, and SIGKILL after 10 s": _in_turn(partial(signalled, signal.SIGTERM, 1, GRACE)),
    "SIGHUP, of a closed terminal": _in_turn(partial(signalled, signal.SIGHUP, 1, 60)),
    "Ctrl-C": _in_turn(partial(signalled, signal.SIGINT, 1, 60)),
    "Ctrl-C twice": _in_turn(partial(signalled, signal.SIGINT, 2, 60)),
    "a machine lost, and another one added": nodes,
    "the head of a cluster lost": heads,
}
