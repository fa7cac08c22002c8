"""Signals: noted while the work asks whether to stop, raised otherwise."""

from __future__ import annotations

import importlib
import logging
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dice_ray.run import signals
from dice_ray.run.signals import postponed, stop_on_signals


@pytest.fixture
def no_nohup() -> Iterator[None]:
    """SIGHUP as in a terminal, also where the tests run below `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("no_nohup")
@pytest.mark.parametrize("number", signals._SIGNALS)
def test_a_signal_is_noted_once_the_work_asks_and_a_second_one_is_raised(number: int) -> None:
    """In the middle of an optimizer step an exception would leave a state that no checkpoint can be written of."""
    before = signal.getsignal(number)
    with stop_on_signals() as stop:
        assert not stop()
        signal.raise_signal(number)
        assert stop()
        assert stop.signal == number
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(number) is before


def test_a_closed_terminal_stops_nothing_below_nohup() -> None:
    """Finds a run that `nohup` was to keep alive."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_on_signals() as stop:
            assert not stop()
            signal.raise_signal(signal.SIGHUP)
            assert not stop()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_is_raised_while_nothing_asks() -> None:
    with stop_on_signals() as stop, pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)
    assert stop.signal == signal.SIGTERM


@pytest.mark.usefixtures("no_nohup")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_work_that_does_not_end_by_itself_is_interrupted(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of minutes: a machine that is taken away does not wait, and a closed terminal sends no second signal."""
    monkeypatch.setattr(signals, "_GRACE", 0.1)
    with stop_on_signals() as stop:
        stop()
        signal.raise_signal(number)
        with pytest.raises(KeyboardInterrupt):
            time.sleep(5)
    assert stop.signal == number


def test_a_signal_at_the_end_of_the_work_is_not_lost() -> None:
    """One that came after the last question was noted, and the command went on as if nothing had been pressed."""
    with stop_on_signals() as stop:
        assert not stop()
        stop.check()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    with stop_on_signals() as stop:
        assert not stop()
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            stop.check()


def test_an_import_is_not_torn_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exception would leave the lock of the module held: the next import of it would wait for ever."""
    module = "import signal, time\nsignal.raise_signal(signal.SIGINT)\ntime.sleep(.01)\nis_whole = True\n"
    (tmp_path / "slow_module.py").write_text(module)
    monkeypatch.syspath_prepend(tmp_path)

    def import_it() -> None:
        importlib.import_module("slow_module")
        signal.pause()

    with stop_on_signals() as stop, pytest.raises(KeyboardInterrupt):
        import_it()
    assert sys.modules["slow_module"].is_whole
    assert stop.signal == signal.SIGINT


class Slow(logging.Handler):
    """Gets a signal while it holds its lock."""

    is_done = False

    def emit(self, record: logging.LogRecord) -> None:
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.01)
        self.is_done = True


def test_a_lock_of_logging_is_not_kept() -> None:
    """It is taken before a `try`: the thread that sends to MLflow waited for it for ever, and the command for that."""
    logger, handler = logging.Logger("slow"), Slow()
    logger.addHandler(handler)

    def log() -> None:
        logger.warning("slow")
        signal.pause()

    with stop_on_signals(), pytest.raises(KeyboardInterrupt):
        log()
    assert handler.is_done


def test_a_signal_waits_for_what_must_not_be_torn_apart_and_a_second_one_does_not() -> None:
    reached = []

    def work(signals: int) -> None:
        with postponed():
            for _ in range(signals):
                signal.raise_signal(signal.SIGINT)
                reached.append(signals)

    for number in (1, 2):
        with stop_on_signals() as stop, pytest.raises(KeyboardInterrupt):
            work(number)
        assert stop.signal == signal.SIGINT
    assert reached == [1, 2]


def test_a_signal_that_waits_is_not_lost_where_the_work_fails() -> None:
    def fail() -> None:
        with postponed():
            signal.raise_signal(signal.SIGINT)
            raise OSError("Ray did not start")

    with stop_on_signals() as stop, pytest.raises(KeyboardInterrupt):
        fail()
    assert stop.signal == signal.SIGINT


@pytest.mark.ray
def test_a_signal_while_ray_starts_waits_until_it_has_started(tmp_path: Path) -> None:
    """Within `ray.init` an exception leaves half a worker: one interrupted command in twenty ended by SIGSEGV.

    SIGTERM, for which Ray installs a handler of its own.
    """
    program = """
import os, signal, threading
from pathlib import Path
import ray
from dice_ray.run import cluster, signals
with signals.stop_on_signals():
    init = ray.init
    def signalled(**options):
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()
        init(**options)
        open("started", "w").close()
    ray.init = signalled
    with cluster.started(None, num_cpus=1, log=Path("log")):
        signal.pause()
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=False, capture_output=True, text=True)
    assert (tmp_path / "started").exists(), done.stderr
    assert done.returncode == -signal.SIGINT, done.stderr  # of KeyboardInterrupt


def test_ctrl_c_while_a_command_loads_its_modules_ends_it(tmp_path: Path) -> None:
    """Imported code, such as torch, may catch the exception: the command went on as if nothing had been pressed."""
    lines = ("import signal", "try:", "    signal.raise_signal(signal.SIGINT)", "except BaseException:", "    pass")
    (tmp_path / "catches.py").write_text("\n".join(lines))
    program = "import signal; from dice_ray.run import signals; signal.signal(signal.SIGINT, signals.interrupt); "
    done = subprocess.run([sys.executable, "-c", program + "import catches"], cwd=tmp_path, check=False)
    assert done.returncode == 130
