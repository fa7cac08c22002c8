"""What a sweep or study would take, from the first steps of its runs where they would run; nothing is left behind."""

from __future__ import annotations

import heapq
import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dice_ray import cluster
from dice_ray.config.schema import RunConfig
from dice_ray.data import sources
from dice_ray.errors import DiceRayError, RunError
from dice_ray.rehearsal import Rehearsal, rehearse
from dice_ray.settings import nested
from dice_ray.tracking.store import store_uri, without_password
from dice_ray.tuning import ablation, search
from dice_ray.tuning.demand import Demand, demand
from dice_ray.tuning.ledger import Ledger
from dice_ray.tuning.plan import StudyPlan, SweepPlan
from dice_ray.tuning.plan_file import as_yaml, grown

START = 8.0
"""Seconds until the first trials train: Ray, and the imports of their actors."""
BETWEEN = 0.5
"""Seconds from the end of a trial to the first step of the next one."""


@dataclass(frozen=True)
class Estimate:
    """What is to run, and what it takes at most: a scheduler stops trials earlier.

    Attributes:
        plan: As it would be stored, and as resuming reads it.
        folder: Where the results would lie.
        store: Where MLflow would keep them.
        num_runs: Trials or cells that are to run.
        num_ended: Those that ended before.
        needs: Of one of them.
        num_at_once: How many fit on the machines.
        rehearsal: Of the one that takes longest.
        seconds: From the start to the end.
        memory: Of all that run at once, in bytes.
        free_memory: Of the machines.
        disk: What will be written, in bytes.
        free_disk: Where it would be written.
        notes: What a user should know.
        stops_early: Whether a scheduler does.
    """

    plan: str
    folder: Path
    store: str
    num_runs: int
    num_ended: int
    needs: Demand
    num_at_once: int
    rehearsal: Rehearsal
    seconds: float
    memory: int
    free_memory: int
    disk: int
    free_disk: int
    notes: tuple[str, ...]
    stops_early: bool


def estimate(
    plan: SweepPlan | StudyPlan, folder: Path, *, address: str | None = None, num_cpus: int | None = None
) -> Estimate:
    """Rehearse what a plan would run beyond what its folder holds.

    Raises:
        DiceRayError: It would be refused, fits nowhere, or fails in its first steps.
    """
    base = plan.base()
    bases = {variant: plan.base(variant) for variant in plan.digests}
    plan = plan.on(
        {variant: sources.load(one.data, one.task.positive_label()).digest for variant, one in bases.items()}
    )
    stored, ledger = grown(plan, folder), Ledger(folder / "ledger.jsonl")
    if isinstance(plan, SweepPlan):
        notes = search.check(plan, folder)
        configs = [base] * search.num_missing(plan, ledger)
    else:
        notes = []
        configs = [plan.config(cell) for cell in ablation.missing(plan.cells(), ledger)]
    if not configs:
        raise RunError(f"{plan.name} must have something left to run, and all of it has ended")
    needs = demand(base)
    with (
        tempfile.TemporaryDirectory(prefix="dice_ray-") as scratch,
        cluster.started(address, num_cpus=num_cpus, log=Path(scratch) / "log.txt") as ray,
    ):
        num_at_once = min(needs.slots(ray.nodes), len(configs))
        rehearsed = _rehearsed(configs, needs)
    runs = [rehearsed[_as_timed(config)] for config in configs]
    seconds = [_seconds(run, is_scored=isinstance(plan, StudyPlan)) + BETWEEN for run in runs]
    heaviest = max(runs, key=lambda run: run.peak_memory)
    found = Estimate(
        plan=as_yaml(stored),
        folder=folder,
        store=without_password(store_uri()),
        num_runs=len(configs),
        num_ended=len(ledger.ended),
        needs=needs,
        num_at_once=num_at_once,
        rehearsal=max(runs, key=lambda run: run.seconds),
        seconds=START + _last_end(seconds, num_at_once),
        memory=num_at_once * max(1, needs.num_workers) * heaviest.peak_memory,
        free_memory=sum(node.memory for node in ray.nodes),
        # Of those that run the best weights twice, and twice the last ones, with two moments of each.
        disk=(_num_kept(plan, len(configs)) + num_at_once * 8) * max(run.weights for run in runs),
        free_disk=shutil.disk_usage(next(above for above in folder.resolve().parents if above.exists())).free,
        notes=tuple(notes),
        stops_early=isinstance(plan, SweepPlan) and plan.scheduler != "none",
    )
    _check(found)
    return found


def _check(found: Estimate) -> None:
    one = found.rehearsal
    if found.memory > found.free_memory:
        raise RunError(
            f"{found.num_at_once} trials at once must find {_gib(found.memory)} of memory ({_gib(one.peak_memory)} a "
            f"process), got {_gib(found.free_memory)}: a larger launch.threads lets fewer run at once, a smaller "
            "training.tokens makes each smaller"
        )
    if found.disk > found.free_disk:
        raise RunError(
            f"{found.folder} must find {_gib(found.disk)} on its disk (checkpoints, "
            f"{_gib(one.weights)} for the weights), got {_gib(found.free_disk)}"
        )


def _rehearsed(configs: Sequence[RunConfig], needs: Demand) -> dict[str, Rehearsal]:
    """The rehearsal of each configuration that may take another time, in a process as that of its trial."""
    import ray

    threads, gpus = (needs.worker, needs.worker_gpus) if needs.num_workers else (needs.own, needs.own_gpus)
    task = ray.remote(num_cpus=threads, num_gpus=gpus, max_calls=1, max_retries=0)(rehearse)
    try:
        different = {_as_timed(config): config for config in configs}
        return {key: ray.get(task.remote(config)) for key, config in different.items()}
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, DiceRayError):
            raise cause from None
        raise RunError(f"the first steps of a trial must run, and raised {type(cause).__name__}: {cause}") from error
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError) as error:
        raise RunError(f"the first steps of a trial must run, and their process died: {error}") from error


def _as_timed(config: RunConfig) -> str:
    """What a run's time depends on: all but its loss and its seeds, nearly."""
    sections = {name: nested(config)[name] for name in ("task", "data", "model", "training")}
    del sections["training"]["seed"], sections["data"]["split_seed"], sections["model"]["head_bias"]
    return json.dumps(sections, sort_keys=True)


def _seconds(run: Rehearsal, *, is_scored: bool) -> float:
    """Of a whole run; a cell of a study is scored on test too."""
    on_test = run.seconds_an_evaluation * run.records.get("test", 0) / run.records["dev"] if is_scored else 0.0
    return run.seconds + on_test


def _num_kept(plan: SweepPlan | StudyPlan, num_runs: int) -> int:
    """How many runs keep their best weights at once; of a sweep those that may run again."""
    if isinstance(plan, StudyPlan) or plan.objectives:
        return num_runs
    return 1 + min(plan.top, plan.trials)


def _last_end(seconds: Sequence[float], num_at_once: int) -> float:
    """When the last of these runs ends, if each begins as soon as one before it has ended."""
    ends = [0.0] * num_at_once
    for each in seconds:
        heapq.heapreplace(ends, ends[0] + each)
    return max(ends)


def _gib(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"
