"""The command line: parses, calls the api, prints."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

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
RunArgument = Annotated[
    str, typer.Argument(help="A run's name, SWEEP/TRIAL, STUDY/ARM/SEED, or the path of a run's folder.")
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Write a value over the preset; repeatable.")
]
TimeoutOption = Annotated[
    float | None, typer.Option(metavar="SECONDS", help="A trial that is still running after so long has failed.")
]
HoursOption = Annotated[
    float | None, typer.Option(metavar="HOURS", help="Stop after so long; --resume, or the same command, goes on.")
]
AddressOption = Annotated[str | None, typer.Option(help="The address of a Ray cluster; else Ray runs on this machine.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback()
def options(debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False) -> None:
    """Which loss, with which settings, on my data, and is the difference real?"""


@app.command()
def train(
    preset: PresetArgument,
    settings: SetOption = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Data-parallel workers; more than one on Ray Train.")
    ] = None,
    gpus_per_worker: Annotated[int | None, typer.Option(min=0, help="GPUs of each worker.")] = None,
    name: Annotated[str | None, typer.Option(help="The run's name; that of an earlier run goes on with it.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Run a few steps, say what the whole would take, leave nothing.")
    ] = False,
) -> None:
    """Fine-tune one task with one loss."""
    from dice_ray import api
    from dice_ray.cli.screen import TrainScreen

    launch = {"launch.workers": workers, "launch.gpus": gpus_per_worker}
    settings = [*(settings or []), *(f"{path}={value}" for path, value in launch.items() if value is not None)]
    if dry_run:
        _print_dry_run(api.dry_run(preset, settings, name=name))
        return
    result = api.train(preset, settings, name=name, show=TrainScreen)
    assert result.best is not None
    metric, score = result.best
    typer.echo(f"\n{result.name}: best {metric} {score:.4f}")
    _end(
        result, f"dice-ray evaluate {result.name} test", f"dice-ray predict {result.name} FILE", "dice-ray report train"
    )


@app.command()
def predict(
    run: RunArgument,
    file: Annotated[Path, typer.Argument(help="Read as the run's data are; labels may be missing.")],
    out: Annotated[Path | None, typer.Option(help="The file to write; else it is printed.")] = None,
) -> None:
    """Predict a file with a run's best checkpoint, in the format of its task: TSV, CoNLL columns or JSON."""
    from dice_ray import api

    text = api.predict(run, file).text()
    if out is None:
        typer.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")
        typer.echo(f"Written: {out}")


@app.command()
def evaluate(
    run: RunArgument,
    data: Annotated[str, typer.Argument(help="dev, test, or a file with labels.")] = "test",
    items: Annotated[
        Path | None, typer.Option(help="Write the counts of each record here: id, tp, fp, fn, as CSV.")
    ] = None,
) -> None:
    """Score a run's best checkpoint, at a half and at the threshold that dev decided."""
    from dice_ray import api

    scored = api.evaluate(run, data, items=items)
    typer.echo(f"{run} on {data}, {len(scored.scores.items)} records:")
    for name, value in scored.scores.metrics.items():
        typer.echo(f"  {name:24} {value:.4f}")
    if scored.scores.collapsed:
        typer.echo("  It predicts one class only.")
    if not scored.is_tracked:
        typer.echo(f"MLflow holds no run {run} here: the counts of each record are not stored with it.")


@app.command()
def export(run: RunArgument, folder: Annotated[Path, typer.Argument(help="A new or empty folder.")]) -> None:
    """Write a run's best checkpoint as a plain Hugging Face folder, with its tokenizer."""
    from dice_ray import api

    name = api.export(run, folder)
    typer.echo(f"Written: {folder}, to be loaded by {name}.from_pretrained")
    if name == "AutoModel":
        typer.echo("No stock class has heads like this run's: heads.safetensors holds them, task.json their classes.")
    else:
        typer.echo("It gives the logits of the run.")


