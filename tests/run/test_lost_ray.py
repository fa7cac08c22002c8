"""A process of Ray itself that is killed: the driver ends soon, says how to go on, and leaves no run open in MLflow."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import psutil
import pytest

from dice_ray.tracking.reader import read
from tests.processes import titled

SPACE: Final = f"{Path(__file__).parents[1] / 'tuning' / 'spaces.py'}:two_rates"
SETTINGS: Final = ("data.source.synthetic.size=200", "training.epochs=300", "training.evaluations=300")
SECONDS: Final = 15
"""Ray alone takes 60 s for its GCS."""


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("process", ["gcs_server", "raylet"])
def test_the_driver_ends_with_one_line_and_its_runs(process: str, tmp_path: Path) -> None:
    """Ray ends the driver in the middle of its work: no message, and the runs stay RUNNING until somebody resumes."""
    settings = [word for each in SETTINGS for word in ("--set", each)]
    command = ["tune", "synthetic_pairs", *settings, "--space", SPACE, "--trials", "2", "--name", "lost"]
    program = "from dice_ray.cli.app import main; main()"
    errors = tmp_path / "errors"
    with errors.open("w") as file, subprocess.Popen([sys.executable, "-c", program, *command], stderr=file) as driver:
        try:
            while not titled(".train", below=driver.pid):
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
    assert message.endswith(
        f"and its process {process} was killed, as when the machine has too little memory: "
        "`dice-ray resume lost` goes on from there"
    )
    assert "Traceback" not in message
    assert set(read("lost")["status"]) == {"KILLED"}
    assert seconds < SECONDS


def _children(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)
