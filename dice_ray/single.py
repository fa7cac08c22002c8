"""One run trained alone: its folder driven by this process, what it says written to MLflow and shown."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Protocol, TextIO, TypeAlias

from dice_ray import cluster, folders, launch, trained
from dice_ray.config.load import as_yaml
from dice_ray.config.schema import RunConfig
from dice_ray.data.sources import describe
from dice_ray.errors import DiceRayError
from dice_ray.settings import flat, nested
from dice_ray.tracking import schema, surroundings
from dice_ray.tracking.writer import Writer
from dice_ray.training.loop import Evaluation, StepProgress
from dice_ray.tuning.ledger import alone


class Screen(Protocol):
    """What shows a run to the user."""

    def update(self, progress: StepProgress) -> None: ...

    def evaluated(self, evaluation: Evaluation) -> None: ...


NUM_TOLD = 200
"""How many steps of a run, about, are told to MLflow between its evaluations."""
Show: TypeAlias = Callable[[TextIO], AbstractContextManager[Screen]]
"""Makes the screen on the stdout of before, while the words of others go to the log."""


def run(config: RunConfig, folder: Path, experiment: str, show: Show | None) -> float:
    """Train a run in its folder; returns its best score on dev.

    Raises:
        RunError: Another process is training in the folder, or it holds something else.
    """
    prepared = launch.prepare(config)
    loaded = prepared.report(prepared.train, prepared.dev)
    folders.check_config(config, folder)
    if (digest := trained.stored_digest(folder)) is not None:
        trained.check_digest(digest, prepared.splits.digest, f"the run {folder.name}")
    if config.launch.workers == 1 and config.launch.how == "auto":
        launch.check_here(config)
    objective, name = launch.objective(config), folder.name
    tags = {schema.KIND: "run", schema.METRIC: objective, schema.SEED: str(config.training.seed)}
    evaluations: list[Evaluation] = []
    told_last = 0
    with (
        alone(folder),
        cluster.quiet(folder / "log.txt") as terminal,
        Writer(experiment, folder=folder) as writer,
        ExitStack() as stack,
    ):
        folders.store_config(config, folder)
        if show:
            terminal.write(f"{loaded}\n")
        screen = stack.enter_context(show(terminal)) if show else None
        writer.open(name, name=name, params=flat(config), tags=tags | config.tags() | surroundings.tags())
        source = config.data.source
        writer.data(name, describe(config.data), prepared.splits.digest, source.name, nested(source))
        writer.text(name, "config.yaml", as_yaml(config))
        writer.text(name, "data.json", loaded.as_json())

        def report(told: Evaluation | StepProgress) -> None:
            nonlocal told_last
            if isinstance(told, StepProgress):
                if screen:
                    screen.update(told)
                if told.step - told_last >= told.num_steps / NUM_TOLD:
                    told_last = told.step
                    writer.metrics(name, told.step, {f"step/{each}": getattr(told, each) for each in schema.OF_STEPS})
                return
            evaluations.append(told)
            writer.metrics(name, told.step, told.metrics)
            if screen:
                screen.evaluated(told)

        status: schema.Status = "KILLED"
        try:
            launch.train(config, folder, report)
            status = "FINISHED"
        except DiceRayError:
            status = "FAILED"
            raise
        finally:
            if evaluations:
                best = max(evaluations, key=lambda evaluation: evaluation.metrics[objective])
                writer.metrics(name, evaluations[-1].step, {schema.best_metric(objective): best.metrics[objective]})
                collapsed = best.metrics[schema.collapsed_metric(objective)]
                writer.tags(name, {schema.COLLAPSED: "true" if collapsed else "false"})
            writer.end(name, status)
    return best.metrics[objective]
