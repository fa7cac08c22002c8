"""The command that checks a cluster: doctor."""

from __future__ import annotations

from typing import Annotated

import typer

from dice_ray.cli.layout import table
from dice_ray.cli.options import AddressOption, JsonOption, SetOption
from dice_ray.cli.printing import print_json, print_text
from dice_ray.errors import counted


def doctor(
    preset: Annotated[
        str | None,
        typer.Argument(
            help="Preset whose data and encoder every machine must have: a name or the path of a YAML file.",
            show_default="only the cluster is checked",
        ),
    ] = None,
    settings: SetOption = None,
    address: AddressOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check every machine of a cluster and MLflow, and say how to fix what is wrong."""
    from dice_ray import api

    if settings and preset is None:
        raise typer.BadParameter("--set needs a preset")
    checks = api.doctor(preset, settings or (), address=address)
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
