"""The output of a process goes to the log, and afterwards to the terminal again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dice_ray.run.output import redirected


def test_stdout_comes_back_and_its_copy_stays_open_meanwhile(tmp_path: Path) -> None:
    code = """
from pathlib import Path
from dice_ray.run.output import redirected

try:
    with redirected(Path("log.txt")) as terminal:
        print("unseen")
        print("seen", file=terminal)
        print("and partial", end="")
        raise ValueError("on its way")
except ValueError as error:
    print(error)
"""
    printed = subprocess.check_output([sys.executable, "-c", code], cwd=tmp_path, text=True)
    assert printed == "seen\non its way\n"
    assert (tmp_path / "log.txt").read_text() == "unseen\nand partial"


def test_what_others_say_comes_to_the_terminal_where_it_is_asked_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for verbose, shown in (("", ""), ("1", "said\n")):
        monkeypatch.setenv("DICE_RAY_VERBOSE", verbose)
        with redirected(tmp_path / "log.txt"):
            os.write(2, b"said\n")
        assert capfd.readouterr().err == shown
    assert (tmp_path / "log.txt").read_text() == "said\n"
