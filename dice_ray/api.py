"""The composition root: train, tune, ablate, report, for notebooks and the command line alike."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeAlias

from dice_ray import shipped
from dice_ray.errors import DataError, DiceRayError, InputError, RunError, UnknownNameError

if TYPE_CHECKING:
    import pandas as pd

    from analysis.report import Report
    from dice_ray.config.load import Layer
    from dice_ray.config.schema import RunConfig
    from dice_ray.losses.table import Row
    from dice_ray.training.loop import Evaluation
    from dice_ray.tuning.callback import Progress
    from dice_ray.tuning.runner import Show
    from dice_ray.tuning.warm_start import Point

RUNS = Path("dice_ray_runs")
"""Where runs, sweeps and studies keep plans, ledgers and checkpoints: a folder of the working directory."""
TRAIN_EXPERIMENT = "train"
"""The MLflow experiment of runs that are trained alone; a sweep or study has one of its own name."""
EMBEDDED_PRESET = "synthetic_pairs"
PUBLISHED = "published"
"""The warm start at the authors' settings; any other is the name of a sweep."""

Written: TypeAlias = Mapping[str, Any] | Sequence[str]
"""What is written over a preset: {"loss.focal.gamma": 2}, or ["loss.focal.gamma=2"]."""


@dataclass(frozen=True)
class Result:
    """What a run, sweep or study left behind: its folder, and in MLflow its runs.

    Attributes:
        name: Of its folder.
        experiment: In MLflow.
        is_finished: False where it was interrupted; the same call, or `resume`, goes on.
    """

    name: str
    experiment: str
    is_finished: bool = True

    @property
    def folder(self) -> Path:
        return RUNS / self.name

    @property
    def frame(self) -> pd.DataFrame:
        """One row a run of its experiment: parameters, tags, last metrics."""
        from dice_ray.tracking.reader import read

        return read(self.experiment)

    def report(self) -> Report:
        """The tables of its experiment."""
        return report(self.experiment)


def validate(preset: str | Path, settings: Written = ()) -> RunConfig:
    """What a preset and what is written over it resolve to.

    Raises:
        ConfigError: Every problem at once.
    """
    from dice_ray.config.load import resolve

    return resolve(_layers(preset, settings))


def resolved_yaml(preset: str | Path, settings: Written = ()) -> str:
    """The same as YAML, defaults filled in: itself a preset."""
    from dice_ray.config.load import as_yaml

    return as_yaml(validate(preset, settings))


def train(
    preset: str | Path,
    settings: Written = (),
    *,
    name: str | None = None,
    show: Callable[[TextIO], Callable[[Evaluation], None]] | None = None,
) -> Result:
    """Fine-tune one task with one loss.

    Args:
        preset: A shipped preset's name, or a YAML file.
        settings: What is written over it.
        name: The run's name; the name of an earlier run goes on with it.
        show: Makes, on the terminal, what shows each evaluation.
    """
    from dice_ray import cluster, launch
    from dice_ray.config.load import as_yaml
    from dice_ray.data import sources
    from dice_ray.settings import flat
    from dice_ray.tracking import schema
    from dice_ray.tracking.writer import Writer

    config = validate(preset, settings)
    result = Result(_named(name or _new_name(f"{Path(preset).stem}-{config.loss.name}")), TRAIN_EXPERIMENT)
    splits = sources.load(config.data)
    _store_config(config, result.folder)
    objective = launch.objective(config)
    tags = {schema.KIND: "run", schema.METRIC: objective, schema.SEED: str(config.training.seed)}
    told: list[Evaluation] = []
    with cluster.quiet(result.folder / "log.txt") as terminal, Writer(result.experiment) as writer:
        shown = show(terminal) if show else None
        writer.open(result.name, name=result.name, params=flat(config), tags=tags | config.tags())
        writer.text(result.name, "config.yaml", as_yaml(config))
        writer.text(result.name, "data.json", json.dumps(splits.report.plain(), ensure_ascii=False, indent=2))

        def report(evaluation: Evaluation) -> None:
            told.append(evaluation)
            writer.metrics(result.name, evaluation.step, evaluation.metrics)
            if shown:
                shown(evaluation)

        status: schema.Status = "KILLED"
        try:
            launch.train(config, result.folder, report)
            status = "FINISHED"
        except DiceRayError:
            status = "FAILED"
            raise
        finally:
            if told:
                best = max(told, key=lambda evaluation: evaluation.metrics[objective])
                writer.metrics(result.name, told[-1].step, {schema.best_metric(objective): best.metrics[objective]})
                collapsed = best.metrics[schema.collapsed_metric(objective)]
                writer.tags(result.name, {schema.COLLAPSED: "true" if collapsed else "false"})
            writer.end(result.name, status)
    return result


