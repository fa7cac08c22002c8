"""Ray, started on this machine or joined as a cluster, with its output in a log.

Ray reads most of its settings from the environment when it is imported, so they are set before; a notebook may have
imported it already, so the settings that it keeps are read again. By default every Ray process listens on all
interfaces, also without a dashboard (Ray 2.60); `_LOOPBACK` holds a local Ray to 127.0.0.1, and a token keeps other
users of the machine from submitting work to it. A cluster that is joined keeps its own settings, and so does a Ray
that the user has started in this process, which is used as it is and not shut down.

The processes of a Ray that others have started know neither this process's folder nor its variables. So code that is
sent to Ray first calls `enter` with the `surroundings` of the process that sends it.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dice_ray.errors import InputError, RunError, counted, first_line, meant
from dice_ray.files import lock, store_url
from dice_ray.output import last_words, redirected
from dice_ray.run import ray_internals
from dice_ray.run.signals import postponed

if TYPE_CHECKING:
    from dice_ray.config.schema import LaunchConfig

_QUIET: Mapping[str, str] = {
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",  # relative paths of a preset mean the same in an actor
    "RAY_USAGE_STATS_ENABLED": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # it would outlive Tune's loop, and swallow the first Ctrl-C after it
    "TUNE_GLOBAL_CHECKPOINT_S": "1000000000",  # Tune's snapshots are not used: the ledger is what a sweep resumes from
    "TUNE_MAX_PENDING_TRIALS_PG": "1000",  # otherwise the first actors start one after the other
}
_LOOPBACK: Mapping[str, str] = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_enable_metrics_collection": "false",
    "AUTOSCALER_METRIC_PORT": "-1",
    "DASHBOARD_METRIC_PORT": "-1",
    "RAY_AUTH_MODE": "token",
    # Ray Train asks the dashboard at the end of a run, and waits 12 s for one that does not run.
    "RAY_API_SERVER_ADDRESS": "no_dashboard://here",
}

RUNNING = "running"
"""Stands for the address of a Ray that runs in this process already."""
ACCELERATOR = "accelerator_type:"
"""With the name of a kind of GPU, Ray's resource of the machines that have it."""
FOLDER = "DICE_RAY_FOLDER"
"""Environment variable with the driver's working directory, for processes on Ray."""
_PASSED = (
    *("DICE_RAY_CACHE", "DICE_RAY_DATA", "DICE_RAY_RUNS", "DICE_RAY_VERBOSE"),
    *("HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_HUB_DISABLE_XET", "HF_ENDPOINT"),
    *("HF_DATASETS_CACHE", "HF_DATASETS_OFFLINE", "HF_MODULES_CACHE", "HF_XET_CACHE"),
)
"""Environment variables that other machines get: those that say where files are, and none that may hold a secret."""
_SOCKET = "/dice_ray-xxxxxxxx/ray/session_2026-01-01_00-00-00_000000_4194304/sockets/plasma_store"
"""A socket of a Ray that is started here, below the folder of temporary files (Ray 2.60)."""


@dataclass(frozen=True)
class Node:
    """A machine: its CPUs and GPUs, the bytes of memory that were free when Ray started on it, and Ray's GPU types."""

    cpus: int
    gpus: int
    memory: int = 0
    accelerators: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Cluster:
    """A running Ray.

    Attributes:
        nodes: Its machines when it was started or joined.
        scratch: A temporary folder, deleted when Ray ends.
        is_own: Whether it was started here, and ends with what is run on it.
        is_fixed: Whether no machine is added or lost while it runs.
        ids: Ray's ids of `nodes`.
    """

    nodes: tuple[Node, ...]
    scratch: Path
    is_own: bool = True
    is_fixed: bool = True
    ids: frozenset[str] = frozenset()

    @property
    def lost(self) -> str | None:
        """The process of our own Ray that has died, without which nothing can be run; None where all are well."""
        return ray_internals.dead_process() if self.is_own else None

    @property
    def address(self) -> str:
        """The address of its head."""
        import ray

        return str(ray.get_runtime_context().gcs_address)

    def nodes_now(self) -> tuple[Node, ...]:
        """Its machines at this moment."""
        import ray

        return self.nodes if self.is_fixed else tuple(node_of(each) for each in ray.nodes() if each["Alive"])


