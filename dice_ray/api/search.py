"""A sweep over a space, and resuming a sweep, a study, or a single run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dice_ray.api import library, tracking
from dice_ray.api.plans import run_plan, with_automatic
from dice_ray.api.presets import EMBEDDED_PRESET, Written, layers_of
from dice_ray.api.results import Result
from dice_ray.api.training import shown, train_config
from dice_ray.errors import InputError, UnknownNameError
from dice_ray.files import runs_folder
from dice_ray.run.names import check_lists, check_name, check_whole, new_name
from dice_ray.run.own_loss import with_loss
from dice_ray.user_code import address_of

if TYPE_CHECKING:
    from dice_ray.api.training import Callback
    from dice_ray.run.driver import Show
    from dice_ray.run.own_loss import GivenLoss
    from dice_ray.run.tables import Preset
    from dice_ray.settings import Flat


_PUBLISHED = "published"
"""The warm start from the authors' settings; any other is the name of a sweep."""


def tune(
    preset: Preset = EMBEDDED_PRESET,
    settings: Written = (),
    *,
    space: str | Callable[..., None] = "loss_tuning",
    loss: GivenLoss | None = None,
    trials: int = 16,
    seed: int = 0,
    seeds: int = 0,
    top: int = 5,
    objectives: Sequence[str] = (),
    sampler: str | None = None,
    scheduler: str | None = None,
    warm_start: str | None = None,
    trial_timeout: float | None = None,
    max_hours: float | None = None,
    name: str | None = None,
    register: str | None = None,
    note: str | None = None,
    tags: Mapping[str, str] | Sequence[str] | None = None,
    address: str | None = None,
    dry_run: bool = False,
    callbacks: Sequence[Callback] = (),
    show: Show | None = None,
) -> Result:
    """Search the loss and its settings, beginning with those of the preset; the score is the best one on dev.

    Args:
        preset: A shipped preset's name, a YAML file, a table (a pandas DataFrame or a `datasets.Dataset`), or `Tables`.
        settings: Values over the preset, below the trials.
        space: A shipped space's name, `module:function` or `file.py:function`, or a function that is defined in a file.
        loss: As in `train`, for a space that does not search it.
        trials: Number of configurations to try.
        seed: Seed of the sampler and of every trial. Studies use seeds from 1 on, and so never compare on it.
        seeds: Number of other seeds that the best configurations are run with again, to rank them by their mean.
        top: Number of best configurations that are run again.
        objectives: Metrics to optimise together, at least two: of dev, as `precision`, or `seconds` of training. To
            optimise a single metric, set `task.TASK.score`.
        sampler: tpe, random, brute_force, nsga2, or file.py:function that makes an Optuna sampler from a seed; by
            default tpe, and nsga2 for several objectives.
        scheduler: Early stopping: asha (after 1, 3, 9, ... evaluations the best third goes on), median, none, or
            file.py:function that makes an Optuna pruner; by default asha, and none for several objectives.
        warm_start: Begin with the settings that the paper's authors published for the preset, or with the results of
            an earlier sweep, whose trials are not run again.
        trial_timeout: Time limit of one trial, in seconds; a trial that runs longer counts as failed.
        max_hours: Stop after this time; the sweep or study can be resumed.
        name: Name of the sweep, by default made from the preset's.
        register: As in `train`.
        note: As in `train`.
        tags: As in `train`.
        address: Address of the head of a Ray cluster; by default RAY_ADDRESS, or a Ray on this machine alone.
        dry_run: As in `train`.
        callbacks: As in `train`; a sweep or study calls them with its counts when a trial has ended.
        show: As in `train`.
    """
    from dice_ray.run import object_store
    from dice_ray.run.driver import Driver
    from dice_ray.tuning.samplers import check_settings, drawn_at_random
    from dice_ray.tuning.space import Space, own_point
    from dice_ray.tuning.sweep import SweepPlan

    check_lists(objectives=objectives)
    check_whole(trials=trials, seed=seed, seeds=seeds, top=top)
    preset = library.preset_of(preset)
    name = check_name(name or new_name(f"{Path(preset).stem}-tune"))
    object_store.fetch_driven(runs_folder() / name)
    written = layers_of(preset, settings if loss is None else with_loss(settings, loss))
    space = space if isinstance(space, str) else address_of(space)
    layers = with_automatic(written, name, Path(preset).stem)
    sampler = sampler or ("nsga2" if objectives else "tpe")
    address_of_space = library.space_address(space)
    check_settings(written[-1], f"the space {address_of_space}", drawn_at_random(Space(address_of_space)))
    points = []
    # An earlier sweep has begun with the preset's own settings, and brute force comes to them anyway.
    if sampler in ("tpe", "random", "nsga2") and warm_start in (None, _PUBLISHED):
        library.folder_of("search_spaces")
        points.append(own_point(layers, Space(address_of_space)))
    notes = []
    if warm_start == _PUBLISHED:
        published = published_points(preset, space)
        points += [params for params, _ in published]
        notes = [
            f"The first trials are the preset's own settings and {len(published)} published ones. "
            f"Published values that the space {space} does not search are left out:"
        ]
        for number, (params, left_out) in enumerate(published, start=1):
            words = ", ".join(f"{path}={value}" for path, value in left_out.items())
            notes.append(f"  {number} {params['loss']}: {words or 'nothing'}")
    plan = SweepPlan.checked(
        name=name,
        layers=layers,
        space=address_of_space,
        trials=trials,
        sampler=sampler,
        scheduler=scheduler or ("none" if objectives else "asha"),
        objectives=tuple(objectives),
        seed=seed,
        seeds=seeds,
        top=top,
        trial_timeout=trial_timeout,
        points=tuple(points),
        warm_start=None if warm_start == _PUBLISHED else warm_start,
    )
    screen, own_tags = shown(show, callbacks), tracking.own_tags(note, tags)
    driver = Driver(address, max_hours=max_hours, show=screen, tags=own_tags, notes=tuple(notes))
    return run_plan(plan.with_contents(), driver, is_dry=dry_run, register=register)


