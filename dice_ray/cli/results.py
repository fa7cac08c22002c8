"""The command on what runs left behind: report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dice_ray.cli.printing import JsonOption, print_json, print_next
from dice_ray.cli.tracking import send_waiting


def report(
    name: Annotated[str, typer.Argument(help="A sweep, a study, or `train` for the runs trained alone.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The folder to write to; else the one of the sweep or study, and none with --json."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the tables of a sweep or study and write them as text, CSV and LaTeX."""
    from dice_ray import api

    send_waiting()
    tables = api.report(name)
    if as_json:
        described = [
            {"name": each.name, "title": each.title, "rows": each.data.to_dict("records"), "notes": each.notes}
            for each in tables.tables
        ]
        written = tables.write(out) if out else []
        print_json({"title": tables.title, "tables": described, "written": written})
        return
    typer.echo(tables.text())
    typer.echo("Written:")
    for path in tables.write(out or api.report_folder(name)):
        typer.echo(f"  {path}")
    print_next(
        [
            f"dice-ray ablate loss_comparison --data {api.EMBEDDED_PRESET} --seeds 10 --name ten_seeds",
            "dice-ray tune YOUR_PRESET.yaml --space loss_tuning --trials 64",
            "dice-ray ui",
        ]
    )
