"""Commands on a cluster: doctor checks it, submit runs a command there. Ray's own commands list and stop jobs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Final

import typer
from typer.core import TyperGroup

from dice_ray import api
from dice_ray.cli.layout import clock, table
from dice_ray.cli.options import EVERYWHERE, Arguments, JsonOption, with_options_of
from dice_ray.cli.printing import print_json, print_text
from dice_ray.cli.search import with_launch
from dice_ray.errors import counted

SUBMITTED: Final = ("train", "tune", "ablate", "resume")
"""The commands that can be submitted."""


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
        with_launch(given.get("settings"), given.get("workers"), given.get("gpus_per_worker")),
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
        ended = api.follow_job(job, lambda text: typer.echo(text, nl=False), address)
    except KeyboardInterrupt:
        stop = shlex.join(["ray", "job", "stop", job.id, *at])
        typer.echo(f"\nThe job {job.id} goes on. To stop it:\n  {stop}")
        raise typer.Exit(130) from None
    typer.echo(f"{job.id} has {ended.state} after {clock(ended.seconds)}")
    if ended.state != "succeeded":
        raise typer.Exit(ended.status or 1)
