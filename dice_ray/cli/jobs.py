"""Commands on jobs, which run on a cluster: submit, jobs, stop."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from dice_ray.cli.layout import clock, table
from dice_ray.cli.options import JsonOption
from dice_ray.cli.printing import print_commands, print_json, print_text
from dice_ray.cli.train import with_launch
from dice_ray.errors import cut

CAN_BE_SUBMITTED = ("train", "tune", "ablate", "resume")

AddressOption = Annotated[
    str | None,
    typer.Option(
        metavar="http://HOST:8265",
        help="Address of the cluster's dashboard.",
        show_default="RAY_API_SERVER_ADDRESS, or http://127.0.0.1:8265",
    ),
]


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
    address: AddressOption = None,
) -> None:
    """Run a command on a Ray cluster, where it continues when this machine is switched off."""
    from dice_ray import api

    kind, *arguments = command
    if kind not in CAN_BE_SUBMITTED:
        raise typer.BadParameter(f"a job must be one of {', '.join(CAN_BE_SUBMITTED)}, got {kind!r}")
    assert context.parent is not None
    group = context.parent.command
    assert isinstance(group, TyperGroup)
    given = group.commands[kind].make_context(kind, arguments, parent=context.parent).params
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
    typer.echo(f"{job.run}: submitted as job {job.id}; results in {job.folder}")
    if not follow:
        print_commands("Next:", ["jobs", *at], ["stop", job.id, *at])
        typer.echo(f"  {shlex.join(['ray', 'job', 'logs', job.id, '--follow', *at])}")
        return
    try:
        ended = api.follow_job(job.id, lambda text: typer.echo(text, nl=False), address)
    except KeyboardInterrupt:
        print_commands(f"\nThe job {job.id} goes on. To stop it:", ["stop", job.id, *at])
        raise typer.Exit(130) from None
    typer.echo(f"{job.id} has {ended.state} after {clock(ended.seconds)}")
    if ended.state != "succeeded":
        raise typer.Exit(ended.status or 1)


def jobs(address: AddressOption = None, as_json: JsonOption = False) -> None:
    """List the jobs of dice_ray on a Ray cluster, the last one first."""
    from dice_ray import api

    found = api.jobs(address)
    if as_json:
        print_json(found)
        return
    rows = [
        (job.id, job.state, shlex.join(job.command), job.started.replace("T", " ")[:16], clock(job.seconds))
        for job in found
    ]
    typer.echo(table(("job", "state", "command", "started (UTC)", "time"), rows, (False, False, False, False, True)))
    for job in found:
        if lines := job.reason.splitlines():  # the first one, and the last one of the output behind it
            print_text(cut(f"{job.id}: {' '.join(dict.fromkeys((lines[0], lines[-1].strip())))}"))


def stop(
    job: Annotated[str, typer.Argument(help="Id of a job (see `dice-ray jobs`), or the name of its run.")],
    address: AddressOption = None,
) -> None:
    """Stop a job on a Ray cluster such that it can be continued."""
    from dice_ray import api

    stopped = api.stop_job(job, address)
    typer.echo(f"{stopped.id} has {stopped.state} after {clock(stopped.seconds)}; results in {stopped.folder}")
    at = ["--address", address] if address else []
    if stopped.state != "succeeded":
        again = ["submit", "--runs", str(stopped.runs), *at, "--", *stopped.command]
        print_commands("To continue:", again)
