"""A sweep whose driver is killed at a random moment, and resumed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import psutil

from dice_ray.tuning.ledger import Ledger

NUM_TRIALS = 16
DRIVER = f"""
from pathlib import Path
from dice_ray.config.load import values_layer
from dice_ray.tuning import search
from dice_ray.tuning.plan import SweepPlan

values = {{"task": "sentence_pair", "data.source": "synthetic", "data.source.synthetic.size": 200}}
quick = {{"training.epochs": 2, "training.evaluations": 4, "training.lr": 1e-3}}
layers = (values_layer("preset", values | quick),)
plan = SweepPlan(name="sweep", layers=layers, space="search_spaces.loss_tuning:loss_tuning", trials={NUM_TRIALS})
assert search.run(plan, Path("sweep"), num_cpus=2).is_finished
"""


@dataclass(frozen=True)
class Kill:
    """What one kill left, and what the resumed driver made of it.

    Attributes:
        moment: When the driver was killed, for the report of a failure.
        before: The ledger as the kill left it.
        code: The exit code of the resumed driver.
        file: The ledger's file.
    """

    moment: str
    before: Ledger
    code: int
    file: Path

    @property
    def lost(self) -> list[str]:
        """The trials that did not begin and end once each, in all that the ledger holds."""
        events = Counter((event["event"], event["id"]) for event in map(json.loads, self.file.read_text().splitlines()))
        ids = {f"{number:04d}" for number in range(1, NUM_TRIALS + 1)} | {id_ for _, id_ in events}
        return sorted(id_ for id_ in ids if (events["begin", id_], events["end", id_]) != (1, 1))


def killed_and_resumed(folder: Path, scratch: Path) -> Kill:
    """Kill a sweep's driver at a random moment, then run it again to the end.

    Args:
        folder: Where the sweep runs.
        scratch: Where Ray leaves its files: a short path, since it holds sockets.
    """
    num_ended, rest = random.randrange(NUM_TRIALS - 2), random.uniform(0, 0.3)
    driver = _start(folder, scratch)
    file = folder / "sweep" / "ledger.jsonl"
    while not file.exists() or file.read_text().count('"end"') < num_ended:
        assert driver.poll() is None
        time.sleep(0.02)
    time.sleep(rest)
    _kill(driver)
    before = Ledger(file)
    moment = f"killed {rest:.3f} s after {num_ended} ends, with {len(before.open)} trials open"
    return Kill(moment, before, _start(folder, scratch).wait(200), file)


def _start(folder: Path, scratch: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER], cwd=folder, env=os.environ | {"TMPDIR": str(scratch)}, start_new_session=True
    )


def _kill(driver: subprocess.Popen[bytes]) -> None:
    """Kill the driver alone, and wait for its trials to go; then end what Ray leaves of itself."""
    children = psutil.Process(driver.pid).children(recursive=True)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    trials = [child for child in children if child.is_running() and os.getpgid(child.pid) != driver.pid]
    _, alive = psutil.wait_procs(trials, timeout=30)
    assert not alive, "the trials outlive their driver"
    os.killpg(driver.pid, signal.SIGKILL)
    psutil.wait_procs(children, timeout=10)
