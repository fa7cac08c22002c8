"""The command on what runs left behind: report."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from dice_ray.cli.options import JsonOption
from dice_ray.cli.printing import print_json, print_next
from dice_ray.cli.tracking import send_waiting


def report(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Sweeps, studies, or `train` for the runs trained alone.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="The folder to write to; else the one of the sweep or study, and none with --json."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the tables of a sweep or study, of several side by side, and write them and the figures as one page."""
    from dice_ray import api

    send_waiting()
    made = api.report(*names)
    if as_json:
        rows = [each.data.astype(object).where(each.data.notna(), None).to_dict("records") for each in made.tables]
        described = [
            {"name": each.name, "title": each.title, "rows": of_table, "notes": each.notes}
            for each, of_table in zip(made.tables, rows, strict=True)
        ]
        written = api.write_report(made, names, out) if out else []
        print_json({"title": made.title, "summary": made.summary, "tables": described, "written": written})
        return
    typer.echo(made.text())
    page, *others = api.write_report(made, names, out)
    typer.echo(f"Written: {page}, and beside it {len(others)} files of its tables and figures")
    print_next([*(f"dice-ray runs {shlex.quote(name)}" for name in names), "dice-ray ui"])
