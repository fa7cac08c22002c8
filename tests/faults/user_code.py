"""Mistakes in a user's loss and space: the trial fails alone with its reason, or the driver ends with one line."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import psutil

from tests.faults.sweeps import NUM_TRIALS, Sweep, checked, fresh, killed_in_turn, survived_in_turn, tried
from tests.faults.tries import Row, Rows, Try, sharing

SPARE: Final = 3
"""Trials in which nothing fails, beside those in which something does."""
TIMEOUT: Final = 30
"""Of a trial, in seconds: Ray starts the next one in another process."""
ROOM: Final = 2 * 2**30
"""Bytes that a trial may take before Ray's memory monitor ends it."""


def one_trial_fails(fault: str, reason: str, folder: Path, tries: int) -> Iterator[Try]:
    """In one sweep the fault hits one trial after the other, at a random step; the others end."""

    def make(folder: Path, scratch: Path) -> Sweep:
        timeout = ("--trial-timeout", str(TIMEOUT)) if fault == "hang" else ()
        return Sweep(folder, scratch, num_trials=tries + SPARE, only_tune=timeout)

    kills: list[Try] = []
    with fresh(folder, make) as sweep:
        with sweep.driver() as driver:
            while len(kills) < tries and sweep.wait(driver, random.randrange(30)):
                kills.append(tried(f"after {sweep.steps} steps", partial(trial_failed, fault), sweep, driver))
            code = driver.wait(600)
        whole = checked(lambda: sweep.check([], 0, code, failed=[reason]))
        failures = [ended.failure for ended in sweep.ledger.outcomes.values() if ended.failure]
        if len(failures) < len(kills):  # more where the machine is too busy for the time limit
            whole = Try("", faults=(*whole.faults, f"{len(failures)} trials failed, and {tries} should have"))
    yield from sharing(kills, whole)


def trial_failed(fault: str, sweep: Sweep, driver: subprocess.Popen[bytes]) -> float:
    """Seconds until the trial has failed."""
    before = _failures(sweep)
    (sweep.folder / "fault").write_text(fault)
    start = time.monotonic()
    assert sweep.wait_for(driver, lambda: _failures(sweep) > before), f"the driver ended: {sweep.messages[-200:]}"
    return time.monotonic() - start


def _failures(sweep: Sweep) -> int:
    return sum(ended.failure is not None for ended in sweep.ledger.outcomes.values())


def goes_on(fault: str, sweep: Sweep, driver: subprocess.Popen[bytes]) -> float:
    """Seconds until the trial goes on, in another process where the fault has ended its own, or the next trial."""
    (sweep.folder / "fault").write_text(fault)
    start = time.monotonic()
    sweep.wait_for(driver, lambda: not (sweep.folder / "fault").exists())
    steps = sweep.steps
    sweep.wait_for(driver, lambda: sweep.steps > steps + 1)
    return time.monotonic() - start


def driver_ends(fault: str, sweep: Sweep, driver: subprocess.Popen[bytes]) -> float:
    """The next suggestion of the space fails; seconds until the driver has ended."""
    (sweep.folder / "space fault").write_text(fault)
    start = time.monotonic()
    code = driver.wait(200)
    assert "Traceback" not in sweep.messages, f"a traceback: {sweep.messages[-300:]}"
    if fault == "exit":
        assert code == 3, f"the driver ended with {code}"
    else:
        assert code in (1, 2), f"the driver ended with {code}"
        assert "space" in sweep.messages, f"the message must name the space: {sweep.messages[-300:]}"
    return time.monotonic() - start


def with_little_memory(folder: Path, scratch: Path) -> Sweep:
    memory = psutil.virtual_memory()
    limit = (memory.total - memory.available + ROOM) / memory.total
    assert limit < 0.9, "the machine must have more free memory"
    return Sweep(folder, scratch, environment={"RAY_memory_usage_threshold": f"{limit:.4f}"})


def with_own_space(folder: Path, scratch: Path) -> Sweep:
    return Sweep(folder, scratch, space="tests.faults.counted:rate")


def _in_space(fault: str) -> Row:
    # Few in one sweep: towards its end all trials have been suggested, and the space is not asked any more.
    return partial(killed_in_turn, kill=partial(driver_ends, fault), make=with_own_space, in_startup=False, most=3)


ROWS: Final[Rows] = {
    "NaN from a user's loss": partial(one_trial_fails, "NaN", "the loss and the gradient must be finite"),
    "an exception in a user's loss": partial(one_trial_fails, "exception", "ValueError: a mistake"),
    "os._exit in a user's loss": partial(survived_in_turn, kill=partial(goes_on, "exit"), most=NUM_TRIALS),
    "a fork in a user's loss": partial(survived_in_turn, kill=partial(goes_on, "fork"), most=NUM_TRIALS),
    "a hang in a user's loss, with --trial-timeout": partial(one_trial_fails, "hang", "a trial must end within"),
    "out of memory in one trial": partial(
        survived_in_turn, kill=partial(goes_on, "memory"), make=with_little_memory, failed=("out of memory: ",)
    ),
    "NaN in a user's space": _in_space("NaN"),
    "an exception in a user's space": _in_space("exception"),
    "os._exit in a user's space": _in_space("exit"),
}
