"""Many runs: a sweep over a space, a study of arms over seeds, and resuming either, or a single run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dice_ray.api import library, tracking
from dice_ray.api.looks import run_in_looks, with_expected_runs
from dice_ray.api.presets import EMBEDDED_PRESET, Written, layers_of
from dice_ray.api.reports import store_outcome
from dice_ray.api.results import Result, interruptible
from dice_ray.api.training import shown, train_config
from dice_ray.errors import InputError, RunError, UnknownNameError
from dice_ray.files import runs_folder
from dice_ray.run.names import check_lists, check_name, check_whole, new_name, valid_name
from dice_ray.run.own_loss import settings_of, with_loss
from dice_ray.user_code import address_of

if TYPE_CHECKING:
    from dice_ray.api.training import Callback
    from dice_ray.config.load import Layer
    from dice_ray.run.driver import Driver, Show, TrialCounts
    from dice_ray.run.own_loss import GivenLoss
    from dice_ray.run.tables import Preset
    from dice_ray.tuning.plan import Plan
    from dice_ray.tuning.space import Point


_DRAWING_SAMPLERS = ("tpe", "random", "nsga2")
"""Samplers with an initial point; brute force goes through a grid."""
PUBLISHED = "published"
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
    tags: Mapping[str, str] | None = None,
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
        warm_start: Begin with the settings that the paper's authors published for the preset, or with all trials of an
            earlier sweep.
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
    from dice_ray.run.driver import Driver
    from dice_ray.tuning.samplers import check_settings
    from dice_ray.tuning.space import Space, own_point
    from dice_ray.tuning.sweep import SweepPlan

    check_lists(objectives=objectives)
    check_whole(trials=trials, seed=seed, seeds=seeds, top=top)
    preset = library.preset_of(preset)
    name = check_name(name or new_name(f"{Path(preset).stem}-tune"))
    written = layers_of(preset, settings if loss is None else with_loss(settings, loss))
    space = space if isinstance(space, str) else address_of(space)
    layers = with_automatic(written, name, Path(preset).stem)
    sampler = sampler or ("nsga2" if objectives else "tpe")
    address_of_space = library.space_address(space)
    check_settings(written[-1], address_of_space)
    points = []
    # An earlier sweep has begun with the preset's own settings, and brute force comes to them anyway.
    if sampler in _DRAWING_SAMPLERS and warm_start in (None, PUBLISHED):
        library.folder_of("search_spaces")
        points.append(own_point(layers, Space(address_of_space)))
    if warm_start == PUBLISHED:
        points += [point.params for point in published_points(preset, space)]
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
        warm_start=None if warm_start == PUBLISHED else warm_start,
    )
    driver = Driver(address, max_hours=max_hours, show=shown(show, callbacks), tags=tracking.own_tags(note, tags))
    return run_plan(plan.with_contents(), driver, is_dry=dry_run, register=register)


def published_points(preset: str | Path, space: str) -> list[Point]:
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
    from dice_ray.run.driver import Driver
    from dice_ray.run.folder import can_be_resumed, holds_plan, stored_config
    from dice_ray.tuning import plan_file
    from dice_ray.tuning.ledger import ledger_in

    check_whole(more_trials=more_trials, seeds=seeds, top=top)
    if "/" in name:
        above = name.partition("/")[0]
        raise InputError(f"a trial is resumed with its sweep or study: `dice-ray resume {above}`, got {name!r}")
    driver, folder = Driver(address, max_hours=max_hours, show=shown(show, callbacks)), runs_folder() / name
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
        raise InputError(
            f"{folder} must have the name of the {plan.kind} that it holds, {plan.name}, under which MLflow has its "
            f"runs: rename the folder back to resume it. To begin another one with what it found: `dice-ray tune "
            f"--warm-start {plan.name}`"
        )
    grown = plan.grown(ledger_in(folder), address, more_trials, seeds, top)
    return run_plan(grown, driver, is_dry=dry_run, register=register)


def ablate(
    study: str = "loss_comparison",
    data: Preset | Sequence[Preset] = (),
    settings: Written = (),
    *,
    encoders: Sequence[str] = (),
    arms: Sequence[str] = (),
    losses: Mapping[str, GivenLoss] | None = None,
    seeds: int | None = None,
    num_settings: int | None = None,
    budget: int | None = None,
    crossed: bool = False,
    until_settled: bool = False,
    max_seeds: int = 20,
    care: float | None = None,
    threshold: Literal["tuned", "untuned"] | None = None,
    again: bool = False,
    tune_shared: str | None = None,
    tuned_from: Sequence[str] = (),
    trial_timeout: float | None = None,
    max_hours: float | None = None,
    name: str | None = None,
    note: str | None = None,
    tags: Mapping[str, str] | None = None,
    address: str | None = None,
    dry_run: bool = False,
    callbacks: Sequence[Callback] = (),
    show: Show | None = None,
) -> Result:
    """Run the arms of a study over the same seeds, on each of its variants; finished cells are kept.

    Args:
        study: Name of a study (see `dice-ray list`), or a Python file that defines ARMS and BASELINE, and optionally
            VARIANTS, SETTINGS or SPACE, and DATA.
        data: Preset whose data the arms are compared on: a name, a YAML file, a table or `Tables`; by default those
            that the study names.
        settings: Values over them, below the arms.
        encoders: Encoder of all arms, in place of the preset's.
        arms: Arm to run, the baseline among them; by default all.
        losses: Losses of your own, as `loss` in `train`, by the names of the arms that they are compared as.
        seeds: Number of seeds, by default 5: each arm is run with the seeds 1, 2, ...
        num_settings: Number of settings drawn from the study's SPACE, by default 30: all arms are run with each of
            them once, with the first setting and seed 1, the second and seed 2, and so on.
        budget: Number of drawn settings of which the best by dev counts, by default 4.
        crossed: Run every drawn setting with every seed: for the sources of variance.
        until_settled: Compare the arms after 5, 10, 15, ... seeds, and run only those on that are not settled.
        max_seeds: The most seeds of an arm, with until_settled.
        care: The smallest difference that matters to you, in points of the metric: arms within it are equal.
        threshold: At which the arms are compared, tuned on dev or untuned; by default tuned, where the task tunes one.
        again: Run the baseline with other seeds too, as a control: a difference between the two is chance.
        tune_shared: Sweep whose best trial gives all arms the same settings, except those of the loss.
        tuned_from: Sweep whose best trial with the arm's loss gives the arm its settings; with tune_shared, those of
            the loss alone.
        trial_timeout: As in `tune`.
        max_hours: As in `tune`.
        name: Name of the study, by default that of its file; finished cells of a study of this name are kept.
        note: As in `train`.
        tags: As in `train`.
        address: As in `tune`.
        dry_run: As in `train`.
        callbacks: As in `tune`.
        show: As in `train`.
    """
    from dice_ray.config.load import resolve
    from dice_ray.run.driver import Driver
    from dice_ray.tuning.earlier import with_shared_settings, with_tuned_arms
    from dice_ray.tuning.study import OTHER_SEEDS, StudyPlan, Variant
    from dice_ray.tuning.study_file import check_test, command_of, layers_by_variant, with_arms, with_draws

    library.folder_of("analysis")
    from analysis.statistics.looks import looks_up_to

    check_lists(encoders=encoders, arms=arms, tuned_from=tuned_from)
    check_whole(seeds=seeds, max_seeds=max_seeds, num_settings=num_settings, budget=budget)
    _check_seeds(seeds, until_settled, max_seeds, care, OTHER_SEEDS)
    name = check_name(name or valid_name(Path(study).stem))
    file = library.read_study(study)
    if losses:
        study = with_arms(study, file, {arm: settings_of(loss) for arm, loss in losses.items()})
        file, arms = library.read_study(study), [*arms, *losses] if arms else ()
    if unknown := [arm for arm in arms if arm not in file.arms]:
        raise UnknownNameError("arm", unknown[0], file.arms)
    if arms and file.baseline not in arms:
        raise InputError(f"the arms must hold the baseline that the others are compared with: add {file.baseline!r}")
    given = data if isinstance(data, Sequence) and not isinstance(data, str) else [data]
    presets = [library.preset_of(each) for each in given] or list(file.data)
    is_tuned = bool(tune_shared or tuned_from)
    if is_tuned and len(presets) * max(1, len(encoders)) > 1:
        raise InputError(
            "a study that is tuned from sweeps must be on one data set and one encoder, as the sweeps are: give one "
            "--data and one --encoder, and compare studies by `dice-ray report A B`"
        )
    if is_tuned and file.variants_are == "settings":
        given_option = "--tune-shared" if tune_shared else "--tuned-from"
        raise InputError(
            f"a study of drawn settings runs all arms with the same settings: give no {given_option} with {study}"
        )
    library.folder_of("search_spaces")
    from search_spaces.draws import draws

    file = with_draws(study, file, draws, num_settings, budget, seeds, crossed=crossed)
    over_seeds = {"until_settled": until_settled, "care": care, "threshold": threshold, "again": again}
    if file.variants_are == "settings" and (given_options := [option for option, value in over_seeds.items() if value]):
        raise InputError(f"{study} compares at equal tuning budget, over settings: give no {given_options[0]}")
    looks = () if file.variants_are == "settings" else looks_up_to(max_seeds) if until_settled else (seeds or 5,)

    def below(preset: str | Path) -> list[Layer]:
        return layers_of(preset, settings)

    variants: dict[str | None, Variant] = {}
    for variant, (data_name, layers, of_file) in layers_by_variant(presets, below, encoders, file.variants).items():
        config = resolve(layers).with_data_name(data_name)
        check_test(config)
        written = with_automatic(layers, name, data_name, variant)
        own = {arm: values for arm, values in file.own.get(of_file, {}).items() if not arms or arm in arms}
        digest = config.splits().digest
        variants[variant] = Variant(layers=written, digest=digest, seed=file.seeds.get(of_file), arms=own)
    ((data_name, base, _),) = layers_by_variant(presets[:1], below, encoders[:1], {}).values()
    plan = StudyPlan.checked(
        name=name,
        layers=with_automatic(base, name, data_name),
        arms={arm: values for arm, values in file.arms.items() if not arms or arm in arms},
        baseline=file.baseline,
        seeds=tuple(range(1, (len(file.seeds) or (max_seeds if until_settled else seeds or 5)) + 1)),
        looks=looks,
        care=care or 0.0,
        threshold=threshold or "tuned",
        digest=resolve(base).with_data_name(data_name).splits().digest,
        variants={variant: content for variant, content in variants.items() if variant is not None},
        variants_are=file.variants_are,
        budget=file.budget,
        trial_timeout=trial_timeout,
        command=command_of(
            study,
            presets if len(given) else (),
            settings,
            encoders,
            arms,
            tune_shared,
            tuned_from,
            trial_timeout,
            name,
            [
                *(["--budget", str(budget)] if budget else []),
                *(["--crossed"] if crossed else []),
                *(["--until-settled", "--max-seeds", str(max_seeds)] if until_settled else []),
                *(["--care", f"{care:g}"] if care else []),
                *(["--threshold", threshold] if threshold else []),
                *(["--again"] if again else []),
            ],
        ),
    )
    if tune_shared:
        plan = with_shared_settings(plan, runs_folder() / tune_shared)
    if tuned_from:
        plan = with_tuned_arms(plan, [runs_folder() / sweep for sweep in tuned_from])
    if again:
        plan = plan.with_control_again()
    driver = Driver(address, max_hours=max_hours, show=shown(show, callbacks), tags=tracking.own_tags(note, tags))
    return run_plan(plan.with_contents(), driver, is_dry=dry_run)


def _check_seeds(seeds: int | None, until_settled: bool, max_seeds: int, care: float | None, most: int) -> None:
    for name, num in (("seeds", seeds), ("max_seeds", max_seeds)):
        if num is not None and not 1 <= num < most:
            raise InputError(f"{name} must be at least 1 and less than {most}, got {num}")
    if until_settled and seeds is not None:
        raise InputError(f"a study until its arms are settled must have max_seeds in place of seeds, got seeds {seeds}")
    if care is not None and not 0 < care < math.inf:
        raise InputError(f"care must be a difference above 0, in points of the metric, got {care}")


def run_plan(plan: Plan, driver: Driver, *, is_dry: bool, register: str | None = None) -> Result:
    """Run what a plan asks for and its folder does not hold yet, or estimate it.

    Raises:
        InputError: A model cannot be registered under this name, or the sweep has no best one.
    """
    from dice_ray.tuning import runner
    from dice_ray.tuning.estimate import estimate

    tracking.check_register(register)
    if register and not plan.has_best:
        raise InputError("a search for several objectives must leave out --register: it has no best trial to register")
    folder = runs_folder() / plan.name
    if is_dry:
        made = estimate(plan, folder, driver)
        return Result(
            plan.name, plan.name, False, estimate=with_expected_runs(made, plan) if plan.num_looks > 1 else made
        )
    with interruptible(plan.name, plan.name) as stop:
        driver = replace(driver, is_stopped=stop)
        counts = run_in_looks(plan, folder, driver) if plan.num_looks > 1 else runner.run(plan, folder, driver)
        stop.check()
        return _result(plan, folder, counts, register)


def with_automatic(layers: Sequence[Layer], name: str, data_name: str, variant: str | None = None) -> tuple[Layer, ...]:
    """The layers, and above them one with the automatically chosen values, which all trials share on every machine.

    These are the precision, and the name of the data. A sweep or study that was started before keeps the values that
    were chosen then.
    """
    from dice_ray.config.load import resolve, values_layer
    from dice_ray.run.build import fix_precision
    from dice_ray.run.folder import holds_plan
    from dice_ray.tuning import plan_file
    from dice_ray.tuning.plan import AUTOMATIC

    config = resolve(layers)
    folder = runs_folder() / name
    stored = plan_file.read(folder) if holds_plan(folder) else None
    before = stored.base(variant) if stored is not None and (variant is None or variant in stored.digests) else None
    chosen: dict[str, str | None] = {}
    if config.training.precision == "auto":
        chosen["training.precision"] = (before or fix_precision(config, is_of_trials=True)).training.precision
    named = config.with_data_name(before.tracking.data if before is not None else data_name)
    if named.tracking.data != config.tracking.data:
        chosen["tracking.data"] = named.tracking.data
    return (*layers, values_layer(AUTOMATIC, chosen)) if chosen else tuple(layers)


def _result(plan: Plan, folder: Path, counts: TrialCounts, register: str | None) -> Result:
    """The result of a sweep or study; predictions and model of the best run of a finished one are stored.

    Raises:
        RunError: Every trial failed; it names the last reason. Or the checkpoint of the best one was deleted.
    """
    from dice_ray.output import redirected
    from dice_ray.run.folder import LOG
    from dice_ray.tuning import plan_file
    from dice_ray.tuning.ledger import ledger_in
    from dice_ray.tuning.places import place
    from dice_ray.tuning.ranking import best_in

    ledger = ledger_in(folder)
    if counts.is_finished and counts.failed == counts.total:
        # The last, since a study may hold other failures of earlier calls.
        *_, reason = (outcome.failure for outcome in ledger.outcomes.values() if outcome.failure)
        reason = " ".join(reason.split())
        raise RunError(
            f"all {counts.total} trials of {folder.name} failed, the last one because {reason} (output: {folder / LOG})"
        )
    is_study = counts.is_finished and plan.split == "test"
    result = Result(folder.name, folder.name, counts.is_finished, is_study=is_study)
    if counts.is_finished:
        with redirected(folder / LOG):  # first, since the best run may have no checkpoint any more
            store_outcome(plan.name, lambda: result.findings, folder)
    if counts.is_finished and plan.has_best and (best := best_in(ledger)) is not None:
        # The best cell may be of a variant that an earlier call asked for.
        store_text = plan_file.read(folder).config(ledger.specs[best]).tracking.text
        if store_text or register:
            tracking.keep_best(place(f"{plan.name}/{best}"), plan.split, store_text=store_text, register=register)
    return result