@app.command()
def tune(
    context: typer.Context,
    preset: Annotated[str | None, typer.Argument(help="A preset's name, or a YAML file of your own.")] = None,
    settings: SetOption = None,
    space: Annotated[str, typer.Option(help="A space's name, module:function or file.py:function.")] = "loss_tuning",
    trials: Annotated[
        int, typer.Option(min=1, help="How many configurations are tried; with --resume how many more, as +32.")
    ] = 16,
    sampler: Annotated[
        str, typer.Option(help="tpe, random, brute_force, or module:function that makes an Optuna sampler of a seed.")
    ] = "tpe",
    scheduler: Annotated[Literal["asha", "median", "none"], typer.Option(help="What stops trials early.")] = "asha",
    seed: Annotated[int, typer.Option(min=0, help="Of the sampler, and of every trial.")] = 0,
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
    address: AddressOption = None,
) -> None:
    """Search the loss and its settings."""
    from dice_ray import api
    from dice_ray.cli.screen import ProgressScreen

    if (preset is None) == (resume is None):
        raise typer.BadParameter("give either a preset, or --resume NAME")
    given = [
        name for name in context.params if str(context.get_parameter_source(name)) == "ParameterSource.COMMANDLINE"
    ]
    if resume is not None and (others := set(given) - {"resume", "trials", "max_hours", "address"}):
        raise typer.BadParameter(f"--resume goes on with the plan as it is: leave out {', '.join(sorted(others))}")
    if resume is not None:
        more = trials if "trials" in given else 0
        result = api.resume(resume, more_trials=more, address=address, max_hours=max_hours, show=ProgressScreen)
    else:
        assert preset is not None
        if warm_start == api.PUBLISHED:
            _show_points(preset, space)
        result = api.tune(
            preset,
            settings or [],
            space=space,
            trials=trials,
            seed=seed,
            sampler=sampler,
            scheduler=scheduler,
            warm_start=warm_start,
            trial_timeout=trial_timeout,
            max_hours=max_hours,
            name=name,
            address=address,
            show=ProgressScreen,
        )
    _end(result, f"dice-ray report {result.name}")


@app.command()
def ablate(
    study: Annotated[
        str, typer.Argument(help="A study's name (`dice-ray list`), or a Python file with ARMS, BASELINE.")
    ],
    preset: Annotated[str, typer.Option(help="A preset's name, or a YAML file of your own.")] = "synthetic_pairs",
    settings: SetOption = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds 1 to this number for every arm.")] = 3,
    trial_timeout: TimeoutOption = None,
    max_hours: HoursOption = None,
    name: Annotated[str | None, typer.Option(help="The study's name; the same again runs what is missing.")] = None,
    address: AddressOption = None,
) -> None:
    """Compare the arms of a study over the same seeds; what was run before is kept."""
    from dice_ray import api
    from dice_ray.cli.screen import ProgressScreen

    result = api.ablate(
        study,
        preset,
        settings or [],
        seeds=seeds,
        trial_timeout=trial_timeout,
        max_hours=max_hours,
        name=name,
        address=address,
        show=ProgressScreen,
    )
    _end(result, f"dice-ray report {result.name}")


@app.command()
def report(
    name: Annotated[str, typer.Argument(help="A sweep, a study, or `train` for the runs trained alone.")],
    out: Annotated[
        Path | None, typer.Option(help="The folder to write to; else the one of the sweep or study.")
    ] = None,
) -> None:
    """Print the tables of a sweep or study and write them as text, CSV and LaTeX."""
    from dice_ray import api

    tables = api.report(name)
    typer.echo(tables.text())
    typer.echo("Written:")
    for path in tables.write(out or api.report_folder(name)):
        typer.echo(f"  {path}")
    _next(
        [
            f"dice-ray ablate loss_comparison --preset {api.EMBEDDED_PRESET} --seeds 10",
            "dice-ray tune YOUR_PRESET.yaml --space loss_tuning --trials 64",
            f"mlflow ui --backend-store-uri {os.environ.get('MLFLOW_TRACKING_URI', 'sqlite:///mlflow.db')}",
        ]
    )


@app.command()
def init(
    file: Annotated[Path, typer.Argument(help="The training file, in any format that is read.")],
    dev: Annotated[Path | None, typer.Option(help="The dev file; else dev is drawn from the training file.")] = None,
    test: Annotated[Path | None, typer.Option(help="The test file; a study needs one.")] = None,
    out: Annotated[Path | None, typer.Option(help="The preset to write; else FILE's name with .yaml, here.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a preset that is there.")] = False,
) -> None:
    """Look at a file, guess how it is read and what it is for, and write a preset that `train` runs."""
    from dice_ray import api

    starter, preset = api.init(file, dev=dev, test=test, out=out, overwrite=overwrite)
    typer.echo(f"Guessed of {file}:")
    for path, reason in starter.why.items():
        typer.echo(f"  {path}: {reason}")
    typer.echo("The first records:")
    for record in starter.first:
        typer.echo(f"  {record!s:.200}")
    typer.echo(starter.imbalance)
    typer.echo(f"Written: {preset}")
    study = f"dice-ray ablate loss_comparison --preset {preset}"
    sweep = f"dice-ray tune {preset} --space loss_tuning"
    _next([f"dice-ray train {preset}", f"dice-ray inspect {preset}", study if test else sweep])


