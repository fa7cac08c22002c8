"""What one trial demands of the machines, and how many fit on them at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dice_ray.cluster import Node
from dice_ray.config.schema import RunConfig
from dice_ray.errors import RunError


@dataclass(frozen=True)
class Demand:
    """The CPUs and GPUs of one trial: of its own process, and of each of its Ray Train workers."""

    own: int
    own_gpus: float = 0
    num_workers: int = 0
    worker: int = 0
    worker_gpus: float = 0

    @property
    def cpus(self) -> int:
        return self.own + self.num_workers * self.worker

    @property
    def gpus(self) -> float:
        return self.own_gpus + self.num_workers * self.worker_gpus

    def slots(self, nodes: Sequence[Node]) -> int:
        """How many trials fit at once on these machines.

        Raises:
            RunError: Not one.
        """
        cpus, gpus = sum(node.cpus for node in nodes), sum(node.gpus for node in nodes)
        if gpus < self.gpus:
            raise RunError(f"a trial must find its {self.gpus} GPUs (launch.workers x launch.gpus), got {gpus}")
        if cpus < self.cpus:
            waits = "launch.workers x launch.threads, and 1 that waits for them"
            what = waits if self.num_workers else "launch.threads"
            raise RunError(f"a trial must find its {self.cpus} CPUs ({what}), got {cpus}")
        one = (self.worker, self.worker_gpus) if self.num_workers else (self.own, self.own_gpus)
        if not any(node.cpus >= one[0] and node.gpus >= one[1] for node in nodes):
            raise RunError(
                f"one machine must have the {one[0]} CPUs (launch.threads) and {one[1]} GPUs (launch.gpus) of a "
                f"process, got {', '.join(f'{node.cpus} and {node.gpus}' for node in nodes)}"
            )
        if self.num_workers:
            return min(cpus // self.cpus, self._on_gpus(gpus, cpus))
        return sum(min(node.cpus // self.own, self._on_gpus(node.gpus, cpus)) for node in nodes)

    def _on_gpus(self, gpus: int, most: int) -> int:
        """How many trials fit on so many GPUs: those of a fraction share one, and none lies across two."""
        if not self.gpus:
            return most
        return gpus * math.floor(1 / self.gpus + 1e-9) if self.gpus < 1 else int(gpus // self.gpus)


def demand(config: RunConfig) -> Demand:
    """What a trial of this configuration demands."""
    launch = config.launch
    if launch.workers == 1 and launch.how == "auto":
        return Demand(launch.threads, launch.gpus)
    return Demand(1, 0, launch.workers, launch.threads, launch.gpus)
