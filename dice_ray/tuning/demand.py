"""The CPUs and GPUs that a trial needs, and how many trials fit on the machines of a cluster at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dice_ray.config.schema import RunConfig
from dice_ray.errors import RunError, counted
from dice_ray.run.cluster import Node
from dice_ray.run.train import uses_ray_train


@dataclass(frozen=True)
class Demand:
    """The CPUs and GPUs of one trial: of its own process, and of each of its Ray Train workers."""

    own: int
    own_gpus: float = 0
    num_workers: int = 0
    worker: int = 0
    worker_gpus: float = 0

    @property
    def threads(self) -> int:
        return self.worker if self.num_workers else self.own

    @property
    def cpus(self) -> int:
        return self.own + self.num_workers * self.worker

    @property
    def gpus(self) -> float:
        return self.own_gpus + self.num_workers * self.worker_gpus

    def slots(self, nodes: Sequence[Node]) -> int:
        """How many trials fit on these machines at once.

        Tune would start more: a trial on Ray Train holds only the CPU of its own process while it waits for those of
        its workers, and trials that wait for each other's CPUs block for minutes (Ray 2.60).

        Raises:
            RunError: Not one fits.
        """
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
        cpus, gpus = sum(node.cpus for node in nodes), sum(node.gpus for node in nodes)
        if self.num_workers:
            return min(cpus // self.cpus, self._slots_on_gpus(gpus, cpus))
        return sum(min(node.cpus // self.own, self._slots_on_gpus(node.gpus, cpus)) for node in nodes)

    def _slots_on_gpus(self, gpus: int, most: int) -> int:
        """Trials that need a fraction of a GPU share one, and none spans two."""
        if not self.gpus:
            return most
        return gpus * math.floor(1 / self.gpus + 1e-9) if self.gpus < 1 else int(gpus // self.gpus)


def shared(config: RunConfig, nodes: Sequence[Node], num_trials: int) -> Demand:
    """The demand of each of these trials; without `launch.threads`, those that fit at once share the CPUs.

    Raises:
        RunError: Not one fits.
    """
    needs = demand(config, 1)
    at_once = min(needs.slots(nodes), num_trials)
    if config.launch.threads is None:
        for threads in range(max(node.cpus for node in nodes), 1, -1):
            wider = demand(config, threads)
            if wider.cpus <= sum(node.cpus for node in nodes) and wider.slots(nodes) >= at_once:
                return wider
    return needs


def demand(config: RunConfig, threads: int) -> Demand:
    """The demand of a trial of this configuration, with so many threads where it names no number."""
    launch = config.with_threads(threads).launch
    assert launch.threads is not None
    if not uses_ray_train(config):
        return Demand(launch.threads, launch.gpus)
    return Demand(1, 0, launch.workers, launch.threads, launch.gpus)
