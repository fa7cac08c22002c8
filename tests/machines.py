"""A Ray cluster of two machines with one CPU each, which are both this one: on loopback, in a folder of their own."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from dice_ray.run.cluster import LOOPBACK

SCRIPT: Final = """
import sys
from ray.cluster_utils import Cluster

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
other = cluster.add_node(num_cpus=1)
print(cluster.address, flush=True)
if sys.stdin.readline():
    cluster.remove_node(other, allow_graceful=False)
    print("lost", flush=True)
    sys.stdin.readline()
cluster.shutdown()
"""


@dataclass(frozen=True)
class Machines:
    """A running cluster.

    Attributes:
        address: Of its head.
        environment: What a process must have to join it.
    """

    address: str
    environment: Mapping[str, str]
    _orders: IO[bytes]
    _answers: IO[bytes]

    def lose(self) -> None:
        """Kill all that runs on the machine that is not the head."""
        self._orders.write(b"\n")
        assert self._answers.readline() == b"lost\n"


@contextmanager
def machines(folder: Path) -> Iterator[Machines]:
    """Two machines, whose processes begin in this folder and leave their files there: a short path, for sockets."""
    secret = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)}
    environment = secret | {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "TMPDIR": str(folder)}
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        cwd=folder,
        env=os.environ | LOOPBACK | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        address = process.stdout.readline().decode().strip()
        assert address, "the cluster must start"
        yield Machines(address, environment, process.stdin, process.stdout)
