"""Commands that say what is known, by name or of a preset: list, losses, validate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dice_ray.cli.options import JsonOption, PresetArgument, SetOption
from dice_ray.cli.printing import print_json


def list_names(as_json: JsonOption = False) -> None:
    """List what can be named: presets, tasks, losses, spaces, studies."""
    from dice_ray import api

    names = api.names()
    if as_json:
        print_json(names)
        return
    for kind, known in names.items():
        typer.echo(f"{kind:8}  {' '.join(known)}")


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
        print_json([vars(row) for row in rows])
        return
    for row in rows:
        typer.echo(f"{row.name}\n    {row.formula}\n    {row.scope}; {row.source}")
        if row.parameters:
            typer.echo(f"    {'; '.join(row.parameters)}")
    if plot:
        typer.echo(f"\nDrawn: {plot}")


def validate(preset: PresetArgument, settings: SetOption = None, as_json: JsonOption = False) -> None:
    """Check a preset, and print what it resolves to with all defaults: itself a preset."""
    from dice_ray import api

    if as_json:
        print_json(api.resolved(preset, settings or []))
        return
    typer.echo(api.resolved_yaml(preset, settings or []), nl=False)
