"""Many runs: a sweep over a space, a study of arms over seeds, and going on with either."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dice_ray import folders, shipped
from dice_ray.api import tracking
from dice_ray.api.presets import EMBEDDED_PRESET, Written, layers_of
from dice_ray.api.results import Result
from dice_ray.api.studies import check_test, digest_of, layers_by_variant, study_of
from dice_ray.errors import InputError, RunError, UnknownNameError
from dice_ray.folders import runs_folder

if TYPE_CHECKING:
    from dice_ray.config.load import Layer
    from dice_ray.run.driver import Show
    from dice_ray.settings import Flat
    from dice_ray.tuning.plan import StudyPlan, SweepPlan
    from dice_ray.tuning.progress import Progress
    from dice_ray.tuning.warm_start import Point

STARTED = ("tpe", "random", "nsga2")
"""Samplers that draw; one that goes through a grid takes no other start."""
PUBLISHED = "published"
"""The warm start at the authors' settings; any other is the name of a sweep."""


def tune(
    preset: str | Path = EMBEDDED_PRESET,
    settings: Written = (),
    *,
    space: str = "loss_tuning",
    trials: int = 16,
    seed: int = 0,
    seeds: int = 0,
    top: int = 5,
    objectives: Sequence[str] = (),
    sampler: str | None = None,
    scheduler: Literal["asha", "median", "none"] | None = None,
    warm_start: str | None = None,
    trial_timeout: float | None = None,
    max_hours: float | None = None,
    name: str | None = None,
    register: str | None = None,
    address: str | None = None,
    dry_run: bool = False,
    show: Show | None = None,
) -> Result:
    """Search the loss and its settings, those of the preset first; the best score on dev counts.

    Args:
        preset: A shipped preset's name, or a YAML file.
        settings: What is written over it, below the trials.
        space: A shipped space's name, `module:function` or `file.py:function`.
        trials: How many configurations are tried.
        seed: Of the sampler and of every trial; studies begin at 1, so that they never compare on the seed of a search.
        seeds: With how many other seeds the best configurations run when the search has ended; their mean ranks them.
        top: How many these are.
        objectives: What to search for together, in place of the task's own metric: metrics of dev, as `precision` and
            `recall`, or `seconds` of training; the report holds the Pareto front.
        sampler: `tpe`, `random`, `brute_force`, `nsga2`, or the address of a function that makes an Optuna sampler of
            a seed; `tpe` where not given, `nsga2` for several objectives.
        scheduler: What stops trials early; `asha` where not given, and none for several objectives.
        warm_start: `published` begins with the authors' settings for this preset (`published_points`); the name of an
            earlier sweep, with all that it found.
        trial_timeout: After how many seconds a trial that is still running has failed.
        max_hours: After which the sweep stops, to be gone on with later.
        name: The sweep's name.
        register: The name under which the best trial's model is registered in MLflow, as the next version.
        address: Of a Ray cluster; a Ray of our own runs on this machine where not given.
        dry_run: Run only the first steps of a trial, say what all would take in `Result.estimate`, leave nothing.
        show: Makes the screen that shows progress.
    """
    from dice_ray.tuning.plan import SweepPlan

    tracking.check_register(register)
    name = folders.named(name or folders.new_name(f"{Path(preset).stem}-tune"))
    layers = _for_all_trials(layers_of(preset, settings), name)
    sampler = sampler or ("nsga2" if objectives else "tpe")
    points = _own_point(layers, space) if sampler in STARTED and warm_start in (None, PUBLISHED) else []
    if warm_start == PUBLISHED:
        points += [point.params for point in published_points(preset, space)]
    plan = SweepPlan(
        name=name,
        layers=layers,
        space=shipped.space_address(space),
        trials=trials,
        sampler=sampler,
        scheduler=scheduler or ("none" if objectives else "asha"),
        objectives=tuple(objectives),
        seed=seed,
        seeds=seeds,
        top=top,
        trial_timeout=trial_timeout,
        points=tuple(points),
        warm_start=None if warm_start == PUBLISHED else warm_start,
    )
    return _run(plan, address, max_hours, show, is_dry=dry_run, register=register)


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


