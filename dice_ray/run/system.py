"""System metrics of a run, under the names by which MLflow's pages find them; `tracking.system` asks for them.

MLflow's own monitor writes to the store by itself, and a trial's process does not know its run there. Here they are
measured in the process that trains and leave it with the evaluations, as every other metric does.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from statistics import fmean
from threading import Event, Thread
from typing import Final

import torch

from dice_ray.errors import RefusedError
from dice_ray.training.loop import Evaluation, StepProgress

_SECONDS: Final = 1.0


def check(asked: bool) -> None:
    """Raises a RefusedError where system metrics are asked for and cannot be measured."""
    if asked and find_spec("psutil") is None:
        raise RefusedError("tracking.system must have the package psutil, which is not installed: `pip install psutil`")


def measured(
    events: Generator[Evaluation | StepProgress], device: torch.device
) -> Generator[Evaluation | StepProgress]:
    """The events of a run, each evaluation with the mean of every system metric since the last one."""
    check(asked=True)
    _sample(device)  # the first call of psutil has no time that it could measure
    samples: list[dict[str, float]] = []
    over = Event()

    def sample() -> None:
        while not over.wait(_SECONDS):
            samples.append(_sample(device))

    thread = Thread(target=sample, name="dice_ray.system", daemon=True)
    thread.start()
    try:
        for event in events:
            if isinstance(event, Evaluation) and not event.is_past:
                taken = [*samples] or [_sample(device)]
                samples.clear()
                means = {f"system/{name}": fmean(each[name] for each in taken if name in each) for name in taken[0]}
                yield replace(event, metrics=event.metrics | means)
            else:
                yield event
    finally:
        events.close()
        over.set()
        thread.join()


def _sample(device: torch.device) -> dict[str, float]:
    """What the machine and the run's GPU do now, other processes included."""
    import psutil

    memory = psutil.virtual_memory()
    values = {"cpu_utilization_percentage": psutil.cpu_percent()} | _memory("system", memory.used, memory.total)
    if device.type == "cuda":
        gpu = f"gpu_{device.index or 0}"
        free, total = torch.cuda.mem_get_info(device)
        values |= _memory(gpu, total - free, total)
        with suppress(ImportError, RuntimeError):  # torch needs the package nvidia-ml-py for it
            values[f"{gpu}_utilization_percentage"] = float(torch.cuda.utilization(device))
    return values


def _memory(name: str, used: int, total: int) -> dict[str, float]:
    return {f"{name}_memory_usage_megabytes": used / 1e6, f"{name}_memory_usage_percentage": 100 * used / total}
