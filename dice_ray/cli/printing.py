"""What several commands print alike: JSON where it is asked for, tables, how a run ended and how to go on."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import typer

from dice_ray.errors import RunError, UnknownNameError

if TYPE_CHECKING:
    from dice_ray.api import Best, Result


def print_next(commands: list[str]) -> None:
    typer.echo("Next:")
    for command in commands:
        typer.echo(f"  {command}")


def print_json(value: Any) -> None:
    """One document on one line; a number that JSON does not have is null."""
    typer.echo(json.dumps(plain(value), ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:
    """A value as JSON has it: records as objects, whatever else as its text.

    >>> plain({"a": (1, float("nan"))})
    {'a': [1, None]}
    """
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as they must be; the last one may be as long as it likes."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        typer.echo("  ".join(cells).rstrip())


def print_end(result: Result, commands: list[str], as_json: bool) -> None:
    """Where the results are and how to go on; what was interrupted exits with 130."""
    if as_json:
        facts = {"name": result.name, "experiment": result.experiment, "is_finished": result.is_finished}
        print_json(
            {**facts, "best": _best(result), "folder": result.folder, "log": result.log, "waiting": result.waiting}
        )
    else:
        typer.echo(f"\n{result.name}: in {result.folder}, and in MLflow; what others said is in {result.log}")
        if result.waiting:
            typer.echo(f"MLflow was away: what it lacks waits in {result.waiting}, `dice-ray runs` sends it.")
        if result.is_finished:
            print_next(commands)
        else:
            typer.echo(f"It was interrupted. To go on:\n  dice-ray tune --resume {result.name}")
    if not result.is_finished:
        raise typer.Exit(130)


def _best(result: Result) -> Best | None:
    """What did best; none where the run goes on, MLflow is away, or several data sets have one each."""
    with suppress(RunError, UnknownNameError):
        return result.best if result.is_finished else None
    return None
