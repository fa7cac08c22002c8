"""Checks of a cluster before anything is trained on it: on every machine, and from the driver.

A task on each machine answers for it. The driver writes a file that every machine must read, and each machine writes
one that the driver must read: folders of the same name may be different ones. Data are identified as a run identifies
them, by `sources.key`, which also downloads a data set of the hub, once for each machine.

Machines that join a cluster after its check are checked when the first trial starts there (`admission`, `problem`).
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from dice_ray.errors import DiceRayError, RunError, counted, first_line, gib, one_line, reason_of
from dice_ray.files import RUNS, is_url, opened, store_url, without_password
from dice_ray.run import cluster

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

    from dice_ray.config.schema import RunConfig

DRIVER: Final = "driver"
_HOW_TO_SHARE: Final = (
    "mount one disk under the same path on all machines, or set DICE_RAY_RUNS to a URL of an object store"
)
_ANSWER_SECONDS: Final = 600.0
"""How long a machine may take, which may have to download data. A folder whose server is away would hang for ever."""


@dataclass(frozen=True)
class Check:
    """What a check found on a machine.

    Attributes:
        machine: Its address, or `driver`.
        found: What holds there; empty if that could not be found out.
        problem: What must hold and how to fix it, on one line; empty if all is well.
    """

    name: str
    machine: str
    found: str
    problem: str = ""


_Finding: TypeAlias = tuple[str, str, str]
"""A check of one machine: `name`, `found` and `problem`."""


@dataclass
class _MachineFacts:
    """The facts that a machine reports of itself.

    Attributes:
        unseen: The driver's folders that it does not see, or cannot write to.
        contents: By the names of data and encoders, where they are and what identifies their content.
        problems: By the same names, why they are not there.
        own_name: Its host name, and the address that this stands for.
    """

    versions: dict[str, str]
    time: float
    unseen: str = ""
    contents: dict[str, tuple[str, str]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    own_name: tuple[str, str] = ("", "")


def _described(configs: Sequence[RunConfig]) -> _MachineFacts:
    """The facts of this machine: its time and packages, and the data and encoders of these configurations."""
    packages = {each: version(each) for each in ("ray", "torch", "dice-ray")}
    answer = _MachineFacts({"python": platform.python_version(), **packages}, time.time())
    for config in configs:
        _find_contents(config, answer)
    return answer


def _find_contents(config: RunConfig, answer: _MachineFacts) -> None:
    """Identify the data and the encoder of a configuration on this machine."""
    from dice_ray.data import sources
    from dice_ray.models.pretrained import hub_commit
    from dice_ray.models.sources import digest, resolve_source
    from dice_ray.models.tiny import TINY

    def data() -> tuple[str, str]:
        read = {"synthetic": "generated", "hub": "loaded by its id"}.get(config.data.source.name, "read")
        return read, json.dumps(sources.key(config.data, config.task.positive_label()), sort_keys=True)

    def encoder() -> tuple[str, str]:
        name = config.model.encoder
        if (source := resolve_source(name)) != name or Path(name).is_dir():
            return f"in {source}", digest(name)
        return "on the hub, with access", hub_commit(name)

    finders = {f"data {config.data_name}": data, f"encoder {config.model.encoder}": encoder}
    for name, find in finders.items():
        if name == f"encoder {TINY}" or name in answer.contents:
            continue
        try:
            answer.contents[name] = find()
        except (DiceRayError, OSError) as error:
            answer.problems[name] = reason_of(error)


def _differing(answer: _MachineFacts, own: _MachineFacts) -> Iterator[_Finding]:
    """The checks of packages, data and encoders, which must be those of the driver."""
    # A machine without GPUs may have another build of torch, and Ray itself compares Python's last number.
    unequal = [
        f"{package}=={number.partition('+')[0]}, not {answer.versions[package]}"
        for package, number in own.versions.items()
        if number.partition("+")[0] != answer.versions[package].partition("+")[0]
    ]
    problem = f"it must have the driver's versions: install {', '.join(unequal)}" if unequal else ""
    yield "versions", ", ".join(f"{package} {number}" for package, number in answer.versions.items()), problem
    for name, (where, identity) in answer.contents.items():
        _, expected = own.contents.get(name, ("", identity))
        must = f"its {name} must be that of the driver, and differs: copy the driver's files there"
        yield name, where, "" if identity == expected else must
    for name, problem in answer.problems.items():
        yield name, "", f"it must have the {name}, which the driver does not send: {one_line(problem)}"


@dataclass(frozen=True)
class Needs:
    """What every machine must have for a run, sweep or study.

    Attributes:
        folder: The folder of runs, or of the run, which exists; with the working directory, all must see it.
        configs: Their data and encoders must be there.
        disk: Bytes that checkpoints will take in the folder.
    """

    folder: Path
    configs: tuple[RunConfig, ...] = ()
    disk: int = 0


def check(joined: cluster.Cluster, needs: Callable[[], Needs]) -> None:
    """Raise a RunError with each check of a cluster that failed; the driver's machine alone is not checked."""
    if len(joined.nodes) > 1 and (failed := [each for each in examined(needs()) if each.problem]):
        problems = "\n".join(f"  {each.machine}: {each.problem}" for each in failed)
        raise RunError(f"the machines of the cluster must be ready (`dice-ray doctor` shows all checks):\n{problems}")


