"""The command that trains one run: train."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from dice_ray.cli.options import (
    DryRunOption,
    JsonOption,
    NoteOption,
    PresetArgument,
    RegisterOption,
    SetOption,
    TagOption,
    tags_of,
)
from dice_ray.cli.printing import print_dry_run, print_result


def train(
    preset: PresetArgument,
    settings: SetOption = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of data-parallel workers; more than one run on Ray Train.")
    ] = None,
    gpus_per_worker: Annotated[int | None, typer.Option(min=0, help="Number of GPUs of each worker.")] = None,
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of the run; an earlier run of this name is resumed.", show_default="made from the preset"
        ),
    ] = None,
    register: RegisterOption = None,
    note: NoteOption = None,
    tag: TagOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Train one model: fine-tune an encoder on one task with one loss."""
    from dice_ray import api
    from dice_ray.cli.screen import TerminalScreen

    work = partial(
        api.train,
        preset,
        with_launch(settings, workers, gpus_per_worker),
        name=name,
        register=register,
        note=note,
        tags=tags_of(tag),
        dry_run=dry_run,
        show=None if as_json else TerminalScreen,
    )
    if dry_run:
        plan = work().rehearsal
        assert plan is not None
        print_dry_run(plan, as_json=as_json)
    else:
        print_result(work, resume_with={"--register": register}, as_json=as_json)


def with_launch(settings: Sequence[str] | None, workers: int | None, gpus_per_worker: int | None) -> list[str]:
    """The settings of `--set`, and those that `--workers` and `--gpus-per-worker` stand for above them."""
    launch = {"launch.workers": workers, "launch.gpus": gpus_per_worker}
    return [*(settings or ()), *(f"{path}={value}" for path, value in launch.items() if value is not None)]
