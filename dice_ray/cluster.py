"""Ray started quiet and on loopback alone, or a cluster joined; what it says goes to a log."""

from __future__ import annotations

import gc
import os
import re
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO

from dice_ray.errors import InputError, RunError, first_line

QUIET: Mapping[str, str] = {
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",  # relative paths of a preset mean the same in an actor
    "RAY_USAGE_STATS_ENABLED": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": "1000000000",  # no one reads Tune's snapshots
    "TUNE_MAX_PENDING_TRIALS_PG": "1000",  # else the first actors start one after the other
}
LOOPBACK: Mapping[str, str] = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_enable_metrics_collection": "false",
    "AUTOSCALER_METRIC_PORT": "-1",
    "DASHBOARD_METRIC_PORT": "-1",
    "RAY_AUTH_MODE": "token",
    "RAY_API_SERVER_ADDRESS": "no_dashboard://here",  # else a run on Ray Train waits 12 s for one to answer at its end
}


FOLDER = "DICE_RAY_FOLDER"
"""Names, to processes on a cluster, the working directory of the driver."""


@dataclass(frozen=True)
class Node:
    """A machine: its CPUs, its GPUs, and the bytes of memory that were free when Ray began on it."""

    cpus: int
    gpus: int
    memory: int = 0


@dataclass(frozen=True)
class Cluster:
    """A running Ray.

    Attributes:
        nodes: Its machines.
        scratch: A folder that goes when Ray does.
    """

    nodes: tuple[Node, ...]
    scratch: Path

    @property
    def cpus(self) -> int:
        return sum(node.cpus for node in self.nodes)

    @property
    def gpus(self) -> int:
        return sum(node.gpus for node in self.nodes)


def prepare(address: str | None) -> str:
    """Set what Ray reads when it is imported; returns the address: `local`, or that of the cluster to join.

    Raises:
        InputError: It is no address.
        RunError: Ray was imported before, with other settings, or nothing answers at the address.
    """
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    is_local = address == "local"
    changed = [name for name, value in LOOPBACK.items() if (os.environ.get(name) == value) != is_local]
    if "ray" in sys.modules and (changed if is_local else len(changed) == len(LOOPBACK)):
        why = f"imported it without {', '.join(changed)}" if is_local else "holds it to loopback"
        raise RunError(f"Ray must be set for address {address!r}, but this process {why}: begin a new Python process")
    os.environ.update(QUIET)
    if is_local:
        os.environ.update(LOOPBACK)
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(16))
    elif address != "auto":
        _check(address)
    return address


