"""What several commands print alike: JSON where it is asked for, and the commands to go on with."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def print_next(commands: list[str]) -> None:
    typer.echo("Next:")
    for command in commands:
        typer.echo(f"  {command}")


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False))
