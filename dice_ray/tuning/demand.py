"""The CPUs and GPUs that a trial needs, and how many trials fit on the machines of a cluster at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dice_ray.config.schema import RunConfig
from dice_ray.errors import RunError, counted
from dice_ray.run.cluster import ACCELERATOR, Node
from dice_ray.run.train import uses_ray_train


@dataclass(frozen=True)
class Demand:
    """The CPUs and GPUs of one trial: of its own process, and of each of its Ray Train workers.

    Attributes:
        accelerator: The kind of GPU that a machine must have for it; any machine will do if empty.
    """

    own: int
    own_gpus: float = 0
    num_workers: int = 0
    worker: int = 0
    worker_gpus: float = 0
    accelerator: str = ""

    @property
    def constraint(self) -> dict[str, float]:
        """What a process asks of Ray to be placed on a machine with its kind of GPU, and takes nothing of."""
        return {f"{ACCELERATOR}{self.accelerator}": 0.001} if self.accelerator else {}

    @property
    def threads(self) -> int:
        return self.worker if self.num_workers else self.own

    @property
    def cpus(self) -> int:
        return self.own + self.num_workers * self.worker

    @property
    def gpus(self) -> float:
        return self.own_gpus + self.num_workers * self.worker_gpus

    def suitable(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """The machines that have its kind of GPU."""
        return [node for node in nodes if not self.accelerator or self.accelerator in node.accelerators]

    def slots(self, nodes: Sequence[Node]) -> int:
        """How many trials fit on these machines at once.

        Tune would start more: a trial on Ray Train holds only the CPU of its own process while it waits for those of
        its workers, and trials that wait for each other's CPUs block for minutes (Ray 2.60).

        Raises:
            RunError: Not one fits.
        """
        if not (suited := self.suitable(nodes)):
            found = ", ".join(sorted({kind for node in nodes for kind in node.accelerators})) or "none"
            raise RunError(f"a machine must have a GPU {self.accelerator} (launch.accelerator_type), got {found}")
        nodes = suited
        cpus, gpus = sum(node.cpus for node in nodes), sum(node.gpus for node in nodes)
        if gpus < self.gpus:
            raise RunError(
                f"each trial needs {counted(self.gpus, 'GPU')} (launch.workers x launch.gpus), got {gpus} in all"
            )
        if cpus < self.cpus:
            with_workers = "launch.workers x launch.threads, and 1 for the process that waits for the workers"
            what = with_workers if self.num_workers else "launch.threads"
            raise RunError(f"each trial needs {counted(self.cpus, 'CPU')} ({what}), got {cpus} in all")
        process = (self.worker, self.worker_gpus) if self.num_workers else (self.own, self.own_gpus)
        if not any(node.cpus >= process[0] and node.gpus >= process[1] for node in nodes):
            found = ", ".join(f"{node.cpus} and {node.gpus}" for node in nodes)
            raise RunError(
                f"one machine must have the {counted(process[0], 'CPU')} (launch.threads) and "
                f"{counted(process[1], 'GPU')} (launch.gpus) of a process, got {found}"
            )
        return self._fitting(nodes)

    def most_at_once(self, nodes: Sequence[Node], *, is_fixed: bool) -> int:
        """How many trials to keep running or waiting: as many as fit on these machines, and some that wait for more.

        Ray's autoscaler starts machines for trials that wait. A sampler suggests those before it knows the results of
        the trials that run, so they are few: a quarter, by which the cluster grows at a time. A trial on Ray Train must
        not wait: with the CPU of its own process it would block those that run (see `slots`).
        """
        fitting = self._fitting(nodes)
        waiting = 0 if is_fixed or self.num_workers else math.ceil(fitting / 4)
        return max(1, fitting + waiting)  # one also where all machines are lost: it waits for the next

    def _fitting(self, nodes: Sequence[Node]) -> int:
        nodes = self.suitable(nodes)
        cpus, gpus = sum(node.cpus for node in nodes), sum(node.gpus for node in nodes)
        if self.num_workers:
            return min(cpus // self.cpus, self._slots_on_gpus(gpus, cpus))
        return sum(min(node.cpus // self.own, self._slots_on_gpus(node.gpus, cpus)) for node in nodes)

    def _slots_on_gpus(self, gpus: int, most: int) -> int:
        """Trials that need a fraction of a GPU share one, and none spans two."""
        if not self.gpus:
            return most
        return gpus * math.floor(1 / self.gpus + 1e-9) if self.gpus < 1 else int(gpus // self.gpus)


def shared(config: RunConfig, nodes: Sequence[Node], num_trials: int, auto_gpus: float | None = None) -> Demand:
    """The demand of each of these trials; without `launch.threads`, those that fit at once share the CPUs.

    Args:
        config: Of the trials.
        nodes: The machines.
        num_trials: How many trials there are.
        auto_gpus: What `launch.gpus: auto` stands for; a whole GPU, if there is one, until it has been measured.

    Raises:
        RunError: Not one fits.
    """
    if auto_gpus is None:
        auto_gpus = unmeasured(config, nodes)
    needs = demand(config, 1, auto_gpus)
    at_once = min(needs.slots(nodes), num_trials)
    if config.launch.threads is None:
        for threads in range(max(node.cpus for node in nodes), 1, -1):
            wider = demand(config, threads, auto_gpus)
            if wider.cpus <= sum(node.cpus for node in wider.suitable(nodes)) and wider.slots(nodes) >= at_once:
                return wider
    return needs


def unmeasured(config: RunConfig, nodes: Sequence[Node]) -> int:
    """What `launch.gpus: auto` stands for until it is measured: a whole GPU, if there is one."""
    return int(any(node.gpus for node in demand(config, 1).suitable(nodes)))


def demand(config: RunConfig, threads: int, auto_gpus: float = 0) -> Demand:
    """The demand of a trial of this configuration, with so many threads and GPUs where it names no number."""
    launch = config.with_threads(threads).launch
    assert launch.threads is not None
    gpus, kind = launch.num_gpus(auto_gpus), launch.accelerator_type or ""
    if not uses_ray_train(config):
        return Demand(launch.threads, gpus, accelerator=kind)
    return Demand(1, 0, launch.workers, launch.threads, gpus, kind)
