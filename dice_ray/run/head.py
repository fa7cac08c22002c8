"""Ends a driver whose cluster has lost its head.

Such a driver cannot end by itself: its main thread waits within Ray for an answer and runs no signal handler, and after
a minute Ray ends the process without a word to the user (Ray 2.60). So a thread watches the head.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from dice_ray.errors import RunError
from dice_ray.run.cluster import check_answers

PATIENCE: Final = 5.0
"""Seconds for which the head may be unreachable."""


@contextmanager
def watched(address: str, end: Callable[[], None]) -> Iterator[None]:
    """Call `end`, in another thread, as soon as the head at this address is lost; until the end of the block."""
    host, _, port = address.rpartition(":")
    has_ended = threading.Event()

    def watch() -> None:
        answered = time.monotonic()
        while not has_ended.wait(PATIENCE / 5):
            try:
                check_answers(host.strip("[]"), int(port), address)
                answered = time.monotonic()
            except RunError:
                if time.monotonic() - answered > PATIENCE and not has_ended.is_set():
                    end()
                    return

    thread = threading.Thread(target=watch, name="head", daemon=True)
    thread.start()
    try:
        yield
    finally:
        has_ended.set()
