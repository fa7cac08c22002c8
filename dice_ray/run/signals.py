"""Ends a run, sweep or study on Ctrl-C, SIGTERM or a closed terminal such that it can be resumed.

Python runs a signal handler between any two instructions of the main thread, also in the middle of an optimizer step.
So once the work asks whether it should stop, a signal is only noted, and the work ends by itself at the next moment
from which it can be resumed. Before that, while data are loaded, a signal raises KeyboardInterrupt at once; while Ray
starts, the first one waits until it has started (`postponed`). A second signal always raises, and so does the time
`_GRACE` after SIGTERM or SIGHUP: a machine that is taken away does not wait, and a closed terminal sends nothing more.
Nothing is raised while Python imports a module or logs: the lock that this holds would never be released, and another
thread that imports or logs next would wait for ever. The signal is sent again until the lock is free.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

_GRACE: Final = 6.0
"""Seconds that the work has to end by itself after SIGTERM or SIGHUP."""
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop:
    """Whether the work should stop; call it to ask.

    Attributes:
        signal: The first signal that arrived; None as long as none did.
        is_asked: Whether the work asks, so that a signal need not raise.
        timer: Sends the second one, `_GRACE` seconds after SIGTERM or SIGHUP.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self.is_asked = False
        self.timer = threading.Timer(_GRACE, os.kill, (os.getpid(), signal.SIGTERM))
        self.timer.daemon = True

    def __call__(self) -> bool:
        self.is_asked = True
        return self.signal is not None

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Note a signal, or raise KeyboardInterrupt."""
        is_first = self.signal is None
        if is_first:
            self.signal = number
        if not is_first or not self.is_asked:
            if _holds_lock(frame):
                self.signal = None if is_first else self.signal
                threading.Timer(0.05, os.kill, (os.getpid(), number)).start()
                return
            raise KeyboardInterrupt
        if number != signal.SIGINT:
            self.timer.start()

    def check(self) -> None:
        """Let signals raise again, and raise KeyboardInterrupt if one was noted before."""
        self.is_asked = False  # first: a signal between the two statements raises by itself
        if self.signal is not None:
            raise KeyboardInterrupt


def _holds_lock(frame: FrameType | None) -> bool:
    """Whether one of the functions that run belongs to Python's import system or to `logging`, which have locks."""
    while frame is not None:
        if "importlib._bootstrap" in frame.f_code.co_filename or frame.f_globals.get("__name__") == "logging":
            return True
        frame = frame.f_back
    return False


def interrupt(number: int, frame: FrameType | None) -> None:
    """Handle Ctrl-C outside of work that can be resumed: raise KeyboardInterrupt, or end a process that holds a lock.

    Imported code, such as torch's, may catch the exception, and the command would go on as if nothing had been pressed.
    """
    if _holds_lock(frame):
        sys.stdout.flush()
        os._exit(128 + number)
    raise KeyboardInterrupt


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Handle `_SIGNALS` until the end of the block; in a thread other than the main one nothing is handled."""
    stop = Stop()
    with _handled_by(stop.handle):
        try:
            yield stop
        finally:
            stop.timer.cancel()


@contextmanager
def postponed() -> Iterator[None]:
    """Let the first signal wait for the end of the block, which would leave a broken state; a second one is raised."""
    waiting: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        restore()
        waiting.append(number)

    try:
        with _handled_by(handle) as restore:
            yield
    finally:  # also where the block fails: a signal must not be lost
        for number in waiting:
            signal.raise_signal(number)


@contextmanager
def _handled_by(handler: Callable[[int, FrameType | None], None]) -> Iterator[Callable[[], None]]:
    """Handle `_SIGNALS` until the end of the block or a call, in the main thread alone, where Python handles them.

    SIGHUP, of a terminal that is closed, stays ignored below `nohup`.
    """
    before: dict[int, Any] = {}

    def restore() -> None:
        for number, earlier in before.items():
            # None: it was not installed from Python, and cannot be installed again.
            signal.signal(number, signal.SIG_DFL if earlier is None else earlier)

    if threading.current_thread() is threading.main_thread():
        is_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        handled = [number for number in _SIGNALS if number != signal.SIGHUP or not is_nohup]
        before |= {number: signal.signal(number, handler) for number in handled}
    try:
        yield restore
    finally:
        restore()
