"""A driver killed at a random moment and resumed: every trial once, MLflow equal to the ledger."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from dice_ray.tracking.reader import curves, read
from dice_ray.tuning.ledger import Ledger

NUM_TRIALS = 8
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


@pytest.fixture
def scratch() -> Iterator[Path]:
    """Where a killed Ray leaves its files: a short path, since it holds sockets."""
    folder = Path(tempfile.mkdtemp(prefix="dr-"))
    yield folder
    shutil.rmtree(folder)


@pytest.mark.ray
def test_a_killed_sweep_is_resumed(tmp_path: Path, scratch: Path) -> None:
    num_ended, rest = random.randrange(NUM_TRIALS - 2), random.uniform(0, 0.3)
    driver = _start(scratch)
    file = tmp_path / "sweep" / "ledger.jsonl"
    while not file.exists() or file.read_text().count('"end"') < num_ended:
        assert driver.poll() is None
        time.sleep(0.02)
    time.sleep(rest)
    _kill(driver)
    killed = Ledger(file)
    moment = f"killed {rest:.3f} s after {num_ended} ends, with {len(killed.open)} trials open"
    assert len(killed.ended) < NUM_TRIALS, moment

    assert _start(scratch).wait(200) == 0, moment
    events = Counter(line.partition('"id": "')[0] for line in file.read_text().splitlines())
    assert events == {'{"event": "begin", ': NUM_TRIALS, '{"event": "end", ': NUM_TRIALS}, moment
    ledger = Ledger(file)
    assert sorted(ledger.ended) == [f"{number:04d}" for number in range(1, NUM_TRIALS + 1)]
    assert killed.begun.items() <= ledger.begun.items()
    assert killed.ended.items() <= ledger.ended.items()

    runs = read("sweep")
    assert sorted(runs.loc[runs["kind"] == "trial", "id"]) == sorted(ledger.ended)
    assert set(runs["status"]) == {"FINISHED"}
    points = curves("sweep")
    scores = points[points["metric"] == "dev/f1"]
    stored = {id_: tuple(zip(of["step"], of["value"], strict=True)) for id_, of in scores.groupby("id")}
    assert stored == {id_: ended.curve for id_, ended in ledger.ended.items()}


def _start(scratch: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER], env=os.environ | {"TMPDIR": str(scratch)}, start_new_session=True
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