def published_points(preset: str | Path, space: str) -> list[tuple[Flat, Flat]]:
    """The settings that the paper's authors published for a preset's data, reduced to what a space searches.

    Raises:
        UnknownNameError: They published none for that preset.
        InputError: The space searches nothing of what they published.
    """
    from dice_ray.tuning.space import Space
    from dice_ray.tuning.space import points as reduced

    library.folder_of("search_spaces")
    from search_spaces.published import PUBLISHED as settings_of

    if str(preset) not in settings_of:
        raise UnknownNameError("preset with published settings", str(preset), settings_of)
    points = reduced(settings_of[str(preset)], Space(library.space_address(space)))
    if not points:
        losses = sorted({point["loss"] for point in settings_of[str(preset)]})
        raise InputError(f"the space {space} must search a loss published for {preset}: {', '.join(losses)}")
    return points


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
    callbacks: Sequence[Callback] = (),
    show: Show | None = None,
) -> Result:
    """Resume a sweep, a study, or a run trained alone.

    Args:
        name: Name of a sweep, a study, or a run that was trained alone.
        more_trials: Number of configurations that a sweep tries in addition.
        seeds: As in `tune`; at least as many as planned.
        top: As in `tune`; at least as many as planned.
        register: As in `train`.
        address: As in `tune`.
        max_hours: As in `tune`.
        dry_run: Estimate what is left of a sweep or study, and leave no files behind.
        callbacks: As in `train`; a sweep or study calls them with its counts when a trial has ended.
        show: As in `train`.

    Raises:
        UnknownNameError: There is no such sweep, study or run.
        InputError: An option does not apply to the run, sweep or study.
    """
    from dice_ray.run import object_store
    from dice_ray.run.driver import Driver
    from dice_ray.run.folder import can_be_resumed, holds_plan, stored_config
    from dice_ray.tuning import plan_file
    from dice_ray.tuning.ledger import ledger_in

    check_whole(more_trials=more_trials, seeds=seeds, top=top)
    name = str(name)
    if "/" in name:
        above = name.partition("/")[0]
        raise InputError(f"a trial is resumed with its sweep or study: `dice-ray resume {above}`, got {name!r}")
    driver, folder = Driver(address, max_hours=max_hours, show=shown(show, callbacks)), runs_folder() / name
    object_store.fetch_driven(folder)
    if not holds_plan(folder):
        config = stored_config(folder)
        if config is None:
            known = [each.name for each in runs_folder().glob("*") if can_be_resumed(each)]
            raise UnknownNameError("sweep, study or run", name, known)
        counts = {"--trials": more_trials, "--seeds": seeds, "--top": top}
        options = {**counts, "--address": address, "--max-hours": max_hours, "--dry-run": dry_run}
        if given := [option for option, value in options.items() if value not in (None, 0)]:
            raise InputError(f"{name} is a run trained alone, which is resumed without {' and '.join(given)}")
        return train_config(config, name, driver, register)
    plan = plan_file.read(folder)
    if plan.name != name:  # the ids of its runs are unique in the MLflow experiment of its own name alone
        another = f". To begin another one with what it found: `dice-ray tune PRESET --warm-start {name}`"
        raise InputError(
            f"{folder} must have the name of the {plan.kind} that it holds, {plan.name}, under which MLflow has its "
            f"runs: rename the folder back to resume it{another if plan.kind == 'sweep' else ''}"
        )
    grown = plan.grown(ledger_in(folder), address, more_trials, seeds, top)
    return run_plan(grown, driver, is_dry=dry_run, register=register)
