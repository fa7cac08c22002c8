"""The fuzzer itself: it sees each kind of fault, and passes what is none; and its targets run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dice_ray.errors import DataError, DiceRayError
from tests.fuzz.watch import Watch


def _refuse(given: Any, folder: Path) -> None:
    raise DataError("\x1b[31m is no format")


def _silent(given: Any, folder: Path) -> None:
    raise DiceRayError(" ")


def _crash(given: Any, folder: Path) -> None:
    raise KeyError(given)


def _hang(given: Any, folder: Path) -> None:
    while True:
        pass


def _write(where: str) -> Callable[[Any, Path], None]:
    def write(given: Any, folder: Path) -> None:
        (folder / where).write_text("x")

    return write


def _read_secret(given: Any, folder: Path) -> None:
    (folder / "../outside").read_text()


@pytest.mark.parametrize(
    ("run", "fault"),
    [
        (_refuse, None),
        (_write("inside"), None),
        (_silent, "message of"),
        (_crash, "KeyError at"),
        (_hang, "TookLongError at"),
        (_write("../beside"), "writes"),
        (_read_secret, "reads"),
    ],
)
def test_a_fault_is_seen(run: Callable[[Any, Path], None], fault: str | None, tmp_path: Path) -> None:
    (tmp_path / "outside").touch()
    (tmp_path / "in").mkdir()
    # The process of pytest has taken more memory for other tests than an input may take.
    watch = Watch((tmp_path / "in").resolve(), seconds=0.1, memory=sys.maxsize)
    watch.call(run, "long input")
    watch.call(run, "input")
    if fault is None:
        assert watch.faults == {}
    else:
        ((place, (_, shown)),) = watch.faults.items()
        assert place.startswith(fault)
        assert shown == "'input'", "the shorter one of two inputs with the same fault"


def test_a_run_prints_its_seed_and_the_inputs_of_each_target() -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--seed", "7", "--share", "0.001", "settings", "ledgers"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("seed 7\n")
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["targets"] == {"settings": {"inputs": 12, "faults": 0}, "ledgers": {"inputs": 8, "faults": 0}}
