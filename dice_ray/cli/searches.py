"""Commands that run many trials or cells, and the one on what a sweep found: tune, ablate, export-preset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from dice_ray.cli.estimates import print_estimate
from dice_ray.cli.options import (
    AddressOption,
    DryRunOption,
    HoursOption,
    JsonOption,
    PriceOption,
    RegisterOption,
    SetOption,
    TimeoutOption,
)
from dice_ray.cli.printing import print_end, print_json
from dice_ray.errors import InputError

RESUMING = {
    "resume",
    "trials",
    "seeds",
    "top",
    "max_hours",
    "register",
    "address",
    "dry_run",
    "price_per_hour",
    "as_json",
}
"""What may stand beside --resume."""


def tune(
    context: typer.Context,
    preset: Annotated[str | None, typer.Argument(help="A preset's name, or a YAML file of your own.")] = None,
    settings: SetOption = None,
    space: Annotated[str, typer.Option(help="A space's name, module:function or file.py:function.")] = "loss_tuning",
    trials: Annotated[
        int, typer.Option(min=1, help="How many configurations are tried; with --resume how many more, as +32.")
    ] = 16,
    objectives: Annotated[
        list[str] | None,
        typer.Option(
            "--objective", metavar="METRIC", help="A metric of dev, or `seconds`; several are searched for together."
        ),
    ] = None,
    sampler: Annotated[
        str | None,
        typer.Option(
            help="tpe, random, brute_force, nsga2, or module:function that makes an Optuna sampler of a seed.",
            show_default="tpe, nsga2 for several objectives",
        ),
    ] = None,
    scheduler: Annotated[
        Literal["asha", "median", "none"] | None,
        typer.Option(help="What stops trials early.", show_default="asha, none for several objectives"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the sampler, and of every trial.")] = 0,
    seeds: Annotated[
        int, typer.Option(min=0, help="Run the best again with so many other seeds, and rank them by the mean.")
    ] = 0,
    top: Annotated[int, typer.Option(min=1, help="How many of the best --seeds runs again.")] = 5,
    warm_start: Annotated[
        str | None,
        typer.Option(
            metavar="published|NAME", help="Begin with the authors' settings, or with what an earlier sweep found."
        ),
    ] = None,
    trial_timeout: TimeoutOption = None,
    max_hours: HoursOption = None,
    name: Annotated[str | None, typer.Option(help="The sweep's name; one is made where it is not given.")] = None,
    resume: Annotated[
        str | None, typer.Option(metavar="NAME", help="Go on with the sweep or study of this name.")
    ] = None,
    register: RegisterOption = None,
    address: AddressOption = None,
    dry_run: DryRunOption = False,
    price_per_hour: PriceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search the loss and its settings."""
    from dice_ray import api
    from dice_ray.cli.screen import ProgressScreen

    _check_price(price_per_hour, dry_run)
    if (preset is None) == (resume is None):
        raise typer.BadParameter("give either a preset, or --resume NAME")
    given = [
        name for name in context.params if str(context.get_parameter_source(name)) == "ParameterSource.COMMANDLINE"
    ]
    if resume is not None and (others := set(given) - RESUMING):
        raise typer.BadParameter(f"--resume goes on with the plan as it is: leave out {', '.join(sorted(others))}")
    show = None if as_json else ProgressScreen
    if resume is not None:
        more = trials if "trials" in given else 0
        result = api.resume(
            resume,
            more_trials=more,
            seeds=seeds if "seeds" in given else None,
            top=top if "top" in given else None,
            register=register,
            address=address,
            max_hours=max_hours,
            dry_run=dry_run,
            show=show,
        )
    else:
        assert preset is not None
        if warm_start == api.PUBLISHED and not as_json:
            _show_points(preset, space)
        result = api.tune(
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
            address=address,
            dry_run=dry_run,
            show=show,
        )
    if result.estimate is not None:
        print_estimate(result.estimate, price_per_hour, as_json=as_json)
        return
    commands = ["runs {0}", "report {0}", "export-preset {0} {0}.yaml"]
    print_end(result, [f"dice-ray {command.format(result.name)}" for command in commands], as_json)


def ablate(
    study: Annotated[
        str, typer.Argument(help="A study's name (`dice-ray list`), or a Python file with ARMS, BASELINE.")
    ],
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PRESET", help="A preset's name, or a YAML file of your own; repeatable. Else the study's own."
        ),
    ] = None,
    encoder: Annotated[
        list[str] | None, typer.Option(help="An encoder for all arms, as model.encoder; repeatable.")
    ] = None,
    settings: SetOption = None,
    arm: Annotated[list[str] | None, typer.Option(help="Run this arm of the study; repeatable. Else all.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds 1 to this number for every arm.")] = 3,
    tuned_from: Annotated[
        list[str] | None,
        typer.Option(metavar="SWEEP", help="Each arm takes the best trial of its own loss; repeatable."),
    ] = None,
    trial_timeout: TimeoutOption = None,
    max_hours: HoursOption = None,
    name: Annotated[str | None, typer.Option(help="The study's name; the same again runs what is missing.")] = None,
    address: AddressOption = None,
    dry_run: DryRunOption = False,
    price_per_hour: PriceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the arms of a study over the same seeds, on one or several data sets; what was run before is kept."""
    from dice_ray import api
    from dice_ray.cli.screen import ProgressScreen

    _check_price(price_per_hour, dry_run)
    result = api.ablate(
        study,
        data or (),
        settings or [],
        encoders=encoder or (),
        arms=arm or (),
        seeds=seeds,
        tuned_from=tuned_from or (),
        trial_timeout=trial_timeout,
        max_hours=max_hours,
        name=name,
        address=address,
        dry_run=dry_run,
        show=None if as_json else ProgressScreen,
    )
    if result.estimate is not None:
        print_estimate(result.estimate, price_per_hour, as_json=as_json)
        return
    print_end(result, [f"dice-ray report {result.name}"], as_json)


def export_preset(
    sweep: Annotated[str, typer.Argument(help="A sweep's name, or SWEEP/TRIAL.")],
    file: Annotated[Path | None, typer.Argument(help="The file to write; else it is printed.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Write the best configuration of a sweep as a preset that `train` runs."""
    from dice_ray import api

    preset = api.export_preset(sweep)
    if file is not None:
        if file.exists() or file.suffix not in (".yaml", ".yml"):
            raise InputError(f"a preset must be written to a new file that ends in .yaml, got {file}")
        file.write_text(preset, encoding="utf-8")
    if as_json:
        print_json({"sweep": sweep, **({"preset": preset} if file is None else {"written": file})})
    elif file is None:
        typer.echo(preset, nl=False)
    else:
        typer.echo(f"Written: {file}")


def _check_price(price_per_hour: float | None, dry_run: bool) -> None:
    if price_per_hour is not None and not dry_run:
        raise typer.BadParameter("--price-per-hour needs --dry-run")


def _show_points(preset: str, space: str) -> None:
    """What was published for a preset, and what of it the space does not search."""
    from dice_ray import api

    points = api.published_points(preset, space)
    typer.echo(
        f"After the preset's own settings {len(points)} published ones; left out, as {space} does not search it:"
    )
    for number, point in enumerate(points, start=1):
        left_out = ", ".join(f"{path}={value}" for path, value in point.left_out.items())
        typer.echo(f"  {number} {point.params['loss']}: {left_out or 'nothing'}")