def examined(needs: Needs) -> list[Check]:
    """The checks of every machine of the Ray that runs."""
    import ray
    from ray.exceptions import RayError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = [node for node in ray.nodes() if node["Alive"]]
    task = ray.remote(num_cpus=0, max_retries=0)(_answer)
    checks: list[Check] = []
    with _shared(needs.folder) as shared:
        asked = time.time()
        request = cluster.surroundings(), shared, needs.configs
        answers = []
        for node in nodes:
            there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            answers.append(task.options(scheduling_strategy=there).remote(node["NodeID"], *request))
        own = _answer(DRIVER, *request)
        for node, asked_for in zip(nodes, answers, strict=True):
            address = str(node["NodeManagerAddress"])
            is_one_of_several = sum(other["NodeManagerAddress"] == address for other in nodes) > 1
            machine = f"{address}/{node['NodeID'][:6]}" if is_one_of_several else address
            try:
                answer = ray.get(asked_for, timeout=_ANSWER_SECONDS)
            except RayError as error:
                reason = one_line(reason_of(getattr(error, "cause", None) or error))
                must = f"it must have dice_ray {version('dice-ray')} installed for Ray's Python, and answer: {reason}"
                checks.append(Check("versions", machine, "", must))
                continue
            findings = [
                *_differing(answer, own),
                *_state(answer, cluster.node_of(node), asked, time.time()),
                _folders(answer, shared, node["NodeID"]),
            ]
            if len(nodes) > 1 and (not needs.configs or any(each.launch.workers > 1 for each in needs.configs)):
                findings.append(_own_name(address, answer))
            checks += [Check(name, machine, found, problem) for name, found, problem in findings]
    return [*checks, _disk(needs)]


@dataclass(frozen=True)
class _Shared:
    """The folder of runs, or the store, that all machines must share; each writes the token to a file of its own."""

    place: str
    token: str

    @property
    def shown(self) -> str:
        return without_password(self.place)

    def at(self, name: str) -> tuple[FileSystem, str]:
        """A file in a folder that is there until the end of the check."""
        filesystem, root = opened(self.place)
        return filesystem, f"{root}/.doctor-{self.token[:8]}/{name}"

    def write(self, name: str) -> None:
        filesystem, file = self.at(name)
        filesystem.create_dir(file.removesuffix(f"/{name}"))
        with filesystem.open_output_stream(file) as stream:
            stream.write(self.token.encode())

    def holds(self, name: str) -> bool:
        filesystem, file = self.at(name)
        try:
            with filesystem.open_input_stream(file) as stream:
                return bool(stream.read() == self.token.encode())
        except OSError:
            return False


@contextmanager
def _shared(folder: Path) -> Iterator[_Shared]:
    """Keep a file of the driver that all machines must find, until the end of the block."""
    shared = _Shared(store_url() or str(folder.resolve()), secrets.token_hex(16))
    try:
        shared.write(DRIVER)
    except OSError as error:
        raise RunError(f"the driver must be able to write to {shared.shown}: {first_line(error)}") from error
    try:
        yield shared
    finally:
        filesystem, own = shared.at("")
        filesystem.delete_dir(own)


def _answer(name: str, surroundings: Mapping[str, str], shared: _Shared, configs: Sequence[RunConfig]) -> _MachineFacts:
    """Runs on each machine, and in the driver."""
    answer = _described(())
    working = Path(surroundings[cluster.FOLDER])
    if not working.is_dir() and not is_url(shared.place):
        answer.unseen = f"it must see the working directory {working} under the same path: share it, or use `submit`"
        return answer
    cluster.enter(surroundings)
    if not shared.holds(DRIVER):
        answer.unseen = f"it must see what the driver writes to {shared.shown}: {_HOW_TO_SHARE}"
    elif name != DRIVER:
        try:
            shared.write(name)
        except OSError as error:
            answer.unseen = f"it must be able to write to {shared.shown}: {first_line(error)}"
    for config in configs:
        _find_contents(config, answer)
    with suppress(OSError):
        # torch's gloo listens where the host name is, unless it is given a network interface.
        host = socket.gethostname()
        answer.own_name = (host, os.environ.get("GLOO_SOCKET_IFNAME") or socket.gethostbyname(host))
    return answer


