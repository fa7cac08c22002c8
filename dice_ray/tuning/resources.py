"""The CPUs, GPUs and disk that trials need, and how many fit on the machines of a cluster at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from dice_ray.config.schema import RunConfig
from dice_ray.errors import RunError, counted
from dice_ray.run.cluster import ACCELERATOR, Node, check_accelerator
from dice_ray.run.rehearsal import Rehearsal


@dataclass(frozen=True)
class Demand:
    """The CPUs and GPUs of one trial.

    Attributes:
        threads: CPUs of each process that trains.
        gpus: GPUs of each of them.
        workers: Ray Train workers; without them, the trial trains in its own process. With them, its own process only
            waits, and holds no CPU: Ray Train counts all CPUs of a machine as free for workers (Ray 2.60).
        min_workers: The fewest of them that it continues with.
        accelerator: The kind of GPU that a machine must have for it; any machine will do if empty.
    """

    threads: int
    gpus: float = 0
    workers: int = 0
    min_workers: int = 0
    accelerator: str = ""

    @property
    def constraint(self) -> dict[str, float]:
        """The resource of machines with the right GPU, of which a training process takes next to nothing."""
        return {f"{ACCELERATOR}{self.accelerator}": 0.001} if self.accelerator else {}

    @property
    def own(self) -> dict[str, float]:
        """What Ray Tune reserves for the trial's own process; a byte, since it must be something (Ray 2.60)."""
        return {"memory": 1} if self.workers else {"cpu": self.threads, "gpu": self.gpus, **self.constraint}

    def suitable(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """The machines that have its kind of GPU."""
        return [node for node in nodes if not self.accelerator or self.accelerator in node.accelerators]

    def slots(self, nodes: Sequence[Node]) -> int:
        """How many trials fit on these machines at once; a RunError where not one fits.

        Tune would start more: a trial on Ray Train holds nothing while it waits for the CPUs of its workers.
        """
        check_accelerator(nodes, self.accelerator)
        nodes = self.suitable(nodes)
        cpus, gpus = sum(node.cpus for node in nodes), sum(node.gpus for node in nodes)
        least = max(self.min_workers, 1)
        name = "launch.min_workers" if least < self.workers else "launch.workers"
        if gpus < least * self.gpus:
            raise RunError(
                f"each trial needs {counted(least * self.gpus, 'GPU')} ({name} x launch.gpus), got {gpus} in all"
            )
        if cpus < least * self.threads:
            what = f"{name} x launch.threads" if self.workers else "launch.threads"
            raise RunError(f"each trial needs {counted(least * self.threads, 'CPU')} ({what}), got {cpus} in all")
        if (fitting := self._processes(nodes)) < least:
            room = "; ".join(f"{counted(node.cpus, 'CPU')} and {counted(node.gpus, 'GPU')}" for node in nodes)
            raise RunError(
                f"each process needs {counted(self.threads, 'CPU')} (launch.threads) and {counted(self.gpus, 'GPU')} "
                f"(launch.gpus) on one machine; a trial needs {least} of them, and there is room for {fitting}: {room}"
            )
        return max(1, self.fitting(nodes))  # at least one trial, if need be with fewer workers than it may have

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
        suited = self.suitable(nodes)
        return sum(min(node.cpus // self.threads, self._on_gpus(node.gpus, node.cpus)) for node in suited)

    def _on_gpus(self, gpus: int, most: int) -> int:
        """Processes that need a fraction of a GPU share one, and none spans two."""
        if not self.gpus:
            return most
        return gpus * math.floor(1 / self.gpus + 1e-9) if self.gpus < 1 else int(gpus // self.gpus)


def shared(config: RunConfig, nodes: Sequence[Node], num_trials: int, auto_gpus: float | None = None) -> Demand:
    """The demand of each of these trials; without `launch.threads`, those that fit at once share the CPUs.

    `auto_gpus` is what `launch.gpus: auto` stands for; a whole GPU, if there is one, until it has been measured. A
    RunError where not one trial fits.
    """
    if auto_gpus is None:
        auto_gpus = unmeasured(config, nodes)
    needs = demand(config, 1, auto_gpus)
    at_once = min(needs.slots(nodes), num_trials)
    if config.launch.threads is None:
        for threads in range(max(node.cpus for node in nodes), 1, -1):
            wider = demand(config, threads, auto_gpus)
            if wider.fitting(nodes) >= at_once:
                return wider
    return needs


def unmeasured(config: RunConfig, nodes: Sequence[Node]) -> int:
    """What `launch.gpus: auto` stands for until it is measured: a whole GPU, if there is one."""
    return int(any(node.gpus for node in demand(config, 1).suitable(nodes)))


def demand(config: RunConfig, threads: int, auto_gpus: float = 0) -> Demand:
    """The demand of a trial of this configuration, with these numbers of threads and GPUs unless it sets its own."""
    launch = config.with_threads(threads).launch
    assert launch.threads is not None
    gpus, kind = launch.num_gpus(auto_gpus), launch.accelerator_type or ""
    if not launch.uses_ray_train:
        return Demand(launch.threads, gpus, accelerator=kind)
    return Demand(launch.threads, gpus, launch.workers, launch.least_workers, kind)


_MARGIN: Final = 1.2
"""A later step may need more than the first ones: its rows are longer, and free memory is in pieces."""
_CONTEXT: Final = 2**29
"""Bytes that CUDA takes in each process, which torch does not count."""
_UNITS: Final = 10_000
"""Ray counts GPUs in ten thousandths."""


def _share_of_gpu(peak: int, memory: int) -> float:
    """The part of a GPU that a trial asks for, so that no more trials share it than its memory holds; 0 without a GPU.

    `peak` is what torch takes of it in the first steps. The trial had a GPU of its own then: it asks for one at most.
    """
    if not peak:
        return 0
    fitting = max(1, int(memory // (_MARGIN * peak + _CONTEXT)))
    # The second number is the smallest share with which one trial more than `fitting` exceeds the GPU. Where more than
    # 100 trials fit, rounding may leave room for one fewer.
    return max(_UNITS // fitting, _UNITS // (fitting + 1) + 1) / _UNITS


def share_of(runs: Iterable[Rehearsal]) -> float:
    """The part of a GPU that fits the largest of these runs."""
    return max((_share_of_gpu(run.peak_gpu_memory, run.gpu_memory) for run in runs), default=0)


def disk_needed(num_kept: int, num_at_once: int, weights: int) -> int:
    """Bytes of the checkpoints of the runs that keep theirs, and of those that run at once, by a model's weights."""
    # Each running trial writes its best weights twice, and twice the last ones with AdamW's two moments.
    return (num_kept + num_at_once * 8) * weights
