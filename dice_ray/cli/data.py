"""Commands on data: init, inspect, cache."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Annotated

import typer

from dice_ray.cli.options import JsonOption
from dice_ray.cli.printing import print_json, print_next


def init(
    file: Annotated[Path, typer.Argument(help="The training file, in any format that is read.")],
    dev: Annotated[Path | None, typer.Option(help="The dev file; else dev is drawn from the training file.")] = None,
    test: Annotated[
        Path | None, typer.Option(help="The test file; without it a study draws one with data.test_share.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The preset to write; else FILE's name with .yaml, here.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a preset that is there.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Look at a file, guess how it is read and what it is for, and write a preset that `train` runs."""
    from dice_ray import api

    starter, preset = api.init(file, dev=dev, test=test, out=out, overwrite=overwrite)
    if as_json:
        print_json({"written": preset, "why": starter.why, "found": starter.inspection.plain()})
        return
    typer.echo(f"Guessed of {file}:")
    for path, reason in starter.why.items():
        typer.echo(f"  {path}: {reason}")
    typer.echo("The first records:")
    for record in starter.first:
        typer.echo(f"  {record!s:.200}")
    typer.echo(starter.inspection.load)
    typer.echo(starter.imbalance)
    typer.echo(f"Written: {preset}")
    quoted = shlex.quote(str(preset))
    study = f"dice-ray ablate loss_comparison --data {quoted} --name {shlex.quote(Path(preset).stem)}"
    own_splits = "" if test else " --set data.test_share=0.2"
    print_next([f"dice-ray train {quoted}", f"dice-ray inspect {quoted}", f"{study}{own_splits}"])


def inspect(
    presets: Annotated[list[str], typer.Argument(metavar="NAME...", help="Presets' names, or YAML files of your own.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The folder to write to; else one in dice_ray_runs/inspect, and none with --json."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print what data sets hold: counts, imbalance, labels, lengths, duplicates; and write it as CSV and a plot."""
    from dice_ray import api

    found = api.inspect(presets)
    tables = api.imbalance_report(found)
    if as_json:
        print_json([data.plain() for data in found])
    else:
        typer.echo(tables.text())
    if out is None and as_json:
        return
    written = tables.write(out or api.inspection_folder(presets))
    if not as_json:
        typer.echo("Written:")
        for path in written:
            typer.echo(f"  {path}")


def cache(
    clear: Annotated[
        bool, typer.Option("--clear", help="Delete all entries; what runs have open stays readable.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List what was read and encoded once for all runs, or clear it."""
    from dice_ray import api

    if clear:
        num_cleared = api.clear_cache()
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
        typer.echo(f"{entry.kind:8}{entry.size / 1e6:9.1f} MB  used {used}  {about}: {rows}")
    total = sum(entry.size for entry in entries) / 1e6
    typer.echo(f"{len(entries)} entries, {total:.1f} MB, in {api.cache_folder()}")