def prepare(address: str | None) -> str:
    """Set the environment that Ray reads; returns `local`, `running`, or the address of the cluster to join.

    Raises:
        InputError: The address is malformed.
        RunError: This process has another Ray, or nothing answers at the address.
    """
    if "ray" in sys.modules and sys.modules["ray"].is_initialized():
        if address is not None:
            raise RunError(
                f"Ray runs in this process already, and is used: call ray.shutdown() to use address {address!r} instead"
            )
        os.environ.update(_QUIET)
        return RUNNING
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    if address == "local":
        os.environ.update({**_QUIET, **_LOOPBACK})
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(16))
        if "ray" in sys.modules:
            ray_internals.read_settings_again()
        return address
    if "ray" in sys.modules and all(os.environ.get(name) == value for name, value in _LOOPBACK.items()):
        raise RunError(
            f"Ray was restricted to this machine when this process first used it, and cannot join {address!r}: start a "
            "new Python process"
        )
    os.environ.update(_QUIET)
    if address != "auto":
        _check_address(address)
    return address


def _check_address(address: str) -> None:
    host, _, port = address.rpartition(":")
    if not re.fullmatch(r"[\w.-]+|\[[\da-fA-F:]+\]", host) or not port.isdigit() or int(port) > 65535:
        raise InputError(
            "the address of a Ray cluster must be HOST:PORT of its head, `auto` for a cluster that runs on this "
            f"machine, or `local` to start Ray here, got {address!r}"
        )
    check_answers(host.strip("[]"), int(port), address)


def check_answers(host: str, port: int, address: str) -> None:
    """Raise a RunError unless something answers at the address: Ray itself would retry for ever."""
    try:
        socket.create_connection((host, port), timeout=10).close()
    except OSError as error:
        raise RunError(f"a Ray cluster must answer at {address}, and nothing does: {error}") from error


@contextmanager
def started(
    address: str | None = None, *, num_cpus: int | None = None, least_cpus: int | None = None, log: Path
) -> Iterator[Cluster]:
    """Ray until the end of the block: the one that runs in this process, or a local one, or a cluster that is joined.

    Args:
        address: Of a cluster to join; RAY_ADDRESS where not given, and otherwise a local Ray is started.
        num_cpus: CPUs of a local Ray, by default all of the machine; any other Ray must have as many, or `least_cpus`.
        least_cpus: A smaller number of CPUs that is enough too.
        log: Receives everything that is written to stdout and stderr during the block.

    Raises:
        RunError: Ray does not start, no cluster answers, or it is too small.
    """
    address = prepare(address)
    import ray

    cluster: Cluster | None = None
    with _scratch() as scratch, redirected(log):
        # Ray lets everyone write to the folder that it gets (2.60): they could replace its sockets.
        local: dict[str, Any] = {"include_dashboard": False, "num_cpus": num_cpus, "_temp_dir": str(scratch / "ray")}
        try:
            if address != RUNNING:
                _init(address, local if address == "local" else {})
            alive = [node for node in ray.nodes() if node["Alive"]]
            is_own = address == "local"
            ids = frozenset(node["NodeID"] for node in alive)
            cluster = Cluster(tuple(map(node_of, alive)), scratch, is_own, is_fixed=is_own, ids=ids)
            least_cpus, cpus = least_cpus or num_cpus or 0, sum(node.cpus for node in cluster.nodes)
            if cpus < least_cpus:  # Ray would wait for them for ever
                raise RunError(
                    f"the Ray that is used must have {counted(least_cpus, 'CPU')}, and has {cpus}: lower "
                    "launch.workers or launch.threads"
                )
            yield cluster
        finally:
            ray_internals.free_handles(gcs_answers=cluster is None or cluster.lost != "gcs_server")
            if address != RUNNING:
                ray.shutdown()


