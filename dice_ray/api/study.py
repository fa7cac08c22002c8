"""A study: arms over the same seeds, on one data set or several."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dice_ray.api import library, tracking
from dice_ray.api.plans import run_plan, with_automatic
from dice_ray.api.presets import Written, layers_of
from dice_ray.api.results import Result
from dice_ray.api.training import shown
from dice_ray.errors import InputError, UnknownNameError
from dice_ray.files import runs_folder
from dice_ray.run.names import check_lists, check_name, check_whole, valid_name
from dice_ray.run.own_loss import settings_of

if TYPE_CHECKING:
    from dice_ray.api.training import Callback
    from dice_ray.config.load import Layer
    from dice_ray.run.driver import Show
    from dice_ray.run.own_loss import GivenLoss
    from dice_ray.run.tables import Preset


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
    care: float | None = None,
    threshold: Literal["tuned", "untuned"] | None = None,
    again: bool = False,
    tune_shared: str | None = None,
    tuned_from: Sequence[str] = (),
    trial_timeout: float | None = None,
    max_hours: float | None = None,
    name: str | None = None,
    note: str | None = None,
    tags: Mapping[str, str] | Sequence[str] | None = None,
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
        seeds: Number of seeds, by default 5: each arm is run with the seeds 1, 2, ... With until_settled the most of
            an arm, by default 20.
        num_settings: Number of settings drawn from the study's SPACE, by default 30: all arms are run with each of
            them once, with the first setting and seed 1, the second and seed 2, and so on.
        budget: Number of drawn settings of which the best by dev counts, by default 4.
        crossed: Run every drawn setting with every seed: for the sources of variance.
        until_settled: Compare the arms after 5, 10, 15, ... seeds, and run only those on that are not settled.
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
    from dice_ray.run import object_store
    from dice_ray.run.driver import Driver
    from dice_ray.tuning.cells import OTHER_SEEDS, Variant
    from dice_ray.tuning.earlier import with_shared_settings, with_tuned_arms
    from dice_ray.tuning.looks import with_control_again
    from dice_ray.tuning.samplers import check_settings
    from dice_ray.tuning.study import StudyPlan
    from dice_ray.tuning.study_file import check_test, command_of, layers_by_variant, with_arms, with_draws

    check_lists(encoders=encoders, arms=arms, tuned_from=tuned_from)
    check_whole(seeds=seeds, num_settings=num_settings, budget=budget)
    _check_seeds(seeds, care, OTHER_SEEDS)
    if not isinstance(losses, Mapping | None):
        raise InputError(f"losses must be a mapping of names to losses, got {losses!r:.80}")
    num_seeds, study = seeds or (20 if until_settled else 5), str(study)
    name = check_name(name or valid_name(Path(study).stem))
    object_store.fetch_driven(runs_folder() / name)
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
    if file.variants_are == "settings":
        if given_options := [option for option, value in over_seeds.items() if value]:
            raise InputError(f"{study} compares at equal tuning budget, over settings: give no {given_options[0]}")
        check_settings(layers_of(presets[0], settings)[-1], f"the study {study}", file.variants.values())
    looks: tuple[int, ...] = () if file.variants_are == "settings" else (num_seeds,)
    if until_settled:
        library.folder_of("analysis")
        from analysis.statistics.looks import looks_up_to

        looks = looks_up_to(num_seeds)

    def below(preset: str | Path) -> list[Layer]:
        return layers_of(preset, settings)

    asked = arms or [*file.arms]
    variants: dict[str | None, Variant] = {}
    for variant, (data_name, layers, in_file) in layers_by_variant(presets, below, encoders, file.variants).items():
        config = resolve(layers).with_data_name(data_name)
        check_test(config)
        written = with_automatic(layers, name, data_name, variant)
        digest = config.splits().digest
        own = dict(file.own.get(in_file, {}))  # of all arms: one that is not asked for now may be later
        variants[variant] = Variant(layers=written, digest=digest, seed=file.seeds.get(in_file), arms=own)
    ((data_name, base, _),) = layers_by_variant(presets[:1], below, encoders[:1], {}).values()
    plan = StudyPlan.checked(
        name=name,
        layers=with_automatic(base, name, data_name),
        arms={arm: values for arm, values in file.arms.items() if arm in asked},
        baseline=file.baseline,
        seeds=tuple(range(1, (len(file.seeds) or num_seeds) + 1)),
        looks=looks,
        care=care or 0.0,
        threshold=threshold or "tuned",
        digest=resolve(base).with_data_name(data_name).splits().digest,
        variants={variant: content for variant, content in variants.items() if variant is not None},
        variants_are=file.variants_are,
        budget=file.budget,
        space=file.addresses.get("", ""),
        spaces={arm: each for arm, each in file.addresses.items() if arm in asked},
        trial_timeout=trial_timeout,
        command=command_of(
            study,
            {
                "--data": presets if len(given) else (),
                "--encoder": encoders,
                "--set": settings,
                "--arm": arms,
                "--tune-shared": tune_shared,
                "--tuned-from": tuned_from,
                "--trial-timeout": trial_timeout,
                "--name": name if name != study else None,
                "--budget": budget,
                "--settings": num_settings if crossed else None,
                "--crossed": crossed,
                "--until-settled": until_settled,
                "--seeds": num_seeds if until_settled else None,
                "--care": care,
                "--threshold": threshold,
                "--again": again,
            },
        ),
    )
    if tune_shared:
        plan = with_shared_settings(plan, runs_folder() / tune_shared)
    if tuned_from:
        plan = with_tuned_arms(plan, [runs_folder() / sweep for sweep in tuned_from])
    if again:
        plan = with_control_again(plan)
    driver = Driver(address, max_hours=max_hours, show=shown(show, callbacks), tags=tracking.own_tags(note, tags))
    return run_plan(plan.with_contents(), driver, is_dry=dry_run)


def _check_seeds(seeds: int | None, care: object, most: int) -> None:
    if seeds is not None and not 1 <= seeds < most:
        raise InputError(f"seeds must be at least 1 and less than {most}, got {seeds}")
    if care is not None and not (isinstance(care, int | float) and 0 < care < math.inf):
        raise InputError(f"care must be a difference above 0, in points of the metric, got {care}")
