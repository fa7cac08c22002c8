"""What `ssh -L 8265:127.0.0.1:8265 HOST` does: a port of one machine's loopback leads to that of another one.

Run as `python -m tests.cluster.tunnel PORT FROM_PID TO_PID`, with processes of the two machines. It prints a line when
it listens.
"""

from __future__ import annotations

import ctypes
import socket
import sys
from pathlib import Path
from threading import Thread


def enter(pid: int) -> None:
    """Sockets that are made from now on are on the machine of this process."""
    with Path(f"/proc/{pid}/ns/net").open() as namespace:
        assert ctypes.CDLL(None).setns(namespace.fileno(), 0) == 0  # `os.setns` is Python 3.12's


def copy(source: socket.socket, target: socket.socket) -> None:
    while sent := source.recv(65536):
        target.sendall(sent)
    target.shutdown(socket.SHUT_WR)


def main(port: int, from_pid: int, to_pid: int) -> None:
    enter(from_pid)
    with socket.create_server(("127.0.0.1", port)) as server:
        enter(to_pid)
        print("ready", flush=True)
        while True:
            client, _ = server.accept()
            there = socket.create_connection(("127.0.0.1", port))
            for ends in ((client, there), (there, client)):
                Thread(target=copy, args=ends, daemon=True).start()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
