"""A network switch in a process: it forwards frames between TAP devices, and can lose, delay or hold them back.

Run as `python -m tests.cluster.switch DEVICE ...`. It prints a line when it has made the devices, and then reads lines
of JSON: `{"loss": 0.05}` of all frames, `{"delay": 0.2}` seconds of each, `{"apart": [DEVICE]}` to which and from which
none gets. `tc netem` does the same, but not every kernel has it.
"""

from __future__ import annotations

import fcntl
import heapq
import json
import os
import random
import selectors
import struct
import sys
import time
from itertools import count
from typing import Any, Final

TUNSETIFF: Final = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
BROADCAST_BIT: Final = 1


def tap(name: str) -> int:
    """A file descriptor of a new TAP device; it reads and writes frames."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TAP | IFF_NO_PI))
    return device


def forward(names: list[str]) -> None:
    devices = {name: tap(name) for name in names}
    print("ready", flush=True)
    selector = selectors.DefaultSelector()
    for source in (*devices.values(), sys.stdin.fileno()):
        selector.register(source, selectors.EVENT_READ)
    settings: dict[str, Any] = {"loss": 0.0, "delay": 0.0, "apart": []}
    apart: set[int] = set()
    known: dict[bytes, int] = {}
    waiting: list[tuple[float, int, int, bytes]] = []
    numbers = count()
    while True:
        timeout = max(waiting[0][0] - time.monotonic(), 0) if waiting else None
        for key, _ in selector.select(timeout):
            if key.fd == sys.stdin.fileno():
                if not (line := sys.stdin.readline()):
                    return
                settings |= json.loads(line)
                apart = {devices[name] for name in settings["apart"]}
                print("ready", flush=True)
                continue
            try:
                frame = os.read(key.fd, 65536)
            except OSError:  # the machine has gone
                continue
            known[frame[6:12]] = key.fd
            is_for_all = frame[0] & BROADCAST_BIT or frame[:6] not in known
            targets = [each for each in devices.values() if each != key.fd] if is_for_all else [known[frame[:6]]]
            for target in targets:
                if not {key.fd, target} & apart and random.random() >= settings["loss"]:
                    heapq.heappush(waiting, (time.monotonic() + settings["delay"], next(numbers), target, frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, target, frame = heapq.heappop(waiting)
            try:
                os.write(target, frame)
            except OSError:  # the device's queue is full, or it is down: the frame is lost, as on a real network
                continue


if __name__ == "__main__":
    forward(sys.argv[1:])
