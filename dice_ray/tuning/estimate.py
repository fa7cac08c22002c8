"""Estimates time, memory and disk of a sweep or study, from the first steps of its runs in the processes of its
trials.
"""

from __future__ import annotations

import heapq
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dice_ray.errors import RunError, gib
from dice_ray.remote import without_password
from dice_ray.run import cluster, doctor
from dice_ray.run.driver import Driver
from dice_ray.run.folder import LOG
from dice_ray.run.rehearsal import Rehearsal
from dice_ray.tracking.store import store_uri
from dice_ray.tuning import first_steps, packing, ranking, sweep
from dice_ray.tuning.ledger import ledger_in, missing_cells
from dice_ray.tuning.plan import SweepPlan
from dice_ray.tuning.plan_file import as_yaml, extended
from dice_ray.tuning.resources import Demand, shared
from dice_ray.tuning.study import StudyPlan

END = 3.0
"""Seconds from the last evaluation to the end of the command: results are stored, Ray stops."""
BETWEEN = 0.5
"""Seconds from the end of a trial to the first step of the next one."""


@dataclass(frozen=True)
class Estimate:
    """What is to run, and what it takes without early stopping.

    Attributes:
        plan: As it would be stored.
        folder: Of the results.
        store: MLflow's.
        num_runs: Number of trials or cells to run.
        num_ended: Number of those that have ended before.
        needs: Of one trial.
        num_at_once: How many fit on the machines.
        rehearsal: Of the slowest configuration.
        fastest: Of the fastest one. A study knows its cells; of a space, `first_steps.NUM_SAMPLES` trials are drawn.
        seconds_to_start: Until the first step: Ray and its processes start, and the data are read.
        least_seconds: From start to end if each trial of a sweep is as fast as the fastest one.
        seconds: From start to end if each trial of a sweep is as slow as the slowest one.
        memory: Of all that run at once, in bytes.
        free_memory: Of the machines.
        disk: Bytes that will be written.
        free_disk: Bytes on the disk of the folder.
        notes: For the user.
        stops_early: Whether trials may be stopped early.
    """

    plan: str
    folder: Path
    store: str
    num_runs: int
    num_ended: int
    needs: Demand
    num_at_once: int
    rehearsal: Rehearsal
    fastest: Rehearsal
    seconds_to_start: float
    least_seconds: float
    seconds: float
    memory: int
    free_memory: int
    disk: int
    free_disk: int
    notes: tuple[str, ...]
    stops_early: bool


def estimate(plan: SweepPlan | StudyPlan, folder: Path, driver: Driver) -> Estimate:
    """Rehearse the runs of a plan that its folder lacks.

    Raises:
        DiceRayError: The plan would be refused, fits nowhere, or fails in its first steps.
    """
    began = time.time()
    base = plan.base()
    bases = {variant: plan.base(variant) for variant in plan.digests}
    plan = plan.bound_to({variant: each.splits().digest for variant, each in bases.items()})
    plan, ledger = extended(plan, folder), ledger_in(folder)
    if isinstance(plan, SweepPlan):
        notes = sweep.check(plan, folder)
        num_runs, num_ended = sweep.num_missing(plan, folder, driver.address), len(ledger.outcomes)
    else:
        notes = []
        cells = plan.grid().cells
        num_runs = len(missing_cells(cells, ledger))
        num_ended = len(cells) - num_runs
    if not num_runs:
        raise RunError(f"{plan.name} must have something left to run, and all of it has ended")
    above = next(above for above in folder.resolve().parents if above.exists())
    with (
        tempfile.TemporaryDirectory(prefix="dice_ray-") as scratch,
        cluster.started(driver.address, num_cpus=driver.num_cpus, log=Path(scratch) / LOG) as ray,
    ):
        doctor.check(ray, lambda: doctor.Needs(above, tuple(bases.values())))
        configs = first_steps.configurations(plan, folder)
        rehearsed, failures = first_steps.rehearse_all(configs, shared(base, ray.nodes, num_runs))
    if failures and (isinstance(plan, StudyPlan) or not rehearsed):
        raise failures[0]
    notes += [f"Left out: a trial that the space suggests fails in its first steps: {error}" for error in failures]
    runs = [rehearsed[key].run for key in map(first_steps.timing_key, configs) if key in rehearsed]
    needs = shared(base, ray.nodes, num_runs, packing.share_of(runs))
    num_at_once = min(needs.slots(ray.nodes), num_runs)
    notes += [unused] if (unused := cluster.unused_gpus(base.launch, ray.nodes)) else []
    notes += dict.fromkeys(run.few_items for run in runs if run.few_items)
    to_start = min(each.started + each.run.seconds_to_start for each in rehearsed.values()) - began
    seconds = [_seconds(run, is_scored=isinstance(plan, StudyPlan)) + BETWEEN for run in runs]
    least, most = seconds, seconds
    if isinstance(plan, SweepPlan):
        least, most = [min(seconds)] * num_runs, [max(seconds)] * num_runs
    heaviest = max(runs, key=lambda run: run.peak_memory)
    result = Estimate(
        plan=as_yaml(plan),
        folder=folder,
        store=without_password(store_uri()),
        num_runs=num_runs,
        num_ended=num_ended,
        needs=needs,
        num_at_once=num_at_once,
        rehearsal=max(runs, key=lambda run: run.seconds),
        fastest=min(runs, key=lambda run: run.seconds),
        seconds_to_start=to_start,
        least_seconds=to_start + _last_end(least, num_at_once) + END,
        seconds=to_start + _last_end(most, num_at_once) + END,
        memory=num_at_once * max(1, needs.workers) * heaviest.peak_memory,
        free_memory=sum(node.memory for node in ray.nodes),
        disk=ranking.disk_needed(plan, num_runs, num_at_once, max(run.weights for run in runs)),
        free_disk=shutil.disk_usage(above).free,
        notes=tuple(notes),
        stops_early=isinstance(plan, SweepPlan) and plan.scheduler != "none",
    )
    _check(result)
    return result


def _check(result: Estimate) -> None:
    run = result.rehearsal
    if result.memory > result.free_memory:
        raise RunError(
            f"{result.num_at_once} trials at once need {gib(result.memory)} of memory ({gib(run.peak_memory)} a "
            f"process), but {gib(result.free_memory)} are free: with a larger launch.threads fewer run at once, with "
            "a smaller training.tokens each needs less"
        )
    if result.disk > result.free_disk:
        raise RunError(
            f"{result.folder} needs {gib(result.disk)} on its disk for checkpoints ({gib(run.weights)} for the "
            f"weights of one), but {gib(result.free_disk)} are free"
        )


def _seconds(run: Rehearsal, *, is_scored: bool) -> float:
    """The time of a whole run; a cell of a study is scored on test too."""
    on_test = run.seconds_an_evaluation * run.records.get("test", 0) / run.records["dev"] if is_scored else 0.0
    return run.seconds + on_test


def _last_end(seconds: Sequence[float], num_at_once: int) -> float:
    """When the last of these runs ends, if each starts as soon as a slot is free."""
    ends = [0.0] * num_at_once
    for each in seconds:
        heapq.heapreplace(ends, ends[0] + each)
    return max(ends)
