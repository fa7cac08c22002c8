"""Ray clusters on this machine, on loopback, in folders of their own: two machines with a CPU each; a head for jobs."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import psutil

from dice_ray.run.cluster import LOOPBACK

SCRIPT: Final = """
import sys
from ray.cluster_utils import Cluster

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
other = cluster.add_node(num_cpus=1)
print(cluster.address, flush=True)
for order in sys.stdin:
    if order == "add\\n":
        cluster.add_node(num_cpus=1)
    elif order == "lose\\n":
        cluster.remove_node(other, allow_graceful=False)
    else:
        cluster.head_node.kill_all_processes(check_alive=False, allow_graceful=False)
    print(order, end="", flush=True)
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

    def add(self) -> None:
        """Add a machine with one CPU."""
        self._order(b"add\n")

    def lose(self) -> None:
        """Kill all that runs on the machine that was there from the beginning, and is not the head."""
        self._order(b"lose\n")

    def lose_head(self) -> None:
        """Kill all that runs on the head; the machine that is not the head goes on."""
        self._order(b"lose the head\n")

    def _order(self, order: bytes) -> None:
        self._orders.write(order)
        assert self._answers.readline() == order


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


@dataclass(frozen=True)
class Head:
    """A running cluster of one machine that takes jobs.

    Attributes:
        address: Of its dashboard.
        token: What it asks for.
        environment: What a process must have to ask it.
    """

    address: str
    token: str
    environment: Mapping[str, str]


@contextmanager
def head(folder: Path) -> Iterator[Head]:
    """A head with one CPU, a dashboard and a token, on loopback; its files are in this folder: a short path."""
    secret = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)}
    dashboard, agent, agent_grpc, runtime_env = _free_ports(4)
    address = f"http://127.0.0.1:{dashboard}"
    options = {
        "--port": 0,
        "--num-cpus": 1,
        "--dashboard-host": "127.0.0.1",
        "--dashboard-port": dashboard,
        "--dashboard-agent-listen-port": agent,
        "--dashboard-agent-grpc-port": agent_grpc,
        "--runtime-env-agent-port": runtime_env,
        "--temp-dir": folder,
    }
    own = {name: value for name, value in LOOPBACK.items() if name != "RAY_API_SERVER_ADDRESS"} | secret
    programs = Path(sys.executable).parent
    here = {"PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(Path(__file__).parents[1])}
    words = [str(word) for option in options.items() for word in option]
    with (folder / "head.log").open("w") as log:
        process = subprocess.Popen(
            [programs / "ray", "start", "--head", "--block", "--disable-usage-stats", *words],
            cwd=folder,
            env=os.environ | own | here,
            stdout=log,
            stderr=log,
        )
    try:
        _wait_for(dashboard, process)
        yield Head(address, secret["RAY_AUTH_TOKEN"], secret | {"RAY_API_SERVER_ADDRESS": address})
    finally:
        tree = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        process.wait(60)
        _, alive = psutil.wait_procs(tree, timeout=10)
        for each in alive:
            each.kill()


def _free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        servers = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)]
        return [server.getsockname()[1] for server in servers]


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        assert process.poll() is None, "the head must start"
        time.sleep(0.2)
    raise AssertionError("the dashboard must answer")
