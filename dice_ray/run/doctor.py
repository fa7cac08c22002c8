"""Checks of a cluster before anything is trained on it: on every machine, and from the driver.

A task on each machine answers for it. The driver writes a file that every machine must read, and each machine writes
one that the driver must read: folders of the same name may be different ones. Data are identified as a run identifies
them, by `sources.key`, which also downloads a data set of the hub, once for each machine.
"""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dice_ray.errors import RunError, counted, first_line, gib, one_line, reason_of
from dice_ray.files import is_url, opened, store_url, without_password
from dice_ray.run import cluster
from dice_ray.run.machine_facts import Check, MachineFacts, described, differing, find_contents

if TYPE_CHECKING:
    from dice_ray.config.schema import RunConfig

DRIVER: Final = "driver"
HOW_TO_SHARE: Final = (
    "mount one disk under the same path on all machines, or set DICE_RAY_RUNS to a URL of an object store"
)
MAX_SKEW: Final = 5.0
"""Seconds that clocks may differ by: times of files and of runs in MLflow are compared across machines."""
ANSWER_SECONDS: Final = 600.0
"""How long a machine may take, which may have to download data. A folder whose server is away would hang for ever."""


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
    """Check the machines of a cluster; a cluster of the driver's machine alone is not checked.

    Raises:
        RunError: It names each check that failed.
    """
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
        request = _Request(cluster.surroundings(), shared, needs.configs)
        asked = time.time()
        answers = []
        for node in nodes:
            there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            answers.append(task.options(scheduling_strategy=there).remote(request, node["NodeID"]))
        own = _answer(request, DRIVER)
        for node, asked_for in zip(nodes, answers, strict=True):
            machine = _machine(node, nodes)
            try:
                answer = ray.get(asked_for, timeout=ANSWER_SECONDS)
            except RayError as error:
                reason = one_line(reason_of(getattr(error, "cause", None) or error))
                must = f"it must have dice_ray {version('dice-ray')} installed for Ray's Python, and answer: {reason}"
                checks.append(Check("versions", machine, "", must))
                continue
            is_seen_here = shared.holds(node["NodeID"])
            checks += [
                *differing(machine, answer, own),
                _resources(machine, answer, cluster.node_of(node)),
                _clock(machine, answer, asked, time.time()),
                _folder(machine, answer, shared.shown, is_seen_here=is_seen_here),
            ]
    return [*checks, _disk(needs)]


@dataclass(frozen=True)
class _Request:
    surroundings: Mapping[str, str]
    shared: _Shared
    configs: tuple[RunConfig, ...]


@dataclass(frozen=True)
class _Shared:
    """The folder of runs, or the store, that all machines must share; each writes the token to a file of its own."""

    place: str
    token: str

    @property
    def shown(self) -> str:
        return without_password(self.place)

    def write(self, name: str) -> None:
        filesystem, root = opened(self.place)
        filesystem.create_dir(self._folder(root))
        with filesystem.open_output_stream(f"{self._folder(root)}/{name}") as file:
            file.write(self.token.encode())

    def holds(self, name: str) -> bool:
        filesystem, root = opened(self.place)
        try:
            with filesystem.open_input_stream(f"{self._folder(root)}/{name}") as file:
                return bool(file.read() == self.token.encode())
        except OSError:
            return False

    def delete(self) -> None:
        filesystem, root = opened(self.place)
        filesystem.delete_dir(self._folder(root))

    def _folder(self, root: str) -> str:
        return f"{root}/.doctor-{self.token[:8]}"


@contextmanager
def _shared(folder: Path) -> Iterator[_Shared]:
    """Keep a file of the driver that all machines must find, until the end of the block.

    Raises:
        RunError: The driver cannot write it.
    """
    shared = _Shared(store_url() or str(folder.resolve()), secrets.token_hex(16))
    try:
        shared.write(DRIVER)
    except OSError as error:
        raise RunError(f"the driver must be able to write to {shared.shown}: {first_line(error)}") from error
    try:
        yield shared
    finally:
        shared.delete()


def _answer(request: _Request, name: str) -> MachineFacts:
    """Runs on each machine, and in the driver."""
    answer = described(())
    working, shared = Path(request.surroundings[cluster.FOLDER]), request.shared
    if not working.is_dir() and not is_url(shared.place):
        answer.unseen = f"it must see the working directory {working} under the same path: share it, or use `submit`"
        return answer
    cluster.enter(request.surroundings)
    if not shared.holds(DRIVER):
        answer.unseen = f"it must see what the driver writes to {shared.shown}: {HOW_TO_SHARE}"
    elif name != DRIVER:
        try:
            shared.write(name)
        except OSError as error:
            answer.unseen = f"it must be able to write to {shared.shown}: {first_line(error)}"
    for config in request.configs:
        find_contents(config, answer)
    return answer


def _machine(node: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]]) -> str:
    """The address of a machine, with the beginning of its id where it runs several of Ray's nodes."""
    address = str(node["NodeManagerAddress"])
    is_one_of_several = sum(other["NodeManagerAddress"] == address for other in nodes) > 1
    return f"{address}/{node['NodeID'][:6]}" if is_one_of_several else address


def _resources(machine: str, answer: MachineFacts, node: cluster.Node) -> Check:
    found = f"{counted(node.cpus, 'CPU')}, {counted(node.gpus, 'GPU')}, {gib(node.memory)} of memory"
    torch = answer.versions["torch"]
    must = (
        f"it has GPUs, and torch {torch} is a build without CUDA: install torch from PyPI or pytorch.org's CUDA index"
    )
    return Check("resources", machine, found, must if node.gpus and torch.endswith("+cpu") else "")


def _clock(machine: str, answer: MachineFacts, asked: float, answered: float) -> Check:
    """The clock was read between the question and the answer; how far it lies outside is the least difference."""
    skew = max(asked - answer.time, answer.time - answered, 0.0)
    if skew <= MAX_SKEW:
        return Check("clock", machine, "as the driver's")
    found = f"at least {skew:.0f} s {'behind' if answer.time < asked else 'ahead'}"
    return Check("clock", machine, found, f"its clock is {found} of the driver's: set all clocks by NTP")


def _folder(machine: str, answer: MachineFacts, place: str, *, is_seen_here: bool) -> Check:
    if answer.unseen or is_seen_here:
        return Check("folders", machine, "" if answer.unseen else f"{place} read and written", answer.unseen)
    return Check("folders", machine, "", f"the driver must see what it writes to {place}: {HOW_TO_SHARE}")


def _disk(needs: Needs) -> Check:
    free = shutil.disk_usage(needs.folder).free
    found = f"{gib(free)} free" + (f" for {gib(needs.disk)} of checkpoints" if needs.disk else "")
    must = f"{needs.folder} must have {gib(needs.disk)} free for checkpoints, got {gib(free)}: delete old runs there"
    return Check("disk", DRIVER, found, must if needs.disk > free else "")
