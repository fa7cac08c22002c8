"""`launch.gpus: auto`: as many trials share a GPU as its memory holds, by what their first steps take of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from dice_ray.errors import RunError
from dice_ray.run.cluster import Node, unused_gpus
from dice_ray.run.rehearsal import Rehearsal
from dice_ray.tuning.first_steps import configurations, rehearse_all
from dice_ray.tuning.plan import SweepPlan
from dice_ray.tuning.resources import demand, shared, unmeasured
from dice_ray.tuning.study import StudyPlan

MARGIN: Final = 1.2
"""A later step may need more than the first ones: its rows are longer, and free memory is in pieces."""
CONTEXT: Final = 2**29
"""Bytes that CUDA takes in each process, which torch does not count."""
UNITS: Final = 10_000
"""Ray counts GPUs in ten thousandths."""


def share_of_gpu(peak: int, memory: int) -> float:
    """The part of a GPU that a trial asks for, so that no more trials share it than its memory holds.

    Args:
        peak: Bytes that torch takes of the GPU in the first steps of a trial.
        memory: Bytes of the GPU.

    Returns:
        0 for a trial that uses no GPU. A trial has run on a GPU of its own, so it asks for one at most.
    """
    if not peak:
        return 0
    fitting = max(1, int(memory // (MARGIN * peak + CONTEXT)))
    # The second number is the smallest share with which one trial more than `fitting` exceeds the GPU. Where more than
    # 100 trials fit, rounding may leave room for one fewer.
    return max(UNITS // fitting, UNITS // (fitting + 1) + 1) / UNITS


def share_of(runs: Iterable[Rehearsal]) -> float:
    """The part of a GPU that fits the largest of these runs."""
    return max((share_of_gpu(run.peak_gpu_memory, run.gpu_memory) for run in runs), default=0)


def measured(plan: SweepPlan | StudyPlan, folder: Path, nodes: Sequence[Node], show: Callable[[str], None]) -> float:
    """What `launch.gpus: auto` stands for in a plan: runs first steps on a GPU, if there is one.

    Raises:
        RunError: The machines have several kinds of GPU, so that one does not stand for all.
        DiceRayError: No trial can do its first steps.
    """
    base = plan.base()
    if base.launch.gpus != "auto":
        if unused := unused_gpus(base.launch, nodes):
            show(unused)
        return 0
    if not unmeasured(base, nodes):
        show("launch.gpus=auto: no machine has a GPU, so trials run on CPUs")
        return 0
    one = demand(base, 1)
    kinds = sorted({kind for node in one.suitable(nodes) for kind in node.accelerators})
    if len(kinds) > 1 and not one.accelerator:
        raise RunError(
            f"with launch.gpus=auto all GPUs must be of one kind, got {' and '.join(kinds)}: choose one by "
            f"launch.accelerator_type={kinds[0]}"
        )
    rehearsed, failures = rehearse_all(configurations(plan, folder), shared(base, nodes, 1))
    if not rehearsed:
        raise failures[0]
    runs = [each.run for each in rehearsed.values()]
    largest, share = max(runs, key=lambda run: run.peak_gpu_memory), share_of(runs)
    taken = f"{largest.peak_gpu_memory / 2**30:.2f} of {largest.gpu_memory / 2**30:.2f} GiB"
    show(f"launch.gpus=auto: each trial asks for {share:g} of a GPU, as its first steps took {taken}")
    return share
