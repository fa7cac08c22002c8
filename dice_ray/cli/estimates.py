"""What a dry run prints: what would run, and what it would take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from dice_ray.cli.printing import plain, print_json

if TYPE_CHECKING:
    from dice_ray.api import DryRun
    from dice_ray.run.rehearsal import Rehearsal
    from dice_ray.tuning.estimate import Estimate


def print_dry_run(plan: DryRun, *, as_json: bool) -> None:
    """The configuration, and what a run of it would take."""
    if as_json:
        print_json(plan)
        return
    found = plan.rehearsal
    sizes = ", ".join(f"{split} {size} records" for split, size in found.records.items())
    rows = ", ".join(f"{split} {size}" for split, size in found.rows.items())
    typer.echo(plan.config)
    typer.echo(f"data        {sizes}; rows: {rows}")
    typer.echo(f"model       {found.num_parameters:,} parameters")
    typer.echo(f"steps       {found.num_steps}, dev is scored {found.num_evaluations} times")
    typer.echo(
        f"time        about {_clock(found.seconds)} ({found.seconds_a_step:.3f} s a step, {found.num_timed} timed)"
    )
    typer.echo(f"memory      {_gib(found.peak_memory)}{_on_gpu(found)} at most so far, a worker")
    typer.echo(f"results in  {plan.folder}, and in MLflow's experiment train")


def print_estimate(found: Estimate, price_per_hour: float | None, *, as_json: bool) -> None:
    """The plan, and what it would take."""
    cost = None if price_per_hour is None else found.seconds / 3600 * price_per_hour
    if as_json:
        print_json({**plain(found), "cost": cost})
        return
    one, needs = found.rehearsal, found.needs
    ended = f", {found.num_ended} have ended" if found.num_ended else ""
    gpus = f" and {needs.gpus} GPUs" if needs.gpus else ""
    workers = f" ({needs.num_workers} workers)" if needs.num_workers else ""
    most = "at most about" if found.stops_early else "about"
    each = f"{_clock(one.seconds)} each, {one.num_steps} steps of {one.seconds_a_step:.3f} s, {one.num_timed} timed"
    typer.echo(found.plan)
    typer.echo(f"runs        {found.num_runs}{ended}")
    typer.echo(f"at once     {found.num_at_once}, each with {needs.cpus} CPUs{gpus}{workers}")
    typer.echo(f"time        {most} {_clock(found.seconds)} ({each})")
    one_process = f"{_gib(one.peak_memory)} a process{_on_gpu(one)}"
    typer.echo(f"memory      {_gib(found.memory)} of {_gib(found.free_memory)} ({one_process})")
    typer.echo(f"disk        {_gib(found.disk)} of {_gib(found.free_disk)}")
    if cost is not None:
        typer.echo(f"cost        {most} {cost:.2f} at {price_per_hour:g} an hour")
    typer.echo(f"results in  {found.folder}, and in MLflow's experiment {found.folder.name} in {found.store}")
    for note in found.notes:
        typer.echo(note)


def _on_gpu(one: Rehearsal) -> str:
    return f", {_gib(one.peak_gpu_memory)} of a GPU" if one.peak_gpu_memory else ""


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _gib(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"