@contextmanager
def _scratch() -> Iterator[Path]:
    """A temporary folder for this user alone; those that killed drivers have left are removed first.

    It is in /tmp where the path of Ray's sockets would be too long in `$TMPDIR`, as on macOS.
    """
    longest = 103 if sys.platform == "darwin" else 107  # bytes that the path of a socket can have
    is_short = len(os.fsencode(tempfile.gettempdir() + _SOCKET)) <= longest
    parent = Path(tempfile.gettempdir() if is_short else "/tmp")
    for left in parent.glob("dice_ray-*/lock"):
        with suppress(OSError, RunError):
            # A new folder may be one that another driver is about to lock; and others may not lead us to our own files.
            found = left.parent.lstat()
            is_ours = found.st_uid == os.getuid() and found.st_mode == stat.S_IFDIR | 0o700
            if is_ours and time.time() - found.st_mtime > 60:
                with lock(left.parent):
                    shutil.rmtree(left.parent, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix="dice_ray-", dir=parent))
    try:
        with lock(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def surroundings() -> dict[str, str]:
    """The variables that give paths, `$DICE_RAY_DATA` and the like the same meaning on Ray as in this process."""
    return {name: os.environ[name] for name in _PASSED if name in os.environ} | {FOLDER: str(Path.cwd())}


def enter(surroundings: Mapping[str, str]) -> None:
    """Give this process the folder and the variables of the one that sent it its work."""
    os.environ.update(surroundings)
    if store_url():  # machines that share no disk have no such folder at first
        Path(surroundings[FOLDER]).mkdir(parents=True, exist_ok=True)
    os.chdir(surroundings[FOLDER])


def hide_unasked_gpus(asked: float) -> None:
    """Hide the GPUs of this machine from work that asks for none: Ray itself hides only those of others (2.60)."""
    if asked == 0:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


def _check_member(address: str) -> None:
    """Raise a RunError unless a cluster answers and takes the token of this process, and this machine is one of it."""
    from ray.exceptions import RayError

    host, _, port = address.rpartition(":")
    if not host:  # `local`, or `auto`, which Ray itself looks for here
        return
    if (own := ray_internals.own_address(host)) != host:
        check_answers(own, int(port), f"{own}:{port}, which Ray uses in place of {address}")
    try:
        sockets = ray_internals.sockets(f"{own}:{port}")
    except RayError as error:
        if type(error).__name__ != "AuthenticationError":
            raise RunError(f"Ray must answer at {address}: {first_line(error)}") from error
        raise RunError(
            f"the Ray cluster at {address} must be given its token, and this process has another one or none: set "
            "RAY_AUTH_MODE=token, and copy ~/.ray/auth_token of the head to this machine"
        ) from error
    if not any(map(_listens, sockets)):
        raise RunError(
            f"this machine must be one of the Ray cluster at {address}, and none of its raylets runs here: `ray start "
            f"--address={address}` first, or give the command to the cluster by `dice-ray submit`"
        )


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as client, suppress(OSError):
        client.connect(path)
        return True
    return False


def _init(address: str, options: Mapping[str, Any]) -> None:
    import ray

    _check_member(address)
    try:
        # An exception in ray.init would crash this process.
        with ray_internals.sigterm_handler_kept(), postponed(), last_words(f"Ray has ended it at {address}"):
            ray.init(address=address, configure_logging=False, **options)
    except Exception as error:
        must = "start" if address == "local" else "answer"
        raise RunError(f"Ray must {must} at {address}: {first_line(error)}") from error


def check_accelerator(nodes: Sequence[Node], kind: str | None) -> None:
    """Raise a RunError where no machine has this kind of GPU: Ray would wait for one for ever."""
    found = sorted({each for node in nodes for each in node.accelerators})
    if kind and kind not in found:
        raise RunError(
            f"a machine must have a GPU {kind} (launch.accelerator_type), got {', '.join(found) or 'none'}"
            f"{meant(kind, found)}"
        )


def check_gpus(needed: float, available: int) -> None:
    """Raises a RunError where a run needs more GPUs than there are."""
    if needed > available:
        raise RunError(f"there must be {counted(needed, 'GPU')} (launch.workers x launch.gpus), got {available}")


def unused_gpus(launch: LaunchConfig, nodes: Sequence[Node]) -> str:
    """A note that `launch.gpus=0` leaves GPUs unused, and the setting that uses them; empty where it leaves none."""
    found = sum(node.gpus for node in nodes)
    if not found or launch.gpus != 0:
        return ""
    how = "launch.gpus=1 gives each worker one" if launch.uses_ray_train else "launch.gpus=auto lets trials share them"
    return f"launch.gpus=0 leaves {counted(found, 'GPU')} unused; {how}"


def node_of(entry: Mapping[str, Any]) -> Node:
    """The machine of an entry of `ray.nodes()`."""
    resources = entry["Resources"]
    memory = resources.get("memory", 0) + resources.get("object_store_memory", 0)
    accelerators = frozenset(name.removeprefix(ACCELERATOR) for name in resources if name.startswith(ACCELERATOR))
    return Node(int(resources.get("CPU", 0)), int(resources.get("GPU", 0)), int(memory), accelerators)