def _own_point(layers: Sequence[Layer], space: str) -> list[Flat]:
    """What the preset says of what a space searches; an earlier sweep began with it, and a grid comes to it."""
    from dice_ray.tuning import warm_start
    from dice_ray.tuning.space import Space

    shipped.folder_of("search_spaces")
    return [warm_start.first(layers, Space(shipped.space_address(space)))]


def resume(
    name: str,
    *,
    more_trials: int = 0,
    seeds: int | None = None,
    top: int | None = None,
    register: str | None = None,
    address: str | None = None,
    max_hours: float | None = None,
    dry_run: bool = False,
    show: Show | None = None,
) -> Result:
    """Go on with a sweep or study: its plan minus what its ledger holds.

    Args:
        name: Of the sweep or study.
        more_trials: What a sweep tries beyond its plan.
        seeds: With how many other seeds its best configurations run, no fewer than its plan says.
        top: How many these are, no fewer than its plan says.
        register: As in `tune`.
        address: Of a Ray cluster; a Ray of our own runs on this machine where not given.
        max_hours: After which it stops again.
        dry_run: Say what is left and what that would take, as `tune` does.
        show: Makes the screen that shows progress.
    """
    from dice_ray.tuning import plan_file, search
    from dice_ray.tuning.plan import SweepPlan

    tracking.check_register(register)
    stored = plan_file.read(runs_folder() / name)
    if isinstance(stored, SweepPlan):
        if more_trials and search.is_exhausted(stored, runs_folder() / name, address):
            raise InputError(f"{name} has tried all that its space holds: there is nothing to add to it")
        more = {"seeds": stored.seeds if seeds is None else seeds, "top": stored.top if top is None else top}
        if more["seeds"] < stored.seeds or more["top"] < stored.top:
            planned = f"{stored.seeds} and {stored.top}"
            raise InputError(f"--seeds and --top must be no fewer than {name} has, {planned}, got {seeds} and {top}")
        stored = stored.model_copy(update={"trials": stored.trials + more_trials, **more})
    elif more_trials or seeds or top:
        raise InputError(f"a study has no trials to add, and {name} is one: it grows by arms, variants and seeds")
    return _run(stored, address, max_hours, show, is_dry=dry_run, register=register)


def ablate(
    study: str = "loss_comparison",
    data: str | Path | Sequence[str | Path] = (),
    settings: Written = (),
    *,
    encoders: Sequence[str] = (),
    arms: Sequence[str] = (),
    seeds: int = 3,
    tuned_from: Sequence[str] = (),
    trial_timeout: float | None = None,
    max_hours: float | None = None,
    name: str | None = None,
    address: str | None = None,
    dry_run: bool = False,
    show: Show | None = None,
) -> Result:
    """Run the arms of a study over the same seeds, on each of its variants; cells that were run before are kept.

    Args:
        study: A shipped study's name, or a Python file with ARMS and BASELINE, and VARIANTS and DATA if it has any.
        data: Names of shipped presets, or YAML files; the study's own, or generated pairs, where none is given.
        settings: What is written over them, below the arms.
        encoders: The encoders that the arms are compared on; that of the preset where none is given.
        arms: Those that are run, the baseline among them; all where none is given.
        seeds: Seeds 1 to this number.
        tuned_from: Sweeps: each arm takes what the best trial of its own loss searched.
        trial_timeout: After how many seconds a cell that is still running has failed.
        max_hours: After which the study stops; the same call goes on.
        name: The study's name where not given.
        address: Of a Ray cluster; a Ray of our own runs on this machine where not given.
        dry_run: Run only the first steps, say what all would take in `Result.estimate`, leave nothing.
        show: Makes the screen that shows progress.
    """
    from dice_ray.tuning.plan import StudyPlan, Variant
    from dice_ray.tuning.tuned import tuned

    found = study_of(study)
    if unknown := [arm for arm in arms if arm not in found.arms]:
        raise UnknownNameError("arm", unknown[0], found.arms)
    presets = [data] if isinstance(data, str | Path) else list(data) or list(found.data)
    if tuned_from and len(presets) * max(1, len(encoders)) > 1:
        raise InputError(
            "sweeps are of one data set and one encoder, and so is a study that is tuned from them: give one --data "
            "and one --encoder, and compare studies by `dice-ray report A B`"
        )
    name = folders.named(name or Path(study).stem)
    below = {
        variant: _for_all_trials(layers, name, variant)
        for variant, layers in layers_by_variant(presets, settings, encoders, found.variants).items()
    }
    for layers in below.values():
        check_test(layers)
    (base,) = layers_by_variant(presets[:1], settings, encoders[:1], {}).values()
    plan = StudyPlan(
        name=name,
        layers=_for_all_trials(base, name),
        arms={arm: values for arm, values in found.arms.items() if not arms or arm in arms},
        baseline=found.baseline,
        seeds=tuple(range(1, seeds + 1)),
        digest=digest_of(base),
        variants={
            variant: Variant(layers=layers, digest=digest_of(layers))
            for variant, layers in below.items()
            if variant is not None
        },
        trial_timeout=trial_timeout,
    )
    if tuned_from:
        plan = tuned(plan, [runs_folder() / sweep for sweep in tuned_from])
    plan = plan.with_encoders()
    return _run(plan, address, max_hours, show, is_dry=dry_run)


