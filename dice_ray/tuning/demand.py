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
    """The CPUs and GPUs of one trial.

    Attributes:
        threads: CPUs of each process that trains.
        gpus: GPUs of each of them.
        workers: Ray Train workers; without them, the trial trains in its own process. With them, its own process only
            waits, and holds no CPU: Ray Train counts all CPUs of a machine as free for workers (Ray 2.60).
        min_workers: With how few of them it goes on.
    """

    threads: int
    gpus: float = 0
    workers: int = 0
    min_workers: int = 0

    @property
    def own(self) -> dict[str, float]:
        """What Ray Tune reserves for the trial's own process; a byte, since it must be something (Ray 2.60)."""
        return {"memory": 1} if self.workers else {"cpu": self.threads, "gpu": self.gpus}

    @property
    def all_cpus(self) -> int:
        return self.threads * max(self.workers, 1)

    @property
    def all_gpus(self) -> float:
        return self.gpus * max(self.workers, 1)

    def slots(self, nodes: Sequence[Node]) -> int:
        """How many trials fit on these machines at once.

        Tune would start more: a trial on Ray Train holds nothing while it waits for the CPUs of its workers.

        Raises:
            RunError: Not one fits.
        """
        cpus, gpus = sum(node.cpus for node in nodes), sum(node.gpus for node in nodes)
        least = max(self.min_workers, 1)
        name = "launch.workers" if least == self.workers else "launch.min_workers"
        if gpus < least * self.gpus:
            raise RunError(
                f"each trial needs {counted(least * self.gpus, 'GPU')} ({name} x launch.gpus), got {gpus} in all"
            )
        if cpus < least * self.threads:
            what = f"{name} x launch.threads" if self.workers else "launch.threads"
            raise RunError(f"each trial needs {counted(least * self.threads, 'CPU')} ({what}), got {cpus} in all")
        if (fitting := self._processes(nodes)) < least:
            found = ", ".join(f"{node.cpus} and {node.gpus}" for node in nodes)
            raise RunError(
                f"one machine must have the {counted(self.threads, 'CPU')} (launch.threads) and "
                f"{counted(self.gpus, 'GPU')} (launch.gpus) of a process, and {least} must fit: {fitting} do on {found}"
            )
        return max(1, self.fitting(nodes))  # one with fewer workers than it wants

    def most_at_once(self, nodes: Sequence[Node], *, is_fixed: bool) -> int:
        """How many trials to keep running or waiting: as many as fit on these machines, and some that wait for more.

        Ray's autoscaler starts machines for trials that wait. A sampler suggests those before it knows the results of
        the trials that run, so they are few: a quarter, by which the cluster grows at a time. A trial on Ray Train must
        not wait: Tune would start it, and it would take workers away from those that run (see `slots`).
        """
        fitting = self.fitting(nodes)
        waiting = 0 if is_fixed or self.workers else math.ceil(fitting / 4)
        return max(1, fitting + waiting)  # one also where all machines are lost: it waits for the next

    def fitting(self, nodes: Sequence[Node]) -> int:
        """How many trials fit, each with all its workers."""
        return self._processes(nodes) // max(self.workers, 1)

    def _processes(self, nodes: Sequence[Node]) -> int:
        """How many processes that train fit: none spans two machines."""
        return sum(min(node.cpus // self.threads, self._on_gpus(node.gpus, node.cpus)) for node in nodes)

    def _on_gpus(self, gpus: int, most: int) -> int:
        """Processes that need a fraction of a GPU share one, and none spans two."""
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
            if wider.fitting(nodes) >= at_once:
                return wider
    return needs


def demand(config: RunConfig, threads: int) -> Demand:
    """The demand of a trial of this configuration, with so many threads where it names no number."""
    launch = config.with_threads(threads).launch
    assert launch.threads is not None
    if not uses_ray_train(config):
        return Demand(launch.threads, launch.gpus)
    return Demand(launch.threads, launch.gpus, launch.workers, launch.least_workers)
