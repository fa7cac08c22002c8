"""The output of libraries: silenced, or redirected to a log with all that this process and its children write."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_REDIRECTED: list[tuple[int, Path]] = []
"""Where stderr went before each redirection that lasts, the outermost first, and the log."""


@contextmanager
def quiet(*loggers: str, bars: tuple[Callable[[], object], Callable[[], object]] | None = None) -> Iterator[None]:
    """Let libraries with these loggers log errors alone during the block.

    A library sets the level of its logger as it is imported, so it must be imported before. `bars` are what hides the
    progress bars of a library, and what shows them again.
    """
    with ExitStack() as stack:
        for logger in map(logging.getLogger, loggers):
            stack.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.ERROR)
        if bars:
            hide, show = bars
            stack.callback(show)
            hide()
        yield


@contextmanager
def redirected(log: Path) -> Iterator[TextIO]:
    """Redirect stdout and stderr of this process and its children to a log during the block; yields the old stdout.

    The file descriptors are redirected, not only Python's streams: raylet and C libraries write past those. With
    `DICE_RAY_VERBOSE` set, nothing is redirected. What is written to the old stdout raises nothing, and is lost once
    its terminal or pipe is closed.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        # A notebook replaces sys.stdout by an object of its own, which is not redirected: the screen writes there.
        terminal = sys.stdout
        if sys.stdout is sys.__stdout__ and sys.__stdout__.fileno() == 1:
            raw = io.BufferedWriter(_Terminal(os.dup(1), "w"))
            terminal = stack.enter_context(io.TextIOWrapper(raw, line_buffering=True))
        if os.environ.get("DICE_RAY_VERBOSE"):
            yield terminal
            return
        file = stack.enter_context(log.open("ab"))
        for number, stream in ((1, sys.stdout), (2, sys.stderr)):
            stream.flush()
            stack.callback(os.close, before := os.dup(number))
            stack.callback(os.dup2, before, number)
            os.dup2(file.fileno(), number)
        _REDIRECTED.append((before, log.absolute()))
        stack.callback(_REDIRECTED.pop)
        # Loggers keep a reference to the stream that they were made with, so these streams must never be closed.
        out, err = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
        for stream in (out, err):
            stack.callback(stream.flush)
        with redirect_stdout(out), redirect_stderr(err):
            yield terminal


@contextmanager
def last_words(reason: str) -> Iterator[None]:
    """Print the reason, and the errors that are in the log, to stderr if this process ends during the block.

    A library in C++ may end it without an exception, and its message is in a log that nobody has heard of.
    """
    if not _REDIRECTED:
        yield
        return
    (stderr, _), (_, log) = _REDIRECTED[0], _REDIRECTED[-1]
    # A process of its own waits for the end of this one.
    script = 'read -r _ || { echo "dice-ray: $0" >&2; tail -c "+$1" "$2" | grep -E "^\\[[^]]* [ECF] " >&2; }'
    words = ["sh", "-c", script, reason, str(log.stat().st_size + 1), str(log)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=stderr) as reporter:
        try:
            yield
        finally:
            reporter.communicate(b"\n")


class _Terminal(io.FileIO):
    """A terminal or pipe that loses what cannot be written: when it is closed, the work goes on without it."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes
