"""The output of a process goes to the log, and afterwards to the terminal again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dice_ray.output import redirected


def test_stdout_comes_back_and_its_copy_stays_open_meanwhile(tmp_path: Path) -> None:
    code = """
from pathlib import Path
from dice_ray.output import redirected

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


@pytest.mark.parametrize(
    ("opened", "verbose"),
    [(os.openpty, ""), (os.pipe, ""), (os.openpty, "1")],
    ids=["terminal", "pipe", "terminal, --verbose"],
)
def test_a_terminal_or_pipe_that_is_closed_ends_no_run(
    opened: Callable[[], tuple[int, int]], verbose: str, tmp_path: Path
) -> None:
    """The next line raised in the middle of a training of hours; for a pipe rich also sent the log to /dev/null."""
    code = """
import time
from pathlib import Path
from dice_ray.cli.printing import _discard_unread
from dice_ray.cli.screen import TerminalScreen
from dice_ray.run.driver import TrialCounts
from dice_ray.output import redirected

counts = TrialCounts(1, 0, 0, 0, 2, None, {}, 1.0)
with redirected(Path("log.txt")) as terminal:
    with TerminalScreen(terminal) as screen:
        screen.show("before")
        input()
        screen.show("after")
        screen.show(counts)
        time.sleep(0.5)  # the thread that redraws
        screen.show("after")
    _discard_unread()
    print("logged")
_discard_unread()
print("results", flush=True)
"""
    reader, writer = opened()
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"DICE_RAY_VERBOSE": verbose},
        stdin=subprocess.PIPE,
        stdout=writer,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(writer)
        output = b""
        while b"before" not in output:
            more = os.read(reader, 1000)
            assert more, "it ended"
            output += more
        os.close(reader)
        errors = process.communicate(b"\n")[1]
    assert (process.returncode, errors) == (0, b"")
    assert verbose or (tmp_path / "log.txt").read_text() == "logged\n"


def test_a_process_that_a_library_ends_prints_its_errors_and_one_that_goes_on_does_not(tmp_path: Path) -> None:
    """Finds a driver that Ray ends without a word, as where it joins at a socket that has gone."""
    code = """
import os, sys
from pathlib import Path
from dice_ray.output import last_words, redirected

with redirected(Path("log.txt")), redirected(Path("inner.txt")):
    os.write(2, b"[2026-01-01 00:00:00,000 E 7 7] earlier\\n")
    with last_words("Ray has ended"):
        os.write(2, b"[2026-01-01 00:00:01,000 I 7 7] joins\\n[2026-01-01 00:00:02,000 C 7 7] no socket\\n  trace\\n")
        if sys.argv[1:]:
            os._exit(1)
"""
    for ends, expected in (
        ([], ""),
        (["ends"], "dice-ray: Ray has ended\n[2026-01-01 00:00:02,000 C 7 7] no socket\n"),
    ):
        command = [sys.executable, "-c", code, *ends]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (len(ends), expected)
