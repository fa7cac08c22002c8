"""Commands on data and configurations: init, inspect, validate, list, losses, cache."""

from __future__ import annotations

import time
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dice_ray import api
from dice_ray.cli.layout import table
from dice_ray.cli.options import Arguments, JsonOption, with_options_of
from dice_ray.cli.printing import print_commands, print_json, print_report, print_text
from dice_ray.errors import shown

if TYPE_CHECKING:
    from dice_ray.losses.table import LossRow

_SECONDS = {"h": 3600, "d": 86400, "w": 604800}


@with_options_of("init")
def init(given: Arguments, as_json: JsonOption = False) -> None:
    """Guess the format and the task of a file, and write a preset for `dice-ray train`."""
    starter, preset = api.init(**given)
    if as_json:
        print_json({"written": preset, "why": starter.why, "found": starter.inspection.plain()})
        return
    print_text(starter.text)
    typer.echo("The first records:")
    for record in starter.first:
        # Each value is cut by itself, as the labels come after the texts.
        values = ", ".join(f"{key.name}={shown(getattr(record, key.name))}" for key in fields(record) if key.repr)
        print_text(f"  {type(record).__name__}({values})")
    typer.echo(f"Written: {preset}")
    own_splits = [] if "test" in starter.inspection.splits else ["--set", "data.test_share=0.2"]
    study = ["ablate", "loss_comparison", "--data", str(preset), "--name", api.valid_name(Path(preset).stem)]
    print_commands("Next:", ["train", str(preset)], ["inspect", str(preset)], [*study, *own_splits])


@with_options_of("inspect")
def inspect(
    given: Arguments,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder to write to.",
            show_default="a folder in inspect/ of the folder of runs; with --json nothing is written",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print counts, imbalance, labels, lengths and duplicates of data sets, and write them as CSV files and a plot."""
    inspections = api.inspect(**given)
    tables = api.imbalance_report(inspections)
    if as_json:
        print_json([inspection.plain() for inspection in inspections])
    else:
        print_report(tables)
    if out is None and as_json:
        return
    written = tables.write(out or api.inspection_folder(given["presets"]))
    if not as_json:
        typer.echo("Written:")
        for path in written:
            typer.echo(f"  {path}")


@with_options_of("validate")
def validate(given: Arguments, as_json: JsonOption = False) -> None:
    """Check the settings of a preset, and print it with every default filled in: a preset too. No data are read."""
    if as_json:
        print_json(api.resolved(**given))
    else:
        typer.echo(api.resolved_yaml(**given), nl=False)


def list_names(as_json: JsonOption = False) -> None:
    """List the names of all presets, tasks, losses, search spaces and studies."""
    names, titles = api.names(), api.preset_titles()
    if as_json:
        print_json(names | {"titles": titles})
        return
    width = max(map(len, titles))
    typer.echo("presets")
    for name, title in titles.items():
        print_text(f"  {name:{width}}  {title}", hanging=width + 2)
    for kind, known in names.items():
        if kind != "presets":
            print_text(f"{kind:8}  {' '.join(known)}", hanging=10)


def losses(
    name: Annotated[str | None, typer.Argument(help="Name of a loss.", show_default="all losses are listed")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Plot the derivatives of the losses to this file (.png, .svg or .pdf).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the formulas of the losses; of one loss its parameters, their bounds, and when to use it."""
    rows = api.losses(name)
    if plot:
        api.plot_losses(plot)
    if as_json:
        print_json([vars(row) for row in rows] if name is None else vars(rows[0]))
        return
    if name is not None:
        _print_loss(rows[0])
    for group in dict.fromkeys(row.group for row in rows) if name is None else ():
        typer.echo(f"{group}:")
        for row in rows:
            if row.group == group:
                links = ", ".join(row.links)
                print_text(f"  {row.name}\n    {row.formula}\n    {row.scope}; {links}; {row.source}")
                if row.parameters:
                    print_text(f"    {'; '.join(row.parameters)}", hanging=0)
    if plot:
        typer.echo(f"\nWritten: {plot}")


def _print_loss(row: LossRow) -> None:
    section = f" (section {row.section} of the paper, arXiv 1911.02855v3)" if row.section else " (not in the paper)"
    links = f"{row.group}; {', '.join(row.links)}"
    facts = {"formula": row.formula, "source": row.source + section, "group": links, "scope": row.scope, "use": row.use}
    print_text("\n".join([row.name, *(f"  {fact:9}{text}" for fact, text in facts.items())]), hanging=9)
    if row.parameters:
        written = (parameter.partition(": ") for parameter in row.parameters)
        cells = [
            (f"loss.{row.name}.{path}", default, allowed)
            for (path, _, default), allowed in zip(written, row.allowed, strict=True)
        ]
        typer.echo("\n" + table(("parameter", "default", "allowed"), cells))


def cache(
    clear: Annotated[
        bool, typer.Option("--clear", help="Delete all entries; a run in progress can still read those it has open.")
    ] = False,
    older_than: Annotated[
        str | None,
        typer.Option(metavar="AGE", help="With --clear: delete only what was not used for this long: 30d, 12h, 2w."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List or delete the cached data sets and encoded rows that runs share."""
    unused_for = 0.0 if older_than is None else _seconds(older_than)
    if older_than is not None and not clear:
        raise typer.BadParameter("--older-than needs --clear")
    if clear:
        num_cleared = api.clear_cache(unused_for)
        if as_json:
            print_json({"folder": str(api.cache_folder()), "cleared": num_cleared})
        else:
            typer.echo(f"Cleared {num_cleared} entries from {api.cache_folder()}.")
        return
    entries = api.cached()
    if as_json:
        print_json({"folder": str(api.cache_folder()), "entries": [vars(entry) for entry in entries]})
        return
    for entry in entries:
        about = " ".join(entry.about.values()) or "(damaged)"
        rows = ", ".join(f"{split} {count}" for split, count in entry.rows.items())
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        print_text(f"{entry.kind:8}{entry.size / 1e6:9.1f} MB  used {used}  {about}: {rows}")
    total = sum(entry.size for entry in entries) / 1e6
    typer.echo(f"{len(entries)} entries, {total:.1f} MB, in {api.cache_folder()}")


def _seconds(age: str) -> float:
    """The seconds of an age such as 30d.

    >>> _seconds("12h")
    43200.0
    """
    number, unit = age[:-1], age[-1:]
    if unit not in _SECONDS or not number.replace(".", "", 1).isdecimal():
        raise typer.BadParameter(
            f"an age must be a number of hours, days or weeks, such as 12h, 30d or 2w, got {age!r}"
        )
    return float(number) * _SECONDS[unit]
