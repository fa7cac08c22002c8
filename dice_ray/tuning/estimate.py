"""Estimates time, memory and disk of a sweep or study, from the first steps of its runs in the processes of its
trials.
"""

from __future__ import annotations

import heapq
import json
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dice_ray.config.schema import RunConfig
from dice_ray.data import sources
from dice_ray.errors import ConfigError, DiceRayError, RunError
from dice_ray.run import cluster, doctor
from dice_ray.run.driver import Driver
from dice_ray.run.folder import LOG
from dice_ray.run.rehearsal import Rehearsal, rehearse
from dice_ray.settings import nested
from dice_ray.tracking.store import store_uri, without_password
from dice_ray.tuning import ablation, ranking, sweep
from dice_ray.tuning.demand import Demand, shared
from dice_ray.tuning.ledger import TrialSpec, ledger_in
from dice_ray.tuning.plan import SweepPlan
from dice_ray.tuning.plan_file import as_yaml, extended
from dice_ray.tuning.study_plan import StudyPlan

NUM_SAMPLES = 16
"""Trials that are drawn from a space to find the fewest and the most steps."""
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
        fastest: Of the fastest one. A study knows its cells; of a space, `NUM_SAMPLES` trials are drawn.
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
    plan = plan.bound_to(
        {
            variant: sources.load(each.data, each.task.positive_label(), each.data_name).digest
            for variant, each in bases.items()
        }
    )
    stored, ledger = extended(plan, folder), ledger_in(folder)
    if isinstance(plan, SweepPlan):
        notes = sweep.check(plan, folder)
        num_runs = sweep.num_missing(plan, ledger)
    else:
        notes = []
        configs = [plan.config(cell) for cell in ablation.missing_cells(plan.grid().cells, ledger)]
        num_runs = len(configs)
    if not num_runs:
        raise RunError(f"{plan.name} must have something left to run, and all of it has ended")
    above = next(above for above in folder.resolve().parents if above.exists())
    with (
        tempfile.TemporaryDirectory(prefix="dice_ray-") as scratch,
        cluster.started(driver.address, num_cpus=driver.num_cpus, log=Path(scratch) / LOG) as ray,
    ):
        doctor.check(ray, lambda: doctor.Needs(above, tuple(bases.values())))
        needs = shared(base, ray.nodes, num_runs)
        num_at_once = min(needs.slots(ray.nodes), num_runs)
        if isinstance(plan, SweepPlan):
            configs = _extremes(_sampled(plan, folder)) or [base]
        rehearsed, failures = _rehearse(configs, needs)
    if failures and (isinstance(plan, StudyPlan) or not rehearsed):
        raise failures[0]
    notes += [f"Left out: a trial that the space suggests fails in its first steps: {error}" for error in failures]
    runs = [rehearsed[key].run for key in map(_timing_key, configs) if key in rehearsed]
    notes += dict.fromkeys(run.few_items for run in runs if run.few_items)
    to_start = min(each.started + each.run.seconds_to_start for each in rehearsed.values()) - began
    seconds = [_seconds(run, is_scored=isinstance(plan, StudyPlan)) + BETWEEN for run in runs]
    least, most = seconds, seconds
    if isinstance(plan, SweepPlan):
        least, most = [min(seconds)] * num_runs, [max(seconds)] * num_runs
    heaviest = max(runs, key=lambda run: run.peak_memory)
    result = Estimate(
        plan=as_yaml(stored),
        folder=folder,
        store=without_password(store_uri()),
        num_runs=num_runs,
        num_ended=len(ledger.outcomes),
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
            f"{result.num_at_once} trials at once need {_gib(result.memory)} of memory ({_gib(run.peak_memory)} a "
            f"process), but {_gib(result.free_memory)} are free: with a larger launch.threads fewer run at once, with "
            "a smaller training.tokens each needs less"
        )
    if result.disk > result.free_disk:
        raise RunError(
            f"{result.folder} needs {_gib(result.disk)} on its disk for checkpoints ({_gib(run.weights)} for the "
            f"weights of one), but {_gib(result.free_disk)} are free"
        )


def _sampled(plan: SweepPlan, folder: Path) -> list[RunConfig]:
    """Some of the trials that a sweep will run; those whose configuration is refused are left out."""
    from dice_ray.tuning.searchers import SweepSearcher

    history = ledger_in(folder)
    searched = history.searched()
    if num_missing := plan.trials - len(searched.outcomes):
        searcher = SweepSearcher(plan, searched)
        suggested = [searcher.suggest(f"sample {number}") for number in range(min(num_missing, NUM_SAMPLES))]
        specs = [TrialSpec(**each) for each in suggested if str(each) != SweepSearcher.FINISHED]
    else:
        specs = ranking.reruns(plan, history)
    configs = []
    for spec in specs:
        with suppress(ConfigError):
            configs.append(plan.config(spec))
    return configs


def _extremes(configs: Sequence[RunConfig]) -> list[RunConfig]:
    """For each encoder, the configurations with the fewest and the most steps."""
    by_encoder: dict[str, list[RunConfig]] = {}
    for config in sorted(configs, key=lambda config: config.training.epochs / config.training.batch_size):
        by_encoder.setdefault(config.model.encoder, []).append(config)
    return [config for of_encoder in by_encoder.values() for config in (of_encoder[0], of_encoder[-1])]


@dataclass(frozen=True)
class _Rehearsed:
    """A rehearsal, and when its process was ready, in seconds since the epoch."""

    started: float
    run: Rehearsal


def _rehearsed(config: RunConfig, surroundings: Mapping[str, str]) -> _Rehearsed:
    cluster.enter(surroundings)
    return _Rehearsed(time.time(), rehearse(config))


def _rehearse(configs: Sequence[RunConfig], needs: Demand) -> tuple[dict[str, _Rehearsed], list[DiceRayError]]:
    """Rehearse each configuration that may take a different time, in processes with the resources of a trial.

    Returns:
        The rehearsals by the key of the configuration, and the errors of those that fail.
    """
    import ray

    threads, gpus = needs.threads, needs.gpus
    task = ray.remote(num_cpus=threads, num_gpus=gpus, max_calls=1, max_retries=0)(_rehearsed)
    different = {_timing_key(config): config.with_threads(threads) for config in configs}
    surroundings = cluster.surroundings()
    # At once, as far as they fit: trials that run beside each other slow each other down.
    running = {key: task.remote(config, surroundings) for key, config in different.items()}
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
    """The settings that a run's time depends on: all but loss, seeds, head bias and dropout."""
    sections = {name: nested(config)[name] for name in ("task", "data", "model", "training")}
    del sections["training"]["seed"], sections["data"]["split_seed"], sections["model"]["head_bias"]
    del sections["model"]["dropout"]
    return json.dumps(sections, sort_keys=True)


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


def _gib(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"