def tune(
    preset: str | Path = EMBEDDED_PRESET,
    settings: Written = (),
    *,
    space: str = "loss_tuning",
    trials: int = 16,
    seed: int = 0,
    sampler: str = "tpe",
    scheduler: Literal["asha", "median", "none"] = "asha",
    warm_start: str | None = None,
    trial_timeout: float | None = None,
    max_hours: float | None = None,
    name: str | None = None,
    address: str | None = None,
    show: Show | None = None,
) -> Result:
    """Search the loss and its settings; the best score on dev counts.

    Args:
        preset: A shipped preset's name, or a YAML file.
        settings: What is written over it, below the trials.
        space: A shipped space's name, `module:function` or `file.py:function`.
        trials: How many configurations are tried.
        seed: Of the sampler and of every trial; studies begin at 1, so that they never compare on the seed of a search.
        sampler: `tpe`, `random`, `brute_force`, or the address of a function that makes an Optuna sampler of a seed.
        scheduler: What stops trials early.
        warm_start: `published` begins with the authors' settings for this preset (`published_points`); the name of an
            earlier sweep, with all that it found.
        trial_timeout: After how many seconds a trial that is still running has failed.
        max_hours: After which the sweep stops, to be gone on with later.
        name: The sweep's name.
        address: Of a Ray cluster; a Ray of our own runs on this machine where not given.
        show: Makes the screen that shows progress.
    """
    from dice_ray.tuning import search
    from dice_ray.tuning.plan import SweepPlan

    name = _named(name or _new_name(f"{Path(preset).stem}-tune"))
    points = published_points(preset, space) if warm_start == PUBLISHED else []
    plan = SweepPlan(
        name=name,
        layers=tuple(_layers(preset, settings)),
        space=shipped.space_address(space),
        trials=trials,
        sampler=sampler,
        scheduler=scheduler,
        seed=seed,
        trial_timeout=trial_timeout,
        points=tuple(point.params for point in points),
        warm_start=None if warm_start == PUBLISHED else warm_start,
    )
    progress = search.run(plan, RUNS / name, address=address, max_hours=max_hours, show=show)
    return _ended(name, progress)


def published_points(preset: str | Path, space: str) -> list[Point]:
    """What the authors of the paper ran on a preset's data, cut to what a space searches.

    Raises:
        UnknownNameError: They published no settings for that preset.
        InputError: The space searches nothing of what they published.
    """
    from dice_ray.tuning import warm_start
    from dice_ray.tuning.space import Space

    shipped.folder_of("search_spaces")
    from search_spaces.published import PUBLISHED as settings_of

    if str(preset) not in settings_of:
        raise UnknownNameError("preset with published settings", str(preset), settings_of)
    points = warm_start.points(settings_of[str(preset)], Space(shipped.space_address(space)))
    if not points:
        losses = sorted({point["loss"] for point in settings_of[str(preset)]})
        raise InputError(f"the space {space} must search a loss published for {preset}: {', '.join(losses)}")
    return points


def resume(
    name: str,
    *,
    more_trials: int = 0,
    address: str | None = None,
    max_hours: float | None = None,
    show: Show | None = None,
) -> Result:
    """Go on with a sweep or study: its plan minus what its ledger holds.

    Args:
        name: Of the sweep or study.
        more_trials: What a sweep tries beyond its plan.
        address: Of a Ray cluster; a Ray of our own runs on this machine where not given.
        max_hours: After which it stops again.
        show: Makes the screen that shows progress.
    """
    from dice_ray.tuning import ablation, plan, search

    stored = plan.read(RUNS / name)
    if isinstance(stored, plan.SweepPlan):
        stored = stored.model_copy(update={"trials": stored.trials + more_trials})
        progress = search.run(stored, RUNS / name, address=address, max_hours=max_hours, show=show)
    elif more_trials:
        raise InputError(f"a study has no trials to add, and {name} is one: it grows by arms and seeds")
    else:
        progress = ablation.run(stored, RUNS / name, address=address, max_hours=max_hours, show=show)
    return _ended(name, progress)


def ablate(
    study: str = "loss_comparison",
    preset: str | Path = EMBEDDED_PRESET,
    settings: Written = (),
    *,
    seeds: int = 3,
    trial_timeout: float | None = None,
    max_hours: float | None = None,
    name: str | None = None,
    address: str | None = None,
    show: Show | None = None,
) -> Result:
    """Run the arms of a study over the same seeds; cells that were run before are kept.

    Args:
        study: A shipped study's name, or a Python file with ARMS and BASELINE.
        preset: A shipped preset's name, or a YAML file.
        settings: What is written over it, below the arms.
        seeds: Seeds 1 to this number.
        trial_timeout: After how many seconds a cell that is still running has failed.
        max_hours: After which the study stops; the same call goes on.
        name: The study's name where not given.
        address: Of a Ray cluster; a Ray of our own runs on this machine where not given.
        show: Makes the screen that shows progress.
    """
    from dice_ray.config.load import resolve
    from dice_ray.data import sources
    from dice_ray.tuning import ablation
    from dice_ray.tuning.plan import StudyPlan

    arms, baseline = _arms(study)
    layers = tuple(_layers(preset, settings))
    name = _named(name or Path(study).stem)
    splits = sources.load(resolve(layers).data)
    if not splits.test:
        raise DataError("a study compares on the test split, and the data has none: give data.source.files.test")
    plan = StudyPlan(
        name=name,
        layers=layers,
        arms=arms,
        baseline=baseline,
        seeds=tuple(range(1, seeds + 1)),
        digest=splits.digest,
        trial_timeout=trial_timeout,
    )
    progress = ablation.run(plan, RUNS / name, address=address, max_hours=max_hours, show=show)
    return _ended(name, progress)