def _check(address: str) -> None:
    """Something must answer where a cluster is to be joined: Ray itself would ask for ever."""
    host, _, port = address.rpartition(":")
    if not re.fullmatch(r"[\w.-]+|\[[\da-fA-F:]+\]", host) or not port.isdigit() or int(port) > 65535:
        raise InputError(
            f"the address of a Ray cluster must be HOST:PORT of its head, auto for the one that runs on this machine, "
            f"or local for one of our own, got {address!r}"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except OSError as error:
        raise RunError(f"a Ray cluster must answer at {address}, and nothing does: {error}") from error


@contextmanager
def started(
    address: str | None = None, *, num_cpus: int | None = None, log: Path, folder: Path | None = None
) -> Iterator[Cluster]:
    """Ray, started on this machine or joined, until the end of the block.

    Args:
        address: Of a cluster to join; RAY_ADDRESS where not given, and else a Ray of our own on this machine.
        num_cpus: CPUs of a Ray of our own; all of the machine where not given.
        log: Where everything that is written to stdout and stderr goes meanwhile.
        folder: What the machines of a cluster share.

    Raises:
        RunError: Ray does not start, no cluster answers, or one of its machines cannot work for us.
    """
    address = prepare(address)
    import ray

    if ray.is_initialized():
        raise RunError("Ray is already running in this process: call ray.shutdown() first")
    scratch = Path(tempfile.mkdtemp(prefix="dice_ray-"))
    ours: dict[str, Any] = {"include_dashboard": False, "num_cpus": num_cpus, "_temp_dir": str(scratch)}
    with quiet(log):
        try:
            _init(address, ours if address == "local" else {"runtime_env": _as_here()})
            nodes = [node for node in ray.nodes() if node["Alive"]]
            if address != "local":
                _check_machines(nodes, [Path.cwd(), *([folder.resolve()] if folder else [])])
            yield Cluster(tuple(_node(node["Resources"]) for node in nodes), scratch)
        finally:
            gc.collect()  # a handle of an actor that is freed after the shutdown ends this process
            ray.shutdown()
            shutil.rmtree(scratch, ignore_errors=True)


def _as_here() -> dict[str, Any]:
    """What makes relative paths and `$DICE_RAY_DATA` of a preset mean on every machine what they mean here.

    No token: Ray shows these variables in its pages and logs.
    """
    ours = {name for name in os.environ if name.startswith(("DICE_RAY_", "HF_")) and "TOKEN" not in name}
    told = {name: os.environ[name] for name in ours} | {FOLDER: str(Path.cwd())}
    return {"env_vars": told, "worker_process_setup_hook": "dice_ray.cluster.enter"}


def enter() -> None:
    """Called by Ray in each process that it starts for us on a cluster that was joined."""
    os.chdir(os.environ[FOLDER])


def _check_machines(nodes: Sequence[Mapping[str, Any]], folders: Sequence[Path]) -> None:
    """Each machine of a cluster that was joined must run what we run, and see these folders."""
    import ray
    from ray.exceptions import RayError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    task = ray.remote(num_cpus=0, max_retries=0)(_unmet)
    on_each = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in nodes]
    answers = [task.options(scheduling_strategy=there).remote(version("dice-ray"), folders) for there in on_each]
    for node, answer in zip(nodes, answers, strict=True):
        try:
            unmet = ray.get(answer)
        except RayError as error:
            unmet = first_line(error)
        if unmet:
            seen = " and ".join(map(str, folders))
            raise RunError(
                f"every machine of the cluster must have this dice_ray, and see {seen} under the same path: "
                f"{node['NodeManagerAddress']} said: {unmet}"
            )


def _unmet(wanted: str, folders: Sequence[Path]) -> str | None:
    """What this machine lacks to work for a driver of this version."""
    if (found := version("dice-ray")) != wanted:
        return f"dice_ray is {found} here, not {wanted}"
    return next((f"there is no folder {folder}" for folder in folders if not folder.is_dir()), None)


def _init(address: str, options: Mapping[str, Any]) -> None:
    import ray

    try:
        ray.init(address=address, configure_logging=False, **options)
    except Exception as error:
        must = "start" if address == "local" else "answer"
        raise RunError(f"Ray must {must} at {address}: {first_line(error)}") from error


def _node(resources: Mapping[str, float]) -> Node:
    memory = resources.get("memory", 0) + resources.get("object_store_memory", 0)
    return Node(int(resources.get("CPU", 0)), int(resources.get("GPU", 0)), int(memory))


@contextmanager
def quiet(log: Path) -> Iterator[TextIO]:
    """Put stdout and stderr of this process and its children on a log; yields the stdout of before.

    Where `DICE_RAY_VERBOSE` is set, they stay where they are.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    if os.environ.get("DICE_RAY_VERBOSE"):
        yield sys.stdout
        return
    with ExitStack() as stack:
        # A notebook's stdout is none of the process's: it stays what it is, and Python writes past it meanwhile.
        is_plain = sys.stdout is sys.__stdout__ and sys.__stdout__.fileno() == 1
        terminal = stack.enter_context(os.fdopen(os.dup(1), "w", buffering=1)) if is_plain else sys.stdout
        file = stack.enter_context(log.open("ab"))
        for number, stream in ((1, sys.stdout), (2, sys.stderr)):
            stream.flush()
            stack.callback(os.close, before := os.dup(number))
            stack.callback(os.dup2, before, number)
            os.dup2(file.fileno(), number)
        # Loggers keep the stream that they find: one that is never closed.
        out, err = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
        for stream in (out, err):
            stack.callback(stream.flush)
        with redirect_stdout(out), redirect_stderr(err):
            yield terminal