def _run(
    plan: SweepPlan | StudyPlan,
    address: str | None,
    max_hours: float | None,
    show: Show | None,
    *,
    is_dry: bool,
    register: str | None = None,
) -> Result:
    """Run what a plan says and its folder lacks, or say what that would take."""
    from dice_ray.tuning import ablation, search
    from dice_ray.tuning.plan import SweepPlan

    folder = runs_folder() / plan.name
    if is_dry:
        from dice_ray.tuning.estimate import estimate

        return Result(plan.name, plan.name, False, estimate=estimate(plan, folder, address=address))
    if isinstance(plan, SweepPlan):
        progress = search.run(plan, folder, address=address, max_hours=max_hours, show=show)
    else:
        progress = ablation.run(plan, folder, address=address, max_hours=max_hours, show=show)
    return _ended(plan, folder, progress, register)


def _for_all_trials(layers: Sequence[Layer], name: str, variant: str | None = None) -> tuple[Layer, ...]:
    """The layers, with one over them of what is found for `auto`: all trials share it, wherever and whenever they run.

    A sweep or study that was begun keeps what the machine found that it was begun on.
    """
    from dice_ray import launch
    from dice_ray.config.load import resolve, values_layer
    from dice_ray.tuning import plan_file
    from dice_ray.tuning.plan import THIS_MACHINE

    config = resolve(layers)
    if config.training.precision != "auto":
        return tuple(layers)
    folder = runs_folder() / name
    there = plan_file.read(folder) if (folder / "plan.yaml").exists() else None
    is_begun = there is not None and (variant is None or variant in there.digests)
    found = there.base(variant) if there is not None and is_begun else launch.resolved(config)
    return (*layers, values_layer(THIS_MACHINE, {"training.precision": found.training.precision}))


def _ended(plan: SweepPlan | StudyPlan, folder: Path, progress: Progress, register: str | None) -> Result:
    """The result of a sweep or study, unless nothing came of it; what only the best of a finished one has is stored.

    Raises:
        RunError: Every trial failed; it names the first reason.
    """
    from dice_ray.tuning import kept
    from dice_ray.tuning.ledger import Ledger
    from dice_ray.tuning.plan import SweepPlan

    ledger = Ledger(folder / "ledger.jsonl")
    if progress.is_finished and progress.failed == progress.total:
        reasons = [ended.failure for ended in ledger.ended.values()]
        raise RunError(f"all {progress.total} trials of {folder.name} failed, the first one because {reasons[0]}")
    if progress.is_finished and (best := kept.best(ledger)) is not None:
        split: Literal["dev", "test"] = "dev" if isinstance(plan, SweepPlan) else "test"
        place = folders.Place(folder / folders.TRIALS / best, plan.name, best)
        text = plan.config(ledger.begun[best]).tracking.text
        tracking.keep_best(place, split, text=text, register=register)
    return Result(folder.name, folder.name, progress.is_finished)