def report(name: str) -> Report:
    """The tables of a sweep, a study, or the runs trained alone, from what MLflow holds of it."""
    shipped.folder_of("analysis")
    from analysis import report as reports
    from dice_ray.tracking.reader import read

    return reports.report(read(name))


def report_folder(name: str) -> Path:
    """Where a report is written unless told otherwise."""
    return RUNS / name / "report"


def names() -> dict[str, list[str]]:
    """What can be named: presets, tasks, losses, spaces, studies."""
    from dice_ray.losses import LossConfig
    from dice_ray.settings import branches_of
    from dice_ray.tasks import TaskConfig

    return {
        "presets": list(shipped.presets()),
        "tasks": list(branches_of(TaskConfig)),
        "losses": list(branches_of(LossConfig)),
        "spaces": list(shipped.spaces()),
        "studies": list(shipped.studies()),
    }


def losses() -> list[Row]:
    """The registered losses: formula, parameters with their defaults, scope, source."""
    from dice_ray.losses.table import rows

    return rows()


def plot_losses(file: Path) -> None:
    """Draw the derivatives of the losses, as the paper's Figure 1 and corrected."""
    if file.suffix not in (".png", ".svg", ".pdf") or not file.absolute().parent.is_dir():
        raise InputError(f"a picture must be a .png, .svg or .pdf in a folder that is there, got {file}")
    shipped.folder_of("analysis")
    from analysis.figures import draw_figure_1, figure_1

    draw_figure_1(figure_1(), file)


def _layers(preset: str | Path, settings: Written) -> list[Layer]:
    from dice_ray.config.load import read_layer, set_layer, values_layer

    above = values_layer("settings", settings) if isinstance(settings, Mapping) else set_layer(settings)
    return [read_layer(shipped.preset_file(preset)), above]


def _arms(study: str) -> tuple[dict[str, dict[str, Any]], str]:
    """The arms and the baseline of a shipped study, or of a Python file."""
    from dice_ray.tuning.space import module_at

    studies = shipped.studies()
    if not study.endswith(".py") and study not in studies:
        raise UnknownNameError("study", study, studies)
    module = module_at(studies.get(study, study))
    if missing := [name for name in ("ARMS", "BASELINE") if not hasattr(module, name)]:
        raise InputError(f"a study must define ARMS and BASELINE, and {study} lacks {' and '.join(missing)}")
    if not isinstance(module.ARMS, dict) or not all(isinstance(values, dict) for values in module.ARMS.values()):
        raise InputError(f"ARMS of {study} must map names to what they write, path by path, got {module.ARMS!r:.80}")
    if module.BASELINE not in module.ARMS:
        raise UnknownNameError("arm for BASELINE", str(module.BASELINE), module.ARMS)
    return module.ARMS, module.BASELINE


def _store_config(config: RunConfig, folder: Path) -> None:
    """Write `config.yaml`; a run that goes on must be the one that was begun, wherever it is launched.

    Raises:
        RunError: The folder holds another run, or a sweep or study.
    """
    from dice_ray.config.load import as_yaml, read_layer, resolve
    from dice_ray.settings import flat

    file = folder / "config.yaml"
    if (folder / "plan.yaml").exists():
        raise RunError(f"{folder} holds a sweep or study: choose another --name")
    if file.exists():
        stored, given = flat(resolve([read_layer(file)])), flat(config)
        paths = sorted(path for path in {*stored, *given} if stored.get(path) != given.get(path))
        if other := [path for path in paths if not path.startswith("launch.")]:
            raise RunError(f"{folder} holds a run with other settings ({', '.join(other)}): choose another --name")
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(as_yaml(config), encoding="utf-8")


def _ended(name: str, progress: Progress) -> Result:
    """The result of a sweep or study, unless nothing came of it.

    Raises:
        RunError: Every trial failed; it names the first reason.
    """
    from dice_ray.tuning.ledger import Ledger

    if progress.is_finished and progress.failed == progress.total:
        reasons = [ended.failure for ended in Ledger(RUNS / name / "ledger.jsonl").ended.values()]
        raise RunError(f"all {progress.total} trials of {name} failed, the first one because {reasons[0]}")
    return Result(name, name, progress.is_finished)


def _named(name: str) -> str:
    """A name that can be a folder and an experiment of its own."""
    if not re.fullmatch(r"\w[\w.-]*", name) or name == TRAIN_EXPERIMENT:
        raise InputError(
            f"a name must be letters, digits, '_', '-' and '.', begin with a letter or digit, and not be "
            f"{TRAIN_EXPERIMENT!r}, got {name!r}"
        )
    return name


def _new_name(stem: str) -> str:
    """A name that nothing here has yet."""
    while True:
        name = f"{stem}-{''.join(secrets.choice('abcdefghjkmnpqrstuvwxyz23456789') for _ in range(4))}"
        if not (RUNS / name).exists():
            return name
