"""Runs the first steps of the trials of a plan, in processes with the resources of trials."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dice_ray.config.schema import RunConfig
from dice_ray.errors import ConfigError, DiceRayError, RunError
from dice_ray.run import cluster
from dice_ray.run.rehearsal import Rehearsal, rehearse
from dice_ray.settings import nested
from dice_ray.tuning import ranking
from dice_ray.tuning.ledger import TrialSpec, ledger_in, missing_cells
from dice_ray.tuning.plan import SweepPlan
from dice_ray.tuning.resources import Demand
from dice_ray.tuning.study import StudyPlan

NUM_SAMPLES = 16
"""Trials that are drawn from a space to find the fewest and the most steps."""


def configurations(plan: SweepPlan | StudyPlan, folder: Path) -> list[RunConfig]:
    """Those of the cells that a study lacks; of a sweep, those of the trials with the fewest and the most steps."""
    if isinstance(plan, SweepPlan):
        return _extremes(_sampled(plan, folder)) or [plan.base()]
    return [plan.config(cell) for cell in missing_cells(plan.grid().cells, ledger_in(folder))]


def _sampled(plan: SweepPlan, folder: Path) -> list[RunConfig]:
    """Some of the trials that a sweep will run; those whose configuration is refused are left out."""
    from dice_ray.tuning.search import SweepSearcher

    history = ledger_in(folder)
    searched = history.searched()
    searcher, num_missing = SweepSearcher(plan, searched), plan.trials - len(searched.outcomes)
    suggested = [searcher.suggest(f"sample {number}") for number in range(min(num_missing, NUM_SAMPLES))]
    specs = [TrialSpec(**each) for each in suggested if str(each) != SweepSearcher.FINISHED]
    configs = []
    for spec in specs or ranking.reruns(plan, history):
        with suppress(ConfigError):
            configs.append(plan.config(spec))
    return configs


def _extremes(configs: Sequence[RunConfig]) -> list[RunConfig]:
    """For each encoder and each part of it that is trained, the configurations with the fewest and the most steps."""
    by_encoder: dict[tuple[str, str, str | int], list[RunConfig]] = {}
    for config in sorted(configs, key=lambda config: config.training.epochs / config.training.batch_size):
        trained = config.model.encoder, config.model.adapter.name, config.model.freeze
        by_encoder.setdefault(trained, []).append(config)
    return [config for of_encoder in by_encoder.values() for config in (of_encoder[0], of_encoder[-1])]


@dataclass(frozen=True)
class Rehearsed:
    """A rehearsal, and when its process was ready, in seconds since the epoch."""

    started: float
    run: Rehearsal


def _rehearsed(config: RunConfig, gpus: float, surroundings: Mapping[str, str]) -> Rehearsed:
    cluster.enter(surroundings)
    cluster.hide_unasked_gpus(gpus)
    return Rehearsed(time.time(), rehearse(config))


def rehearse_all(configs: Sequence[RunConfig], needs: Demand) -> tuple[dict[str, Rehearsed], list[DiceRayError]]:
    """Rehearse each configuration that may take a different time, in processes with the resources of a trial.

    Returns:
        The rehearsals by the key of the configuration, and the errors of those that fail.
    """
    import ray

    placed = {"num_cpus": needs.threads, "num_gpus": needs.gpus, "resources": needs.constraint}
    task = ray.remote(max_calls=1, max_retries=0)(_rehearsed).options(**placed)
    different = {timing_key(config): config.with_threads(needs.threads) for config in configs}
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


def timing_key(config: RunConfig) -> str:
    """The settings that a run's time depends on: of loss and mining only whether the encoder runs once a step."""
    written = nested(config)
    sections = {name: written[name] for name in ("task", "data", "model", "training")}
    del sections["training"]["seed"], sections["data"]["split_seed"]
    del sections["model"]["head_bias"], sections["model"]["dropout"]
    has_one_pass = config.loss.is_item_mean and not config.mining.ratio
    return json.dumps([sections, has_one_pass], sort_keys=True)
