"""Commands that train many runs, or continue what was interrupted: tune, ablate, resume."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from dice_ray.cli.options import (
    PRESET_HELP,
    AddressOption,
    ArmOption,
    DataOption,
    DryRunOption,
    EncoderOption,
    HoursOption,
    JsonOption,
    NoteOption,
    ObjectivesOption,
    PriceOption,
    RegisterOption,
    SamplerOption,
    SchedulerOption,
    SetOption,
    SpaceOption,
    TagOption,
    TimeoutOption,
    TunedFromOption,
    TuneSharedOption,
    WarmStartOption,
    tags_of,
)
from dice_ray.cli.printing import print_result, print_text

if TYPE_CHECKING:
    from dice_ray.api import Result


def tune(
    preset: Annotated[str, typer.Argument(help=PRESET_HELP)],
    settings: SetOption = None,
    space: SpaceOption = None,
    trials: Annotated[int, typer.Option(min=1, help="Number of configurations to try.")] = 16,
    objectives: ObjectivesOption = None,
    sampler: SamplerOption = None,
    scheduler: SchedulerOption = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sampler and of every trial.")] = 0,
    seeds: Annotated[
        int,
        typer.Option(
            min=0, help="Run the best configurations again with this many other seeds, and rank them by the mean."
        ),
    ] = 0,
    top: Annotated[int, typer.Option(min=1, help="Number of best configurations that --seeds runs again.")] = 5,
    warm_start: WarmStartOption = None,
    trial_timeout: TimeoutOption = None,
    max_hours: HoursOption = None,
    name: Annotated[str | None, typer.Option(help="Name of the sweep.", show_default="made from the preset")] = None,
    register: RegisterOption = None,
    note: NoteOption = None,
    tag: TagOption = None,
    address: AddressOption = None,
    dry_run: DryRunOption = False,
    price_per_hour: PriceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search for the best loss and its hyperparameters: a sweep."""
    from dice_ray import api
    from dice_ray.cli.screen import TerminalScreen

    _check_price(price_per_hour, dry_run=dry_run)
    space = space or "loss_tuning"
    if warm_start == api.PUBLISHED and not as_json:
        _print_published(preset, space)
    work = partial(
        api.tune,
        preset,
        settings or [],
        space=space,
        trials=trials,
        seed=seed,
        seeds=seeds,
        top=top,
        objectives=objectives or [],
        sampler=sampler,
        scheduler=scheduler,
        warm_start=warm_start,
        trial_timeout=trial_timeout,
        max_hours=max_hours,
        name=name,
        register=register,
        note=note,
        tags=tags_of(tag),
        address=address,
        dry_run=dry_run,
        show=None if as_json else TerminalScreen,
    )

    def next_commands(result: Result) -> list[list[str]]:
        # A search for several objectives has no best trial to export.
        export = [] if objectives else [["export-preset", result.name, f"{result.name}.yaml"]]
        return [["runs", result.name], ["report", result.name], *export]

    resume_with = {"--register": register, "--address": address}
    print_result(work, next_commands, price_per_hour, resume_with=resume_with, as_json=as_json)


def ablate(
    study: Annotated[
        str,
        typer.Argument(help="Name of a study (see `dice-ray list`), or a Python file that defines ARMS and BASELINE."),
    ],
    data: DataOption = None,
    encoder: EncoderOption = None,
    settings: SetOption = None,
    arm: ArmOption = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds: each arm is run with the seeds 1, 2, ...")] = 5,
    tune_shared: TuneSharedOption = None,
    tuned_from: TunedFromOption = None,
    trial_timeout: TimeoutOption = None,
    max_hours: HoursOption = None,
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of the study; cells that an earlier study of this name has finished are kept.",
            show_default="the name of STUDY",
        ),
    ] = None,
    note: NoteOption = None,
    tag: TagOption = None,
    address: AddressOption = None,
    dry_run: DryRunOption = False,
    price_per_hour: PriceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the arms of an ablation study over the same seeds, on one or several data sets."""
    from dice_ray import api
    from dice_ray.cli.screen import TerminalScreen

    _check_price(price_per_hour, dry_run=dry_run)
    work = partial(
        api.ablate,
        study,
        data or (),
        settings or [],
        encoders=encoder or (),
        arms=arm or (),
        seeds=seeds,
        tune_shared=tune_shared,
        tuned_from=tuned_from or (),
        trial_timeout=trial_timeout,
        max_hours=max_hours,
        name=name,
        note=note,
        tags=tags_of(tag),
        address=address,
        dry_run=dry_run,
        show=None if as_json else TerminalScreen,
    )

    def next_commands(result: Result) -> list[list[str]]:
        return [["report", result.name], *_more_seeds(result, address)]

    print_result(work, next_commands, price_per_hour, resume_with={"--address": address}, as_json=as_json)


def resume(
    name: Annotated[str, typer.Argument(help="Name of a sweep, a study, or a run of `dice-ray train`.")],
    trials: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Number of configurations that a sweep tries in addition.", show_default="0"
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Run the best configurations of a sweep again with this many other seeds.",
            show_default="as planned",
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(min=1, help="Number of best configurations that --seeds runs again.", show_default="as planned"),
    ] = None,
    max_hours: HoursOption = None,
    register: RegisterOption = None,
    address: AddressOption = None,
    dry_run: DryRunOption = False,
    price_per_hour: PriceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Continue a sweep, study or run that was interrupted, or extend a sweep that has finished."""
    from dice_ray import api
    from dice_ray.cli.screen import TerminalScreen

    _check_price(price_per_hour, dry_run=dry_run)
    work = partial(
        api.resume,
        name,
        more_trials=trials or 0,
        seeds=seeds,
        top=top,
        register=register,
        address=address,
        max_hours=max_hours,
        dry_run=dry_run,
        show=None if as_json else TerminalScreen,
    )

    def next_commands(result: Result) -> list[list[str]]:
        return [["runs", result.name], ["report", result.name], *_more_seeds(result, address)]

    resume_with = {"--register": register, "--address": address}
    print_result(work, next_commands, price_per_hour, resume_with=resume_with, as_json=as_json)


def _more_seeds(result: Result, address: str | None) -> list[list[str]]:
    """The command that would answer the question of a study, if it is open."""
    return [[*words[1:], *(["--address", address] if address else [])]] if (words := result.next_study) else []


def _check_price(price_per_hour: float | None, *, dry_run: bool) -> None:
    if price_per_hour is not None and not dry_run:
        raise typer.BadParameter("--price-per-hour needs --dry-run")


def _print_published(preset: str, space: str) -> None:
    """Print the published settings that the sweep starts from, and the values of theirs that it cannot take over."""
    from dice_ray import api

    points = api.published_points(preset, space)
    print_text(
        f"The first trials are the preset's own settings and {len(points)} published ones. "
        f"Published values that the space {space} does not search are left out:"
    )
    for number, point in enumerate(points, start=1):
        left_out = ", ".join(f"{path}={value}" for path, value in point.left_out.items())
        print_text(f"  {number} {point.params['loss']}: {left_out or 'nothing'}")