def _state(answer: _MachineFacts, node: cluster.Node, asked: float, answered: float) -> Iterator[_Finding]:
    """The checks of what a machine has, and of its clock, which was read between the question and the answer."""
    torch = answer.versions["torch"]
    must = (
        f"it has GPUs, and torch {torch} is a build without CUDA: install torch from PyPI or pytorch.org's CUDA index"
    )
    found = f"{counted(node.cpus, 'CPU')}, {counted(node.gpus, 'GPU')}, {gib(node.memory)} of memory"
    yield "resources", found, must if node.gpus and torch.endswith("+cpu") else ""
    skew = max(asked - answer.time, answer.time - answered, 0.0)  # the least difference
    if skew <= 5:  # seconds; times of files and of runs in MLflow are compared across machines
        yield "clock", "as the driver's", ""
    else:
        found = f"at least {skew:.0f} s {'behind' if answer.time < asked else 'ahead'}"
        yield "clock", found, f"its clock is {found} of the driver's: set all clocks by NTP"


def _folders(answer: _MachineFacts, shared: _Shared, name: str) -> _Finding:
    """Whether the machine of this name and the driver see what the other one writes."""
    unseen = answer.unseen
    if not unseen and not shared.holds(name):
        unseen = f"the driver must see what it writes to {shared.shown}: {_HOW_TO_SHARE}"
    return "folders", "" if unseen else f"{shared.shown} read and written", unseen


def _own_name(machine: str, answer: _MachineFacts) -> _Finding:
    """Workers of one run on several machines reach each other at the addresses of the machines' host names."""
    name, address = answer.own_name
    must = (
        f"its host name {name} must stand for an address that the others reach, and stands for {address or 'none'}: "
        "correct /etc/hosts there, or set GLOO_SOCKET_IFNAME to its network interface before its `ray start`"
    )
    is_reached = bool(address) and (machine.startswith("127.") or not address.startswith("127."))
    return "host name", address, "" if is_reached else must


def _disk(needs: Needs) -> Check:
    free = shutil.disk_usage(needs.folder).free
    found = f"{gib(free)} free" + (f" for {gib(needs.disk)} of checkpoints" if needs.disk else "")
    must = f"{needs.folder} must have {gib(needs.disk)} free for checkpoints, got {gib(free)}: delete old runs there"
    return Check("disk", DRIVER, found, must if needs.disk > free else "")


@dataclass(frozen=True)
class Admission:
    """What must hold of a machine that joins later.

    Attributes:
        known: Ids of the machines that were checked at the start.
        configs: Their data and encoders must be there.
        driver: The facts of the driver's own machine.
    """

    known: frozenset[str]
    configs: tuple[RunConfig, ...]
    driver: _MachineFacts


def admission(joined: cluster.Cluster, configs: Sequence[RunConfig]) -> Admission | None:
    """What must hold of machines that join after this process; None where none can join."""
    # Not those of this moment: minutes may have passed since the check, as while GPU memory is measured.
    return None if joined.is_fixed else Admission(joined.ids, tuple(configs), _described(configs))


def problem(admission: Admission | None, surroundings: Mapping[str, str], folder: Path) -> str:
    """Why the machine of this process is not ready for trials, if it has joined later; empty if it is ready."""
    import ray

    if admission is None or ray.get_runtime_context().get_node_id() in admission.known:
        return ""
    found = _found(admission, surroundings, folder)
    return f"{ray.util.get_node_ip_address()}: {found}" if found else ""


def _found(admission: Admission, surroundings: Mapping[str, str], folder: Path) -> str:
    must_see = () if is_url(surroundings.get(RUNS, "")) else (Path(surroundings[cluster.FOLDER]), folder)
    if unseen := next((each for each in must_see if not each.is_dir()), None):
        return f"it must see {unseen} under the same path: {_HOW_TO_SHARE}"
    cluster.enter(surroundings)
    differing = _differing(_described(admission.configs), admission.driver)
    return "; ".join(problem for _, _, problem in differing if problem)
