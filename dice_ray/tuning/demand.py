"""What a trial demands of a machine or cluster, and how many fit at once."""

from __future__ import annotations

from dataclasses import dataclass

from dice_ray.config.schema import RunConfig
from dice_ray.errors import RunError


@dataclass(frozen=True)
class Demand:
    """The CPUs and GPUs of one trial: its own, and those of its Ray Train workers."""

    own: int
    workers: int
    own_gpus: int = 0
    workers_gpus: int = 0

    def slots(self, cpus: int, gpus: int) -> int:
        """How many trials fit at once.

        Raises:
            RunError: Not one.
        """
        needed = self.own_gpus + self.workers_gpus
        if gpus < needed:
            raise RunError(f"a trial must find its {needed} GPUs (launch.workers x launch.gpus), got {gpus}")
        if cpus < self.own + self.workers:
            what = "launch.workers x launch.threads, and 1 that waits for them" if self.workers else "launch.threads"
            raise RunError(f"a trial must find its {self.own + self.workers} CPUs ({what}), got {cpus}")
        fit = cpus // (self.own + self.workers)
        return min(fit, gpus // needed) if needed else fit


def demand(config: RunConfig) -> Demand:
    """What a trial of this configuration demands."""
    launch = config.launch
    if launch.workers == 1 and launch.how == "auto":
        return Demand(launch.threads, 0, launch.gpus)
    return Demand(1, launch.workers * launch.threads, workers_gpus=launch.workers * launch.gpus)
