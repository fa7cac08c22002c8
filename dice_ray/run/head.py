"""Ends a driver whose Ray has lost its head, or another process without which nothing can run.

Such a driver cannot end by itself: its main thread waits within Ray for an answer and runs no signal handler, and after
some time Ray ends the process without a word to the user (Ray 2.60). So a thread watches.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from threading import Thread
from typing import Final, TextIO

from dice_ray.errors import RunError
from dice_ray.run.cluster import Cluster, check_answers
from dice_ray.tracking.writer import Writer

PATIENCE: Final = 5.0
"""Seconds for which the head may be unreachable."""
CLOSING_SECONDS: Final = 5.0
"""How long MLflow may take to end the runs of a driver without its Ray; they wait in the spool otherwise."""


@contextmanager
def watched(ray: Cluster, end: Callable[[], None]) -> Iterator[None]:
    """Call `end`, in another thread, as soon as Ray is lost; until the end of the block."""
    address = ray.address
    with ended_once(lambda: ray.lost is not None if ray.is_own else is_silent(address), end):
        yield


@contextmanager
def ended_once(is_lost: Callable[[], bool], end: Callable[[], None]) -> Iterator[None]:
    """Ask until the end of the block, and call `end` once the answer was yes for `PATIENCE`."""
    has_ended = threading.Event()

    def watch() -> None:
        last_well = time.monotonic()
        while not has_ended.wait(PATIENCE / 5):
            if not is_lost():
                last_well = time.monotonic()
            elif time.monotonic() - last_well > PATIENCE and not has_ended.is_set():
                end()
                return

    Thread(target=watch, name="head", daemon=True).start()
    try:
        yield
    finally:
        has_ended.set()


def is_silent(address: str) -> bool:
    """Whether nothing answers at the address of a head."""
    host, _, port = address.rpartition(":")
    try:
        check_answers(host.strip("[]"), int(port), address)
    except RunError:
        return True
    return False


def lost(name: str) -> str:
    """What a run trained alone ends with."""
    return f"Ray must run until {name} ends, and does not: `dice-ray resume {name}` continues it"


def end(message: str, stderr: TextIO, screens: ExitStack, writer: Writer) -> None:
    """End this process with a message, and its runs in MLflow if that answers."""

    def say(text: str) -> None:
        with suppress(OSError):  # of a closed terminal
            print(text, file=stderr, flush=True)

    screens.close()
    say(message)  # first, since Ray may end this process at any moment
    closing = Thread(target=writer.close, daemon=True)
    closing.start()
    closing.join(CLOSING_SECONDS)
    if closing.is_alive():
        say("MLflow does not answer: `dice-ray runs` ends the runs there later")
    os._exit(1)
