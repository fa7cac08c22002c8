"""Commands that train: train, tune, ablate, resume; doctor and submit, for a cluster on which they run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from typer.core import TyperGroup

from dice_ray import api
from dice_ray.cli.layout import clock, table
from dice_ray.cli.options import EVERYWHERE, Arguments, JsonOption, PriceOption, with_options_of
from dice_ray.cli.printing import print_json, print_result, print_text
from dice_ray.errors import counted

if TYPE_CHECKING:
    from dice_ray.api import Result

SUBMITTED: Final = ("train", "tune", "ablate", "resume")
"""The commands that can be submitted."""


@with_options_of("train")
def train(
    given: Arguments,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of data-parallel workers; more than one run on Ray Train.")
    ] = None,
    gpus_per_worker: Annotated[int | None, typer.Option(min=0, help="Number of GPUs of each worker.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Train one model: fine-tune an encoder on one task with one loss."""
    given["settings"] = _with_launch(given.get("settings"), workers, gpus_per_worker)
    print_result(api.train, given, as_json=as_json)


def _with_launch(settings: Sequence[str] | None, workers: int | None, gpus_per_worker: int | None) -> list[str]:
    """The settings of `--set`, and those that `--workers` and `--gpus-per-worker` stand for above them."""
    launch = {"launch.workers": workers, "launch.gpus": gpus_per_worker}
    return [*(settings or ()), *(f"{path}={value}" for path, value in launch.items() if value is not None)]


@with_options_of("tune")
def tune(given: Arguments, price_per_hour: PriceOption = None, as_json: JsonOption = False) -> None:
    """Search for the best loss and its hyperparameters: a sweep."""

    def next_commands(result: Result) -> list[list[str]]:
        # A search for several objectives has no best trial to export.
        export = [] if "objectives" in given else [["export-preset", result.name, f"{result.name}-best.yaml"]]
        return [["runs", result.name], ["report", result.name], *export]

    print_result(api.tune, given, next_commands, price_per_hour, as_json=as_json)


@with_options_of("ablate")
def ablate(given: Arguments, price_per_hour: PriceOption = None, as_json: JsonOption = False) -> None:
    """Compare the arms of an ablation study over the same seeds, on one or several data sets."""

    def next_commands(result: Result) -> list[list[str]]:
        return [["report", result.name], *_more_seeds(result, given)]

    print_result(api.ablate, given, next_commands, price_per_hour, as_json=as_json)


@with_options_of("resume")
def resume(given: Arguments, price_per_hour: PriceOption = None, as_json: JsonOption = False) -> None:
    """Continue a sweep, study or run that was interrupted, or extend a sweep that has finished."""

    def next_commands(result: Result) -> list[list[str]]:
        return [["runs", result.name], ["report", result.name], *_more_seeds(result, given)]

    print_result(api.resume, given, next_commands, price_per_hour, as_json=as_json)


def _more_seeds(result: Result, given: Arguments) -> list[list[str]]:
    """The command that would answer the question of a study, if it is open."""
    address = ["--address", given["address"]] if "address" in given else []
    return [[*words[1:], *address]] if (words := result.next_study) else []


@with_options_of("doctor")
def doctor(given: Arguments, as_json: JsonOption = False) -> None:
    """Check every machine of a cluster and MLflow, and say how to fix what is wrong."""
    if "settings" in given and "preset" not in given:
        raise typer.BadParameter("--set needs a preset")
    checks = api.doctor(**given)
    failed = [check for check in checks if check.problem]
    if as_json:
        print_json(checks)
    else:
        machines: dict[tuple[str, str, bool], list[str]] = {}
        for check in checks:
            machines.setdefault((check.name, check.found, bool(check.problem)), []).append(check.machine)
        names = list(dict.fromkeys(check.name for check in checks))
        rows = [
            (name, "failed" if is_failed else "ok", ", ".join(where), found)
            for (name, found, is_failed), where in sorted(machines.items(), key=lambda row: names.index(row[0][0]))
        ]
        typer.echo(table(("check", "result", "machines", "found"), rows))
        for check in failed:
            print_text(f"\n{check.name}, {check.machine}: {check.problem}")
        typer.echo(f"\n{counted(len(failed), 'problem')}" if failed else "\nAll is well.")
    if failed:
        raise typer.Exit(1)


def submit(
    context: typer.Context,
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND", help="train, tune, ablate or resume, with its arguments.")
    ],
    runs: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder of runs: an absolute path that all machines of the cluster see.",
            show_default="DICE_RAY_RUNS",
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Print what the job prints until it ends.")] = False,
    address: Annotated[
        str | None,
        typer.Option(
            metavar="http://HOST:8265",
            help="Address of the cluster's dashboard.",
            show_default="RAY_API_SERVER_ADDRESS, or http://127.0.0.1:8265",
        ),
    ] = None,
) -> None:
    """Run a command on a Ray cluster, where it continues when this machine is switched off."""
    kind, *arguments = command
    if kind not in SUBMITTED:
        raise typer.BadParameter(f"a job must be one of {', '.join(SUBMITTED)}, got {kind!r}")
    assert context.parent is not None
    group = context.parent.command
    assert isinstance(group, TyperGroup)
    own = [each for each in arguments if each not in EVERYWHERE]
    given = group.commands[kind].make_context(kind, own, parent=context.parent).params
    if given.get("address"):
        raise typer.BadParameter("a job runs on the cluster that it is submitted to: leave out its own --address")
    job = api.submit(
        command,
        [preset for preset in [given.get("preset"), *(given.get("data") or [])] if preset],
        _with_launch(given.get("settings"), given.get("workers"), given.get("gpus_per_worker")),
        study=given.get("study"),
        name=given["name"],
        runs=runs,
        address=address,
    )
    at = ["--address", address] if address else []
    typer.echo(f"{job.folder.name}: submitted as job {job.id}; results in {job.folder}")
    if not follow:
        typer.echo("Next:")
        for words in (["logs", job.id, "--follow"], ["list"], ["stop", job.id]):
            typer.echo(f"  {shlex.join(['ray', 'job', *words, *at])}")
        return
    try:
        ended = job.follow(lambda text: typer.echo(text, nl=False), address)
    except KeyboardInterrupt:
        stop = shlex.join(["ray", "job", "stop", job.id, *at])
        typer.echo(f"\nThe job {job.id} goes on. To stop it:\n  {stop}")
        raise typer.Exit(130) from None
    typer.echo(f"{job.id} has {ended.state} after {clock(ended.seconds)}")
    if ended.state != "succeeded":
        raise typer.Exit(ended.status or 1)
