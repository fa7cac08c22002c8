"""The command on what runs left behind: report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from dice_ray.cli.printing import print_next


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
    print_next(
        [
            f"dice-ray ablate loss_comparison --preset {api.EMBEDDED_PRESET} --seeds 10 --name ten_seeds",
            "dice-ray tune YOUR_PRESET.yaml --space loss_tuning --trials 64",
            f"mlflow ui --backend-store-uri {os.environ.get('MLFLOW_TRACKING_URI', 'sqlite:///mlflow.db')}",
        ]
    )
