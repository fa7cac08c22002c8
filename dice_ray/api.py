"""The composition root: train, tune, ablate, report, for notebooks and the command line alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from dice_ray import folders, shipped
from dice_ray.errors import DataError, InputError, RunError, UnknownNameError
from dice_ray.folders import RUNS, TRAIN_EXPERIMENT

if TYPE_CHECKING:
    import pandas as pd

    from analysis.report import Report
    from dice_ray import single
    from dice_ray.config.load import Layer
    from dice_ray.config.schema import RunConfig
    from dice_ray.config.starter import Starter
    from dice_ray.data.cache import Listed
    from dice_ray.losses.table import Row
    from dice_ray.rehearsal import Rehearsal
    from dice_ray.tasks.base import Scores
    from dice_ray.tasks.inspection import Inspection
    from dice_ray.tasks.predictions import Predictions
    from dice_ray.tuning.callback import Progress
    from dice_ray.tuning.runner import Show
    from dice_ray.tuning.warm_start import Point

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
        best: Of a run trained alone: the metric that decides, and its best value.
    """

    name: str
    experiment: str
    is_finished: bool = True
    best: tuple[str, float] | None = None

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
    show: single.Show | None = None,
) -> Result:
    """Fine-tune one task with one loss.

    Args:
        preset: A shipped preset's name, or a YAML file.
        settings: What is written over it.
        name: The run's name; the name of an earlier run goes on with it.
        show: Makes, on the terminal, what shows how far it is.
    """
    from dice_ray import launch, single

    config = launch.resolved(validate(preset, settings))
    name = folders.named(name or _train_name(preset, config))
    score = single.run(config, RUNS / name, TRAIN_EXPERIMENT, show)
    return Result(name, TRAIN_EXPERIMENT, best=(launch.objective(config), score))


@dataclass(frozen=True)
class DryRun:
    """What `train` would do, from its first steps.

    Attributes:
        config: As YAML, defaults filled in.
        folder: Where the run would lie.
    """

    config: str
    folder: Path
    rehearsal: Rehearsal


def dry_run(preset: str | Path, settings: Written = (), *, name: str | None = None) -> DryRun:
    """Run the first steps of what `train` would run, and leave nothing behind; the arguments are those of `train`."""
    from dice_ray import launch
    from dice_ray.config.load import as_yaml
    from dice_ray.rehearsal import rehearse

    config = launch.resolved(validate(preset, settings))
    folder = RUNS / folders.named(name or _train_name(preset, config))
    folders.check_config(config, folder)
    return DryRun(as_yaml(config), folder, rehearse(config))


@dataclass(frozen=True)
class Scored:
    """What a run's best checkpoint is worth on some data.

    Attributes:
        data: A split's name, or a file.
        scores: Its metrics, at a half and at the threshold that dev decided, and the counts of each record.
        is_tracked: Whether MLflow knows the run, and so has been told.
    """

    run: str
    data: str
    scores: Scores
    is_tracked: bool


def predict(run: str, file: str | Path) -> Predictions:
    """What a run's best checkpoint predicts for a file, read as the run's data are; labels are not looked at.

    Args:
        run: The name of a run, `SWEEP/TRIAL`, `STUDY/ARM/SEED`, or the path of a run's folder.
        file: What is predicted.
    """
    from dice_ray import trained

    return trained.load(folders.place(run).folder).predict(Path(file))


def export(run: str, folder: str | Path) -> str:
    """Write a run's best checkpoint as a plain Hugging Face folder; returns the auto class that loads it.

    Args:
        run: As in `predict`.
        folder: A new or empty one.
    """
    from dice_ray import trained

    folder = Path(folder)
    best = trained.load(folders.place(run).folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"the folder of an export must be new or empty, got {folder}")
    return best.export(folder)