@app.command()
def inspect(
    presets: Annotated[list[str], typer.Argument(metavar="NAME...", help="Presets' names, or YAML files of your own.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The folder to write to; else one in dice_ray_runs/inspect, and none with --json."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print what data sets hold: counts, imbalance, labels, lengths, duplicates; and write it as CSV and a plot."""
    from dice_ray import api

    found = api.inspect(presets)
    tables = api.imbalance_report(found)
    if as_json:
        _print_json([data.plain() for data in found])
    else:
        typer.echo(tables.text())
    if out is None and as_json:
        return
    written = tables.write(out or api.inspection_folder(presets))
    if not as_json:
        typer.echo("Written:")
        for path in written:
            typer.echo(f"  {path}")


@app.command("list")
def list_names(as_json: JsonOption = False) -> None:
    """List what can be named: presets, tasks, losses, spaces, studies."""
    from dice_ray import api

    names = api.names()
    if as_json:
        _print_json(names)
        return
    for kind, known in names.items():
        typer.echo(f"{kind:8}  {' '.join(known)}")


@app.command()
def losses(
    plot: Annotated[Path | None, typer.Option(help="Draw their derivatives to this file, .png or .svg.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the losses: formula, parameters with their defaults, scope, source."""
    from dice_ray import api

    rows = api.losses()
    if plot:
        api.plot_losses(plot)
    if as_json:
        _print_json([vars(row) for row in rows])
        return
    for row in rows:
        typer.echo(f"{row.name}\n    {row.formula}\n    {row.scope}; {row.source}")
        if row.parameters:
            typer.echo(f"    {'; '.join(row.parameters)}")
    if plot:
        typer.echo(f"\nDrawn: {plot}")


@app.command()
def cache(
    clear: Annotated[
        bool, typer.Option("--clear", help="Delete all entries; what runs have open stays readable.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List what was read and encoded once for all runs, or clear it."""
    from dice_ray import api

    if clear:
        num_cleared = api.clear_cache()
        if as_json:
            _print_json({"folder": str(api.cache_folder()), "cleared": num_cleared})
        else:
            typer.echo(f"Cleared {num_cleared} entries from {api.cache_folder()}.")
        return
    entries = api.cached()
    if as_json:
        _print_json({"folder": str(api.cache_folder()), "entries": [vars(entry) for entry in entries]})
        return
    for entry in entries:
        about = " ".join(entry.about.values()) or "(damaged)"
        rows = ", ".join(f"{split} {count}" for split, count in entry.rows.items())
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        typer.echo(f"{entry.kind:8}{entry.size / 1e6:9.1f} MB  used {used}  {about}: {rows}")
    total = sum(entry.size for entry in entries) / 1e6
    typer.echo(f"{len(entries)} entries, {total:.1f} MB, in {api.cache_folder()}")


@app.command()
def validate(preset: PresetArgument, settings: SetOption = None) -> None:
    """Check a preset, and print what it resolves to with all defaults: itself a preset."""
    from dice_ray import api

    typer.echo(api.resolved_yaml(preset, settings or []), nl=False)


def main() -> None:
    """Run the command line; a user's mistake exits with 2, a run that failed with 1; a traceback only with --debug."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        app(args=arguments)
    except (DiceRayError, OSError) as error:
        if "--debug" in sys.argv[1:]:
            raise
        typer.echo(f"dice-ray: {error}", err=True)
        sys.exit(2 if isinstance(error, ValueError | LookupError | ImportError) else 1)


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
    typer.echo(f"memory      {found.peak_memory / 2**30:.2f} GiB at most so far, a worker")
    typer.echo(f"results in  {plan.folder}, and in MLflow's experiment train")


def _end(result: Result, *commands: str) -> None:
    typer.echo(f"\n{result.name}: in {result.folder}, and in MLflow")
    if result.is_finished:
        _next(list(commands))
    else:
        typer.echo("It was interrupted. To go on:")
        typer.echo(f"  dice-ray tune --resume {result.name}")
        raise typer.Exit(130)


def _show_points(preset: str, space: str) -> None:
    """What was published for a preset, and what of it the space does not search."""
    from dice_ray import api

    points = api.published_points(preset, space)
    typer.echo(f"Begins with {len(points)} published settings; left out, since {space} does not search it:")
    for number, point in enumerate(points, start=1):
        left_out = ", ".join(f"{path}={value}" for path, value in point.left_out.items())
        typer.echo(f"  {number} {point.params['loss']}: {left_out or 'nothing'}")


def _next(commands: list[str]) -> None:
    typer.echo("Next:")
    for command in commands:
        typer.echo(f"  {command}")


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False))
