"""The output of libraries: silenced, or redirected to a log with all that this process and its children write."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


@contextmanager
def quiet(*loggers: str, bars: tuple[Callable[[], object], Callable[[], object]] | None = None) -> Iterator[None]:
    """Let libraries log errors alone during the block.

    Args:
        loggers: Their loggers. A library sets the level of its logger as it is imported, so it must be imported before.
        bars: What hides the progress bars of a library, and what shows them again; None where they stay as they are.
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
        # Loggers keep a reference to the stream that they were made with, so these streams must never be closed.
        out, err = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
        for stream in (out, err):
            stack.callback(stream.flush)
        with redirect_stdout(out), redirect_stderr(err):
            yield terminal


class _Terminal(io.FileIO):
    """A terminal or pipe that loses what cannot be written: when it is closed, the work goes on without it."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes
