"""What is printed of a sweep or study before it runs, and the command on what a sweep found: export-preset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dice_ray.errors import InputError

if TYPE_CHECKING:
    from dice_ray.tuning.estimate import Estimate


def export_preset(
    sweep: Annotated[str, typer.Argument(help="A sweep's name, or SWEEP/TRIAL.")],
    file: Annotated[Path | None, typer.Argument(help="The file to write; else it is printed.")] = None,
) -> None:
    """Write the best configuration of a sweep as a preset that `train` runs."""
    from dice_ray import api

    preset = api.export_preset(sweep)
    if file is None:
        typer.echo(preset, nl=False)
        return
    if file.exists() or file.suffix not in (".yaml", ".yml"):
        raise InputError(f"a preset must be written to a new file that ends in .yaml, got {file}")
    file.write_text(preset, encoding="utf-8")
    typer.echo(f"Written: {file}")


def print_estimate(found: Estimate, price_per_hour: float | None) -> None:
    """The plan, and what it would take."""
    one, needs = found.rehearsal, found.needs
    ended = f", {found.num_ended} have ended" if found.num_ended else ""
    gpus = f" and {needs.gpus} GPUs" if needs.gpus else ""
    workers = f" ({needs.num_workers} workers)" if needs.num_workers else ""
    on_gpu = f", {_gib(one.peak_gpu_memory)} of a GPU" if one.peak_gpu_memory else ""
    most = "at most about" if found.stops_early else "about"
    each = f"{_clock(one.seconds)} each, {one.num_steps} steps of {one.seconds_a_step:.3f} s, {one.num_timed} timed"
    typer.echo(found.plan)
    typer.echo(f"runs        {found.num_runs}{ended}")
    typer.echo(f"at once     {found.num_at_once}, each with {needs.cpus} CPUs{gpus}{workers}")
    typer.echo(f"time        {most} {_clock(found.seconds)} ({each})")
    typer.echo(
        f"memory      {_gib(found.memory)} of {_gib(found.free_memory)} ({_gib(one.peak_memory)} a process{on_gpu})"
    )
    typer.echo(f"disk        {_gib(found.disk)} of {_gib(found.free_disk)}")
    if price_per_hour is not None:
        typer.echo(f"cost        {most} {found.seconds / 3600 * price_per_hour:.2f} at {price_per_hour:g} an hour")
    typer.echo(f"results in  {found.folder}, and in MLflow's experiment {found.folder.name} in {found.store}")
    for note in found.notes:
        typer.echo(note)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _gib(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"
