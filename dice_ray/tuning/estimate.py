"""The first steps of the trials of a plan: what they take of a GPU, and the time, memory and disk of the whole.

They run in processes with the resources of trials, so that what is measured is what trials take.
"""

from __future__ import annotations

import heapq
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dice_ray.config.schema import RunConfig
from dice_ray.errors import DiceRayError, RefusedError, RunError, gib
from dice_ray.files import without_password
from dice_ray.run import cluster, doctor
from dice_ray.run.cluster import Node
from dice_ray.run.driver import Driver
from dice_ray.run.folder import LOG
from dice_ray.run.rehearsal import Rehearsal, rehearse
from dice_ray.settings import nested
from dice_ray.tracking.store import store_uri
from dice_ray.tuning.earlier import check
from dice_ray.tuning.ledger import ledger_in
from dice_ray.tuning.plan import Plan
from dice_ray.tuning.plan_file import as_yaml, extended
from dice_ray.tuning.resources import Demand, demand, disk_needed, share_of, shared, unmeasured


@dataclass(frozen=True)
class Estimate:
    """What is to run, and what it takes without early stopping.

    Attributes:
        plan: As it would be stored.
        folder: The folder of the results.
        store: MLflow's.
        needs: The demand of one trial.
        rehearsal: The slowest configuration.
        fastest: The fastest one. A study knows its cells; of trials and cells from a space some are rehearsed.
        seconds_to_start: Until the first step: Ray and its processes start, and the data are read.
        least_seconds: From start to end if each trial or cell from a space is as fast as the fastest one.
        seconds: From start to end if each of them is as slow as the slowest one.
        memory: What all that run at once need, in bytes, as are the following.
        disk: For what will be written.
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


def estimate(plan: Plan, folder: Path, driver: Driver) -> Estimate:
    """Rehearse the runs of a plan that its folder lacks.

    Raises:
        DiceRayError: The plan would be refused, fits nowhere, or fails in its first steps.
    """
    began = time.time()
    base = plan.base()
    bases = {variant: plan.base(variant) for variant in plan.digests}
    plan = plan.bound_to({variant: each.splits().digest for variant, each in bases.items()})
    plan, ledger = extended(plan, folder), ledger_in(folder)
    notes = [*check(plan, folder, driver.address), *driver.notes]
    num_runs, num_ended = plan.remaining(ledger, driver.address)
    if not num_runs:
        raise RefusedError(f"{plan.name} has ended, and nothing is left to estimate: give more trials or seeds")
    above = next(above for above in folder.resolve().parents if above.exists())
    with (
        tempfile.TemporaryDirectory(prefix="dice_ray-") as scratch,
        cluster.started(driver.address, num_cpus=driver.num_cpus, log=Path(scratch) / LOG) as ray,
    ):
        doctor.check(ray, lambda: doctor.Needs(above, tuple(bases.values())))
        configs = plan.samples(ledger)
        rehearsed, failures = _rehearse_all(configs, shared(base, ray.nodes, num_runs))
    is_search = plan.split == "dev"
    if failures and not (is_search and rehearsed):
        raise failures[0]
    notes += [f"Left out: a trial that the space suggests fails in its first steps: {error}" for error in failures]
    runs = [rehearsed[key][1] for key in map(_timing_key, configs) if key in rehearsed]
    needs = shared(base, ray.nodes, num_runs, share_of(runs))
    num_at_once = min(needs.slots(ray.nodes), num_runs)
    notes += [unused] if (unused := cluster.unused_gpus(base.launch, ray.nodes)) else []
    notes += dict.fromkeys(run.few_items for run in runs if run.few_items)
    to_start = min(started + run.seconds_to_start for started, run in rehearsed.values()) - began
    # Half a second from the end of a trial to the first step of the next one.
    seconds = [_seconds(run, is_scored=not is_search) + 0.5 for run in runs]
    is_range = is_search or len(seconds) < num_runs  # a study without drawn settings knows all of its cells
    least, most = ([min(seconds)] * num_runs, [max(seconds)] * num_runs) if is_range else (seconds, seconds)
    end = 3.0  # seconds from the last evaluation to the end of the command: results are stored, Ray stops
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
        least_seconds=to_start + _last_end(least, num_at_once) + end,
        seconds=to_start + _last_end(most, num_at_once) + end,
        memory=num_at_once * max(1, needs.workers) * heaviest.peak_memory,
        free_memory=sum(node.memory for node in ray.nodes),
        disk=disk_needed(plan.num_kept(num_runs), num_at_once, max(run.weights for run in runs)),
        free_disk=shutil.disk_usage(above).free,
        notes=tuple(notes),
        stops_early=plan.stops_early,
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
    test_per_dev = run.records.get("test", 0) / run.records["dev"] if is_scored else 0.0
    return run.seconds + run.seconds_an_evaluation * test_per_dev


def _last_end(seconds: Sequence[float], num_at_once: int) -> float:
    """When the last of these runs ends, if each starts as soon as a slot is free."""
    ends = [0.0] * num_at_once
    for each in seconds:
        heapq.heapreplace(ends, ends[0] + each)
    return max(ends)


def measured_share(plan: Plan, folder: Path, nodes: Sequence[Node], show: Callable[[str], None]) -> float:
    """What `launch.gpus: auto` stands for in a plan: runs first steps on a GPU, if there is one.

    Raises:
        RunError: The machines have several kinds of GPU, so that one does not stand for all.
        DiceRayError: No trial can do its first steps.
    """
    base = plan.base()
    if base.launch.gpus != "auto":
        if unused := cluster.unused_gpus(base.launch, nodes):
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
    rehearsed, failures = _rehearse_all(plan.samples(ledger_in(folder)), shared(base, nodes, 1))
    if not rehearsed:
        raise failures[0]
    runs = [run for _, run in rehearsed.values()]
    largest, share = max(runs, key=lambda run: run.peak_gpu_memory), share_of(runs)
    taken = f"{largest.peak_gpu_memory / 2**30:.2f} of {largest.gpu_memory / 2**30:.2f} GiB"
    show(f"launch.gpus=auto: each trial asks for {share:g} of a GPU, as its first steps took {taken}")
    return share


def _first_steps(config: RunConfig, gpus: float, surroundings: Mapping[str, str]) -> tuple[float, Rehearsal]:
    """When this process was ready, in seconds since the epoch, and the rehearsal of a configuration."""
    cluster.enter(surroundings)
    cluster.hide_unasked_gpus(gpus)
    return time.time(), rehearse(config)


def _rehearse_all(
    configs: Sequence[RunConfig], needs: Demand
) -> tuple[dict[str, tuple[float, Rehearsal]], list[DiceRayError]]:
    """Rehearse each configuration that may take a different time, in processes with the resources of a trial; returns
    `_first_steps` by the key of the configuration, and the errors of those that fail.
    """
    import ray

    placed = {"num_cpus": needs.threads, "num_gpus": needs.gpus, "resources": needs.constraint}
    task = ray.remote(max_calls=1, max_retries=0)(_first_steps).options(**placed)
    different = {_timing_key(config): config.with_threads(needs.threads) for config in configs}
    surroundings = cluster.surroundings()
    # At once, as far as they fit: trials that run beside each other slow each other down.
    running = {key: task.remote(config, needs.gpus, surroundings) for key, config in different.items()}
    rehearsed, failures = {}, list[DiceRayError]()
    for key, run in running.items():  # of all of them: those that were left running would outlive an error
        try:
            rehearsed[key] = ray.get(run)
        except ray.exceptions.RayError as error:
            failures.append(_explained(error))
    return rehearsed, failures


def _explained(error: Exception) -> DiceRayError:
    """The error of a trial's first steps, or what happened to their process."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, DiceRayError):
        return cause
    what = f"their process died: {error}" if cause is None else f"raised {type(cause).__name__}: {cause}"
    return RunError(f"the first steps of a trial must run, and {what}")


def _timing_key(config: RunConfig) -> str:
    """The settings that a run's time depends on: of loss and mining only whether the encoder runs once a step."""
    written = nested(config)
    sections = {name: written[name] for name in ("task", "data", "model", "training")}
    del sections["training"]["seed"], sections["data"]["split_seed"]
    del sections["model"]["head_bias"], sections["model"]["dropout"]
    has_one_pass = config.loss.is_item_mean and not config.mining.ratio
    return json.dumps([sections, has_one_pass], sort_keys=True)
