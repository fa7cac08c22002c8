"""One run trained alone: driven by this process, recorded in MLflow, shown on the screen."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from dice_ray.config.load import as_yaml
from dice_ray.config.schema import RunConfig
from dice_ray.data.sources import describe
from dice_ray.errors import DiceRayError
from dice_ray.run import cluster
from dice_ray.run.build import objective, prepare
from dice_ray.run.driver import Driver
from dice_ray.run.folder import CONFIG, LOG, check_config, check_digest, lock, store_config, stored_digest
from dice_ray.run.here import check_gpus, check_machine
from dice_ray.run.train import train, uses_ray_train
from dice_ray.settings import flat, nested
from dice_ray.tracking import schema, surroundings
from dice_ray.tracking.writer import Writer
from dice_ray.training.loop import Evaluation

NUM_STEP_POINTS = 200
"""About how many steps of a run are sent to MLflow between evaluations."""


def train_alone(config: RunConfig, folder: Path, experiment: str, driver: Driver) -> float:
    """Train a run in its folder; returns its best score on dev.

    Raises:
        RunError: Another process trains in the folder, or it holds something else.
    """
    prepared = prepare(config)
    loaded = prepared.report(prepared.train, prepared.dev)
    check_config(config, folder)
    if (digest := stored_digest(folder)) is not None:
        check_digest(digest, prepared.splits.digest, f"the run {folder.name}")
    if not uses_ray_train(config):
        check_machine(config)
    metric, name = objective(config), folder.name
    tags = {schema.KIND: "run", schema.METRIC: metric, schema.SEED: str(config.training.seed)}
    evaluations: list[Evaluation] = []
    last_step = 0
    with (
        lock(folder),
        cluster.quiet(folder / LOG) as terminal,
        Writer(experiment, folder=folder) as writer,
        ExitStack() as stack,
    ):
        store_config(config, folder)
        if driver.show:
            terminal.write(f"{loaded}\n")
        screen = stack.enter_context(driver.show(terminal)) if driver.show else None
        writer.open(name, name=name, params=flat(config), tags=tags | config.tags() | surroundings.tags())
        source = config.data.source
        writer.data(name, describe(config.data), prepared.splits.digest, source.name, nested(source))
        writer.text(name, CONFIG, as_yaml(config))
        writer.text(name, "data.json", loaded.as_json())
        status: schema.Status = "KILLED"
        try:
            if uses_ray_train(config):
                launch = config.launch
                num_cpus = launch.workers * launch.threads + 1
                ray = stack.enter_context(cluster.started(num_cpus=num_cpus, log=folder / LOG, folder=folder))
                check_gpus(launch.workers * launch.gpus, ray.gpus)
            for event in train(config, folder):
                if screen:
                    screen.show(event)
                if isinstance(event, Evaluation):
                    evaluations.append(event)
                    writer.metrics(name, event.step, event.metrics)
                elif event.step - last_step >= event.num_steps / NUM_STEP_POINTS:
                    last_step = event.step
                    values = {f"step/{each}": getattr(event, each) for each in schema.STEP_METRICS}
                    writer.metrics(name, event.step, values)
            status = "FINISHED"
        except DiceRayError:
            status = "FAILED"
            raise
        finally:
            if evaluations:
                best = max(evaluations, key=lambda evaluation: evaluation.metrics[metric])
                writer.metrics(name, evaluations[-1].step, {schema.best_metric(metric): best.metrics[metric]})
                collapsed = best.metrics[schema.collapsed_metric(metric)]
                writer.tags(name, {schema.COLLAPSED: "true" if collapsed else "false"})
            writer.end(name, status)
    return best.metrics[metric]
