"""The command line: parses, calls the api, prints; here the app, and its commands that take a preset and settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dice_ray.cli.data import cache, init, inspect
from dice_ray.cli.known import list_names, losses
from dice_ray.cli.printing import JsonOption, print_json, print_next
from dice_ray.cli.results import report
from dice_ray.cli.searches import export_preset, print_estimate
from dice_ray.cli.tracking import runs, ui
from dice_ray.cli.trained import evaluate, export, predict
from dice_ray.errors import DiceRayError

if TYPE_CHECKING:
    from dice_ray.api import DryRun, Result

app = typer.Typer(
    name="dice-ray",
    help="Which loss, with which settings, on my data, and is the difference real?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

PresetArgument = Annotated[str, typer.Argument(help="A preset's name (`dice-ray list`), or a YAML file of your own.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Write a value over the preset; repeatable.")
]
TimeoutOption = Annotated[
    float | None, typer.Option(min=1, metavar="SECONDS", help="A trial that is still running after so long has failed.")
]
HoursOption = Annotated[
    float | None,
    typer.Option(min=0, metavar="HOURS", help="Stop after so long; --resume or the same command goes on."),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Run a few steps, say what the whole would take, leave nothing.")
]
PriceOption = Annotated[
    float | None, typer.Option(min=0, metavar="PRICE", help="Of the machines: a dry run then says the cost.")
]
RegisterOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Register the best model in MLflow, as the next version of this name."),
]
AddressOption = Annotated[str | None, typer.Option(help="The address of a Ray cluster; else Ray runs on this machine.")]
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


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Show what Ray, Optuna, MLflow and transformers say.")
    ] = False,
) -> None:
    """Which loss, with which settings, on my data, and is the difference real?"""


def train(
    preset: PresetArgument,
    settings: SetOption = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Data-parallel workers; more than one on Ray Train.")
    ] = None,
    gpus_per_worker: Annotated[int | None, typer.Option(min=0, help="GPUs of each worker.")] = None,
    name: Annotated[str | None, typer.Option(help="The run's name; that of an earlier run goes on with it.")] = None,
    register: RegisterOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Fine-tune one task with one loss."""
    from dice_ray import api
    from dice_ray.cli.screen import TrainScreen

    launch = {"launch.workers": workers, "launch.gpus": gpus_per_worker}
    settings = [*(settings or []), *(f"{path}={value}" for path, value in launch.items() if value is not None)]
    if dry_run:
        _print_dry_run(api.dry_run(preset, settings, name=name))
        return
    result = api.train(preset, settings, name=name, register=register, show=None if as_json else TrainScreen)
    assert result.best is not None
    metric, score = result.best
    if not as_json:
        typer.echo(f"\n{result.name}: best {metric} {score:.4f}")
    commands = (f"evaluate {result.name} test", f"predict {result.name} FILE", "report train")
    _end(result, [f"dice-ray {command}" for command in commands], as_json)


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
        print_estimate(result.estimate, price_per_hour)
        return
    commands = ["runs {0}", "report {0}", "export-preset {0} {0}.yaml"]
    _end(result, [f"dice-ray {command.format(result.name)}" for command in commands], as_json)


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
        print_estimate(result.estimate, price_per_hour)
        return
    _end(result, [f"dice-ray report {result.name}"], as_json)


def validate(preset: PresetArgument, settings: SetOption = None) -> None:
    """Check a preset, and print what it resolves to with all defaults: itself a preset."""
    from dice_ray import api

    typer.echo(api.resolved_yaml(preset, settings or []), nl=False)


def _print_dry_run(plan: DryRun) -> None:
    found = plan.rehearsal
    sizes = ", ".join(f"{split} {size} records" for split, size in found.records.items())
    rows = ", ".join(f"{split} {size}" for split, size in found.rows.items())
    minutes, seconds = divmod(round(found.seconds), 60)
    typer.echo(plan.config)
    typer.echo(f"data        {sizes}; rows: {rows}")
    typer.echo(f"model       {found.num_parameters:,} parameters")
    typer.echo(f"steps       {found.num_steps}, dev is scored {found.num_evaluations} times")
    typer.echo(
        f"time        about {minutes}:{seconds:02} ({found.seconds_a_step:.3f} s a step, {found.num_timed} timed)"
    )
    on_gpu = f", {found.peak_gpu_memory / 2**30:.2f} GiB of the GPU" if found.peak_gpu_memory else ""
    typer.echo(f"memory      {found.peak_memory / 2**30:.2f} GiB{on_gpu} at most so far, a worker")
    typer.echo(f"results in  {plan.folder}, and in MLflow's experiment train")


def _end(result: Result, commands: list[str], as_json: bool) -> None:
    if as_json:
        facts = {"name": result.name, "experiment": result.experiment, "is_finished": result.is_finished}
        best = {"metric": result.best[0], "score": result.best[1]} if result.best else None
        print_json({**facts, "best": best, "folder": result.folder, "log": result.log, "waiting": result.waiting})
    else:
        typer.echo(f"\n{result.name}: in {result.folder}, and in MLflow; what others said is in {result.log}")
        if result.waiting:
            typer.echo(f"MLflow was away: what it lacks waits in {result.waiting}, `dice-ray runs` sends it.")
        if result.is_finished:
            print_next(commands)
        else:
            typer.echo(f"It was interrupted. To go on:\n  dice-ray tune --resume {result.name}")
    if not result.is_finished:
        raise typer.Exit(130)


def _show_points(preset: str, space: str) -> None:
    """What was published for a preset, and what of it the space does not search."""
    from dice_ray import api

    points = api.published_points(preset, space)
    typer.echo(f"Begins with {len(points)} published settings; left out, since {space} does not search it:")
    for number, point in enumerate(points, start=1):
        left_out = ", ".join(f"{path}={value}" for path, value in point.left_out.items())
        typer.echo(f"  {number} {point.params['loss']}: {left_out or 'nothing'}")


COMMANDS: dict[str, Callable[..., None]] = {
    "train": train,
    "predict": predict,
    "evaluate": evaluate,
    "export": export,
    "tune": tune,
    "ablate": ablate,
    "report": report,
    "export-preset": export_preset,
    "runs": runs,
    "ui": ui,
    "init": init,
    "inspect": inspect,
    "list": list_names,
    "losses": losses,
    "cache": cache,
    "validate": validate,
}
"""In the order of the help."""
for name, command in COMMANDS.items():
    app.command(name)(command)


def main() -> None:
    """Run the command line; a user's mistake exits with 2, a run that failed with 1; a traceback only with --debug."""
    arguments = [argument for argument in sys.argv[1:] if argument not in ("--debug", "-v", "--verbose")]
    if {"-v", "--verbose"} & set(sys.argv[1:]):
        os.environ["DICE_RAY_VERBOSE"] = "1"
    try:
        app(args=arguments)
    except (DiceRayError, OSError) as error:
        if "--debug" in sys.argv[1:]:
            raise
        typer.echo(f"dice-ray: {error}", err=True)
        sys.exit(2 if isinstance(error, ValueError | LookupError | ImportError) else 1)
