"""One run trained alone: driven by this process, recorded in MLflow, shown on the screen."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

import torch

from dice_ray.config.load import as_yaml
from dice_ray.config.schema import RunConfig
from dice_ray.errors import RefusedError, RunError, reason_of
from dice_ray.files import lock, store_url, without_password
from dice_ray.metrics.catalogue import best_evaluation, gain
from dice_ray.output import redirected
from dice_ray.run import cluster, doctor, object_store, ray_internals, trained
from dice_ray.run.build import (
    Events,
    build,
    check_fits,
    check_machine,
    class_weights,
    fix_precision,
    objective,
    prepare,
    train_here,
)
from dice_ray.run.driver import Driver, announce, end_driver, lost_message, watched
from dice_ray.run.folder import LOG, check_config, check_digest, holds_run, store_config, stored_digest
from dice_ray.run.ray_train import train_on_ray
from dice_ray.settings import flat
from dice_ray.tracking import reader, schema
from dice_ray.tracking.record import RunRecord, active_run_tag, environment_tags
from dice_ray.tracking.writer import Writer
from dice_ray.training.evaluate import never
from dice_ray.training.loop import Evaluation, Parts


def train(
    config: RunConfig, folder: Path, is_stopped: Callable[[], bool] = never, parts: Parts | None = None
) -> Events:
    """Train a run, yielding progress after each step and evaluations; a run that was interrupted is resumed.

    Closing the generator stops the run and frees its workers. Once `is_stopped()`, the run writes a checkpoint and
    ends. `parts` is what `build` made of this configuration, if it was called before.

    Raises:
        RunError: The run is one of several workers, and its folder is a URL.
    """
    config = fix_precision(config)
    if not config.launch.uses_ray_train:
        return train_here(config, folder, is_stopped, parts)
    if url := store_url():
        raise RefusedError(
            "DICE_RAY_RUNS must be a folder that all machines see for a run on several workers (launch.workers), got "
            f"{without_password(url)}"
        )
    return train_on_ray(config, folder, is_stopped)


def evaluations(config: RunConfig, folder: Path) -> Generator[Evaluation, None, None]:
    """The same, yielding evaluations alone."""
    with closing(train(config, folder)) as events:
        for event in events:
            if isinstance(event, Evaluation):
                yield event


def score(config: RunConfig, folder: Path, split: str) -> dict[str, float]:
    """The metrics of a run's best checkpoint on `dev` or `test`, at the threshold that dev decided.

    The counts behind them are written to the run's folder.
    """
    run, prepared = trained.load(folder), prepare(config)
    scores = run.score(prepared.test() if split == "test" else prepared.dev, is_dev=split == "dev")
    (folder / split).mkdir(exist_ok=True)
    for file, content in trained.count_files(split, scores).items():
        (folder / file).write_text(content, encoding="utf-8")
    object_store.send(folder)
    return scores.named(split)


def train_alone(config: RunConfig, folder: Path, experiment: str, driver: Driver) -> Mapping[str, float] | None:
    """Train a run in its folder; returns the metrics of its best evaluation, None if it was stopped before its end.

    Raises:
        RunError: Another process trains in the folder, or it holds something else.
    """
    prepared = prepare(config)
    loaded = prepared.report(prepared.train, prepared.dev)
    # First, since what is refused must not take the run's name. Ray Train's workers build the model on other machines.
    parts: Parts | None = None
    if config.launch.uses_ray_train:
        check_fits(config, prepared)
    else:
        check_machine(config)
        parts = build(config)
    metric, name = objective(config), folder.name
    tags = {schema.KIND: "run", schema.METRIC: metric, schema.SEED: str(config.training.seed)}
    if warning := loaded.few_items():
        tags[schema.FEW_ITEMS] = warning
    evaluations: list[Evaluation] = []
    with (
        _checked(config, folder, prepared.splits.digest, experiment),
        os.fdopen(os.dup(2), "w") as stderr,
        redirected(folder / LOG) as terminal,
        Writer(experiment, folder=folder) as writer,
        ExitStack() as stack,
        ExitStack() as screens,
    ):
        tags |= {schema.FAILURE: ""} if holds_run(folder) else {}  # of an earlier attempt
        store_config(config, folder)
        screen = screens.enter_context(driver.show(terminal)) if driver.show else None
        if screen:
            screen.show(str(loaded))
        record = RunRecord(writer, name)
        tags |= config.tags() | environment_tags() | active_run_tag() | dict(driver.tags)
        record.opened(name, flat(config), tags, as_yaml(config))
        writer.describe(
            name,
            "The runs of `dice-ray train`, each trained alone: `dice-ray runs train` compares them in the terminal. "
            "Each sweep and study has an experiment of its own.",
        )
        record.data(config.data_name, prepared.splits.digest, config.data.source)
        writer.text(name, schema.DATA_FILE, loaded.as_json())
        status: schema.Status = "KILLED"
        ended: dict[str, str] = {}
        try:
            ended |= class_weights(config)
            if config.launch.uses_ray_train:
                launch = config.launch
                threads = launch.threads or max(1, torch.get_num_threads() // launch.workers)
                config = config.with_threads(threads)
                num_cpus, least_cpus = launch.workers * threads, launch.least_workers * threads
                announce(screen)
                ray = stack.enter_context(cluster.started(num_cpus=num_cpus, least_cpus=least_cpus, log=folder / LOG))
                end = partial(end_driver, f"dice-ray: {lost_message(name)}", stderr, screens, writer)
                stack.enter_context(watched(ray, end))
                doctor.check(ray, lambda: doctor.Needs(folder, (config,)))
                cluster.check_accelerator(ray.nodes, launch.accelerator_type)
                if launch.min_workers:
                    ray_internals.start_coordinator()
                num_gpus = launch.least_workers * launch.num_gpus(auto=0)
                cluster.check_gpus(num_gpus, sum(node.gpus for node in ray.nodes))
                if screen and (unused := cluster.unused_gpus(launch, ray.nodes)):
                    screen.show(unused)
            for event in train(config, folder, driver.is_stopped, parts):
                if screen:
                    screen.show(event)
                if isinstance(event, Evaluation):
                    evaluations.append(event)
                    record.evaluated(event.step, event.metrics)
                else:
                    record.steps(event.step, event.num_steps, vars(event))
            if evaluations and evaluations[-1].finished:
                status = "FINISHED"
                if screen and evaluations[-1].is_past:
                    screen.show(f"{name} had ended before: nothing was trained")
        except Exception as error:  # also a mistake in a custom loss
            status = "FAILED"
            ended[schema.FAILURE] = reason_of(error)
            raise
        finally:
            best: tuple[int, dict[str, float]] | None = None
            if metrics := [event.metrics for event in evaluations]:
                index = best_evaluation([gain(metric, each[metric]) for each in metrics], metrics)
                best = evaluations[index].step, metrics[index]
            record.ended(status, objective=metric, best=best, tags=ended)
    return best[1] if best and status == "FINISHED" else None


@contextmanager
def _checked(config: RunConfig, folder: Path, digest: str, experiment: str) -> Iterator[None]:
    """Lock the folder of a run: it and MLflow must hold nothing else of this name than this run on these data."""
    with lock(folder):  # first: what is fetched must not replace the files of a driver that is at work
        object_store.fetch(folder)
        check_config(config, folder)
        if (stored := stored_digest(folder)) is not None:
            check_digest(stored, digest, f"the run {folder.name}", "choose another name")
        if not holds_run(folder) and reader.holds(experiment, folder.name):
            raise RunError(
                f"{folder} must hold the run {folder.name!r} that MLflow has in the experiment {experiment!r}, and "
                "holds none: choose another name, or delete that run in MLflow"
            )
        yield
