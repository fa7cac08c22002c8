"""A head that is lost is noticed within seconds, one that answers again is not lost."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil
import pytest

from dice_ray.run import driver
from dice_ray.tracking.reader import read
from tests.processes import WORKER, titled


def test_a_head_is_lost_once_it_has_not_answered_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finds a driver that never learns of it, and one that is ended although its head answers."""
    monkeypatch.setattr(driver, "_PATIENCE", 0.5)
    is_lost = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server, driver._ended_once(silent(server), is_lost.set):
        assert not is_lost.wait(1)
        server.close()
        assert is_lost.wait(5)


def test_nothing_is_watched_after_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finds a driver that has finished, and is ended as a failed one when its cluster goes."""
    monkeypatch.setattr(driver, "_PATIENCE", 0.1)
    is_lost = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        with driver._ended_once(silent(server), is_lost.set):
            pass
        server.close()
        assert not is_lost.wait(0.5)


def silent(server: socket.socket) -> Callable[[], bool]:
    host, port = server.getsockname()
    return lambda: driver._is_silent(f"{host}:{port}")


SPACE: Final = f"{Path(__file__).parents[1] / 'tuning' / 'spaces.py'}:two_rates"
SETTINGS: Final = ("data.source.synthetic.size=200", "training.epochs=300", "training.evaluations=300")
SECONDS: Final = 15
"""Ray alone takes 60 s for its GCS."""


SWEEP: Final = ("tune", "synthetic_pairs", "--space", SPACE, "--trials", "2")
RUN: Final = ("train", "synthetic_pairs", "--set", "launch.how=ray_train")


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("process", ["gcs_server", "raylet"])
@pytest.mark.parametrize(
    ("command", "worker", "said"),
    [
        (SWEEP, ".train", "and its process {} was killed, as when the machine has too little memory: "),
        (RUN, WORKER, "Ray must run until lost ends, and does not: "),
    ],
    ids=["sweep", "run"],
)
def test_the_driver_ends_with_one_line_and_its_runs(
    command: tuple[str, ...], worker: str, said: str, process: str, tmp_path: Path
) -> None:
    """Ray ends the driver in the middle of its work: no message, and the runs stay RUNNING until somebody resumes."""
    settings = [word for each in SETTINGS for word in ("--set", each)]
    program = "from dice_ray.cli.app import main; main()"
    words = [sys.executable, "-c", program, *command, *settings, "--name", "lost"]
    errors = tmp_path / "errors"
    with errors.open("w") as file, subprocess.Popen(words, stderr=file) as driver:
        try:
            while not titled(worker, below=driver.pid):
                assert driver.poll() is None
                time.sleep(0.2)
            (killed,) = (each for each in _children(driver.pid) if each.name() == process)
            killed.kill()
            start = time.monotonic()
            assert driver.wait(100) == 1
            seconds = time.monotonic() - start
        finally:
            driver.kill()
    message = " ".join(errors.read_text().split())
    assert f"{said.format(process)}`dice-ray resume lost`" in message
    assert "Traceback" not in message
    statuses = set(read("lost" if command == SWEEP else "train")["status"])
    assert statuses == {"KILLED"} or (command, statuses) == (RUN, {"FAILED"})
    assert seconds < SECONDS


def _children(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)
