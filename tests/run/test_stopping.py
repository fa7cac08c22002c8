"""Signals: noted while the work asks whether to stop, raised otherwise."""

from __future__ import annotations

import importlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dice_ray.run import stopping
from dice_ray.run.stopping import stop_on_signals


@pytest.fixture
def no_nohup() -> Iterator[None]:
    """SIGHUP as in a terminal, also where the tests run below `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("no_nohup")
@pytest.mark.parametrize("number", stopping.SIGNALS)
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


def test_work_that_does_not_end_by_itself_is_interrupted_after_sigterm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of minutes: a machine that is taken away does not wait for its end."""
    monkeypatch.setattr(stopping, "GRACE", 0.1)
    with stop_on_signals() as stop:
        stop()
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            signal.pause()


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


def test_ctrl_c_while_a_command_loads_its_modules_ends_it(tmp_path: Path) -> None:
    """Imported code, such as torch, may catch the exception: the command went on as if nothing had been pressed."""
    lines = ("import signal", "try:", "    signal.raise_signal(signal.SIGINT)", "except BaseException:", "    pass")
    (tmp_path / "catches.py").write_text("\n".join(lines))
    program = "import signal; from dice_ray.run import stopping; signal.signal(signal.SIGINT, stopping.interrupt); "
    done = subprocess.run([sys.executable, "-c", program + "import catches"], cwd=tmp_path, check=False)
    assert done.returncode == 130