def evaluate(run: str, data: str = "test", *, items: Path | None = None) -> Scored:
    """Score a run's best checkpoint; the counts of each record become an artifact of the run.

    Args:
        run: As in `predict`.
        data: `dev`, `test`, or a file with labels.
        items: Where the counts are written too, as CSV: id, tp, fp, fn.
    """
    from dice_ray import trained
    from dice_ray.tracking import reader
    from dice_ray.tracking.writer import Writer

    place = folders.place(run)
    best = trained.load(place.folder)
    scores = best.score(best.labelled(data))
    counts = trained.items_csv(scores.items)
    if items is not None:
        items.write_text(counts, encoding="utf-8")
    is_tracked = reader.holds(place.experiment, place.id)
    if is_tracked:
        with Writer(place.experiment) as writer:
            writer.text(place.id, trained.items_file(data), counts)
            if data == "test":
                told = {**scores.metrics, "collapsed": float(scores.collapsed)}
                writer.metrics(place.id, best.step, {f"test/{name}": value for name, value in told.items()})
    return Scored(run, data, scores, is_tracked)


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

    name = folders.named(name or folders.new_name(f"{Path(preset).stem}-tune"))
    points = published_points(preset, space) if warm_start == PUBLISHED else []
    plan = SweepPlan(
        name=name,
        layers=_for_all_trials(_layers(preset, settings)),
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
    layers = _for_all_trials(_layers(preset, settings))
    name = folders.named(name or Path(study).stem)
    splits = sources.load(resolve(layers).data)
    if not splits.test:
        raise DataError("a study compares on the test split, and the data has none: name it as `test` in data.source")
    plan = StudyPlan(
        name=name,
        layers=layers,
        arms=arms,
        baseline=baseline,
        seeds=tuple(range(1, seeds + 1)),
        digest=splits.digest,
        trial_timeout=trial_timeout,
    )
    progress = ablation.run(plan.with_encoders(), RUNS / name, address=address, max_hours=max_hours, show=show)
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


def init(
    file: Path, *, dev: Path | None = None, test: Path | None = None, out: Path | None = None, overwrite: bool = False
) -> tuple[Starter, Path]:
    """Write a first preset for files of one format: guessed from the training file, checked on all of them.

    Args:
        file: The training file.
        dev: The dev file; without it dev is drawn from the training file.
        test: The test file.
        out: Where the preset is written; else the name of the training file with `.yaml`, in the working directory.
        overwrite: Whether a file that is there may be replaced.
    """
    from dice_ray.config.starter import start, target

    out = target(file, out, overwrite)
    starter = start(file, dev, test)
    out.write_text(starter.text, encoding="utf-8")
    return starter, out


def inspect(presets: Sequence[str | Path]) -> list[Inspection]:
    """What the data sets of these presets hold: counts, imbalance, labels, lengths, duplicates, what was dropped."""
    from dice_ray.data import sources
    from dice_ray.tasks import inspection

    found = []
    for preset in presets:
        config = validate(preset)
        found.append(inspection.inspect(Path(preset).stem, config.task, sources.load(config.data)))
    return found


def imbalance_report(found: Sequence[Inspection]) -> Report:
    """The tables and bars of inspected data sets; over the paper's sets the first table is its Table 1."""
    shipped.folder_of("analysis")
    from analysis import imbalance

    return imbalance.imbalance_report(found)


def inspection_folder(presets: Sequence[str | Path]) -> Path:
    """Where tables and plot of these data sets are written unless told otherwise."""
    first, *others = (Path(preset).stem for preset in presets)
    return RUNS / "inspect" / (f"{first}_and_{len(others)}_more" if others else first)


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


def cached() -> list[Listed]:
    """What the cache holds of data sets and encoded rows, the last used first."""
    from dice_ray.data import cache

    return cache.listed()


def cache_folder() -> Path:
    """Where the cache lies."""
    from dice_ray.data import cache

    return cache.folder()


def clear_cache() -> int:
    """Delete what the cache holds; returns how many entries. What a run has open stays readable."""
    from dice_ray.data import cache

    return cache.clear()


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


def _train_name(preset: str | Path, config: RunConfig) -> str:
    return folders.new_name(f"{Path(preset).stem}-{config.loss.name}")


def _layers(preset: str | Path, settings: Written) -> list[Layer]:
    from dice_ray.config.load import read_layer, set_layer, values_layer

    above = values_layer("settings", settings) if isinstance(settings, Mapping) else set_layer(settings)
    return [read_layer(shipped.preset_file(preset)), above]


def _for_all_trials(layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """The layers, with one over them of what this machine resolves: all trials share it, wherever they run."""
    from dice_ray import launch
    from dice_ray.config.load import resolve, values_layer

    config = resolve(layers)
    found = launch.resolved(config).training.precision
    if found == config.training.precision:
        return tuple(layers)
    return (*layers, values_layer("this machine", {"training.precision": found}))


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
