"""A head that is lost is noticed within seconds, one that answers again is not lost."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import pytest

from dice_ray.run import head


def test_a_head_is_lost_once_it_has_not_answered_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finds a driver that never learns of it, and one that is ended although its head answers."""
    monkeypatch.setattr(head, "PATIENCE", 0.5)
    is_lost = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server, head.ended_once(silent(server), is_lost.set):
        assert not is_lost.wait(1)
        server.close()
        assert is_lost.wait(5)


def test_nothing_is_watched_after_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finds a driver that has finished, and is ended as a failed one when its cluster goes."""
    monkeypatch.setattr(head, "PATIENCE", 0.1)
    is_lost = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        with head.ended_once(silent(server), is_lost.set):
            pass
        server.close()
        assert not is_lost.wait(0.5)


def silent(server: socket.socket) -> Callable[[], bool]:
    host, port = server.getsockname()
    return lambda: head.is_silent(f"{host}:{port}")
