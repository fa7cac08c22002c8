"""Ray clusters on this machine, on loopback, in folders of their own: two machines with a CPU each; a head for jobs."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import psutil

from dice_ray.run.cluster import _LOOPBACK

SCRIPT: Final = """
import sys
from ray.cluster_utils import Cluster

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
others = [cluster.add_node(num_cpus=1)]
print(cluster.address, flush=True)
for order in sys.stdin:
    if order == "add\\n":
        others.append(cluster.add_node(num_cpus=1))
    elif order == "lose\\n":
        cluster.remove_node(others.pop(0), allow_graceful=False)
    else:
        cluster.head_node.kill_all_processes(check_alive=False, allow_graceful=False)
    print(order, end="", flush=True)
cluster.shutdown()
"""

APART: Final = """
import signal, sys
from ray._private.node import Node
from ray._private.parameter import RayParams

address, num_gpus = sys.argv[1:]
own = {"num_cpus": 1, "num_gpus": int(num_gpus), "object_store_memory": 150 * 2**20, "include_log_monitor": False}
ports = {"node_manager_port": 0, "min_worker_port": 0, "max_worker_port": 0}
node = Node(RayParams(redis_address=address, gcs_address=address, **own, **ports), head=False)
print("joined", flush=True)
signal.sigwait({signal.SIGTERM})
node.kill_all_processes()
"""
"""As `ray.cluster_utils.Cluster.add_node`; `ray start` joins no cluster that is on loopback (Ray 2.60)."""


def of_driver(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a driver in a process of its own, which chooses its Ray itself.

    A local Ray of an earlier test leaves `_LOOPBACK` in this process, and with it no driver would join a cluster.
    """
    around = {name: value for name, value in os.environ.items() if name not in _LOOPBACK}
    return {**around, **environment}


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
        """Kill all that runs on the machine that has been there longest, and is not the head."""
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
        env=os.environ | _LOOPBACK | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        address = process.stdout.readline().decode().strip()
        assert address, "the cluster must start"
        yield Machines(address, environment, process.stdin, process.stdout)


@contextmanager
def machine_apart(
    two: Machines, folder: Path, hidden: Sequence[Path], *, num_gpus: int = 0, **environment: str
) -> Iterator[None]:
    """A third machine, which has empty disks of its own at the paths `hidden`; its log is in `folder`.

    Its GPUs are declared, and none is used: "-1" is the number of one for Ray, and of none for torch.
    """
    disks = "".join(f"mount -t tmpfs tmpfs {shlex.quote(str(path))} && " for path in hidden)
    join = shlex.join([sys.executable, "-c", APART, two.address, str(num_gpus)])
    with (folder / "apart.log").open("w") as log:
        process = subprocess.Popen(
            ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", f"{disks}exec {join}"],
            cwd=folder,
            env={**os.environ, **_LOOPBACK, **two.environment, "CUDA_VISIBLE_DEVICES": "-1", **environment},
            stdout=log,
            stderr=log,
        )
    try:
        until = time.monotonic() + 60
        while "joined" not in (folder / "apart.log").read_text():
            assert process.poll() is None, (folder / "apart.log").read_text()
            assert time.monotonic() < until, "the machine must start"
            time.sleep(0.2)
        yield
    finally:
        _end(process)


@dataclass(frozen=True)
class Head:
    """A running cluster of one machine that takes jobs.

    Attributes:
        address: Of its dashboard.
        ray: Its own address, for what joins it.
        token: What it asks for.
        environment: What a process must have to ask it.
    """

    address: str
    ray: str
    token: str
    environment: Mapping[str, str]


@contextmanager
def head(folder: Path, most_machines: int = 1) -> Iterator[Head]:
    """A head with one CPU, a dashboard and a token, on loopback; its files are in this folder: a short path.

    Ray's autoscaler adds machines with one CPU each, up to so many with the head: raylets on this machine.
    """
    secret = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)}
    port, dashboard, agent, agent_grpc, runtime_env = _free_ports(5)
    address = f"http://127.0.0.1:{dashboard}"
    options = {
        "--port": port,
        "--num-cpus": 1,
        "--dashboard-host": "127.0.0.1",
        "--dashboard-port": dashboard,
        "--dashboard-agent-listen-port": agent,
        "--dashboard-agent-grpc-port": agent_grpc,
        "--runtime-env-agent-port": runtime_env,
        "--temp-dir": folder,
    }
    if most_machines > 1:
        options["--autoscaling-config"] = file = folder / "autoscaler.json"
        file.write_text(json.dumps(_autoscaling(most_machines - 1, port)))
        secret |= {"AUTOSCALER_UPDATE_INTERVAL_S": "1", "RAY_FAKE_CLUSTER": "1"}
    # With this variable too, which another test of this process may have set, a job takes its Ray for a local one.
    own = {name: value for name, value in (os.environ | _LOOPBACK).items() if name != "RAY_API_SERVER_ADDRESS"} | secret
    programs = Path(sys.executable).parent
    here = {"PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(Path(__file__).parents[1])}
    words = [str(word) for option in options.items() for word in option]
    with (folder / "head.log").open("w") as log:
        process = subprocess.Popen(
            [programs / "ray", "start", "--head", "--block", "--disable-usage-stats", *words],
            cwd=folder,
            env=own | here,
            stdout=log,
            stderr=log,
        )
    try:
        _wait_for(dashboard, process)
        yield Head(address, f"127.0.0.1:{port}", secret["RAY_AUTH_TOKEN"], secret | {"RAY_API_SERVER_ADDRESS": address})
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process with all that it has started."""
    if process.poll() is not None:
        return
    tree = psutil.Process(process.pid).children(recursive=True)
    process.terminate()
    process.wait(60)
    _, alive = psutil.wait_procs(tree, timeout=10)
    for each in alive:
        each.kill()


def _autoscaling(most: int, port: int) -> dict[str, object]:
    """The configuration of Ray's autoscaler for machines that are processes here (Ray 2.60)."""
    no_node_setup = {"use_node_id_as_ip": True, "disable_node_updaters": True, "disable_launch_config_check": True}
    lists = ("initialization", "setup", "head_setup", "worker_setup", "head_start_ray", "worker_start_ray")
    one_cpu: dict[str, object] = {"resources": {"CPU": 1}, "node_config": {}}
    return {
        "cluster_name": "growing",
        "provider": {"type": "fake_multinode", "gcs_address": f"127.0.0.1:{port}", **no_node_setup},
        "head_node_type": "ray.head.default",
        "available_node_types": {
            "ray.head.default": one_cpu | {"max_workers": 0},
            "other": one_cpu | {"min_workers": 0, "max_workers": most},
        },
        "max_workers": most,
        "idle_timeout_minutes": 5,
        "upscaling_speed": 1,
        **{f"{name}_commands": [] for name in lists},
        **{key: {} for key in ("auth", "docker", "file_mounts")},
        **{key: [] for key in ("cluster_synced_files", "rsync_exclude", "rsync_filter")},
        "file_mounts_sync_continuously": False,
    }


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
