"""What an input must not do: raise other errors than dice_ray's, take long or much memory, touch anything outside."""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

from dice_ray.errors import DiceRayError

SECONDS: Final = 5.0
"""Of CPU time, since the wall time of a busy machine says little; a wait that takes no CPU ends after `WAIT`."""
WAIT: Final = 600
MEMORY: Final = 1 << 30
"""Bytes of the whole process, libraries included."""
CHANGES: Final = ("remove", "rename", "rmdir", "mkdir", "link", "symlink", "truncate", "chmod", "chown", "utime")
TOOLS: Final = ("uname", "fc-list")
"""What `platform` and matplotlib ask once, for MLflow's user agent and for fonts."""
CHANGING: Final = {f"os.{name}" for name in CHANGES}
OURS: Final = ("dice_ray", "analysis", "search_spaces")


class TookLongError(BaseException):
    """Not an Exception: the code under test must not take it for an error of its input."""


class Watch:
    """Calls a function with inputs, each within its limits.

    Attributes:
        faults: The first description of each fault by its place in the code, with the shortest input.
    """

    def __init__(self, folder: Path, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        self.folder, self.seconds, self.memory = folder, seconds, memory
        self.faults: dict[str, tuple[str, str]] = {}
        self._outside: str | None = None
        self._is_on = False
        sys.dont_write_bytecode = True
        sys.addaudithook(self._audit)
        signal.signal(signal.SIGPROF, self._took_long)

    def call(self, function: Callable[[Any, Path], None], given: Any) -> None:
        """Call the function, and note what it did that it must not do."""
        try:
            with self._limits():
                function(given, self.folder)
        except DiceRayError as error:
            if fault := _fault_of_message(str(error)):
                self._note(f"message of {_place(error)}", f"{fault}: {str(error)[:300]!r}", given)
        except (Exception, TookLongError) as error:  # noqa: BLE001  what it was is the result
            self._note(f"{type(error).__name__} at {_place(error)}", str(error)[:300], given)
        if self._outside:
            self._note(self._outside, "outside of the folder", given)
        if (peak := resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024) > self.memory:
            self._note("memory", f"{peak >> 20} MiB", given)
            raise SystemExit(f"{peak >> 20} MiB, so the process ends")

    @contextmanager
    def _limits(self) -> Iterator[None]:
        self._outside, self._is_on = None, True
        faulthandler.dump_traceback_later(WAIT, exit=True)
        signal.setitimer(signal.ITIMER_PROF, self.seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            faulthandler.cancel_dump_traceback_later()
            self._is_on = False

    def _note(self, place: str, what: str, given: Any) -> None:
        known = self.faults.get(place)
        shown = repr(given)
        if known is None or len(shown) < len(known[1]):
            self.faults[place] = (what, shown)

    def _took_long(self, number: int, frame: FrameType | None) -> None:
        raise TookLongError(f"more than {self.seconds:g} s")

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._is_on or self._outside:
            return
        if event == "open":
            path, mode, flags = arguments
            writes = (
                bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)) if flags else "r" not in (mode or "r")
            )
            if self._is_outside(path) and (writes or "outside" in str(path)):
                self._outside = f"{'writes' if writes else 'reads'} {path}"
        elif event in CHANGING:
            if any(self._is_outside(path) for path in arguments if isinstance(path, str | bytes | os.PathLike)):
                self._outside = f"{event} {arguments}"
        elif event == "sqlite3.connect":
            if self._is_outside(str(arguments[0]).removeprefix("file:").partition("?")[0]):
                self._outside = f"{event} {arguments}"
        elif (
            (event == "socket.connect" and "127.0.0.1" not in str(arguments[1]))
            or event in ("os.system", "os.exec")
            or (event == "subprocess.Popen" and arguments[0] not in TOOLS)
        ):
            self._outside = f"{event} {arguments[1:]}"

    def _is_outside(self, path: Any) -> bool:
        if isinstance(path, int) or os.fspath(path) in ("/dev/null", b"/dev/null"):
            return False
        return not Path(os.path.realpath(os.fsdecode(path))).is_relative_to(self.folder)


def _place(error: BaseException) -> str:
    """The innermost line of ours that an error went through."""
    frames = traceback.extract_tb(error.__traceback__)
    inner = [frame for frame in frames if any(f"/{package}/" in frame.filename for package in OURS)]
    frame = (inner or frames)[-1]
    name = "/".join(Path(frame.filename).parts[-3:])
    return f"{name}:{frame.lineno} {frame.name}"


def _fault_of_message(message: str) -> str | None:
    """What is wrong with an error's message; it is one text that a terminal can print."""
    if not message.strip():
        return "an empty message"
    if "Traceback (most recent" in message:
        return "a traceback"
    if len(message) > 20_000:
        return f"{len(message)} characters"
    if any(not (letter.isprintable() or letter in "\n\t") for letter in message):
        return "control characters"
    return None
