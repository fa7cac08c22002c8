"""The command that trains one run."""

from __future__ import annotations

from typing import Annotated

import typer

from dice_ray.cli.estimates import print_dry_run
from dice_ray.cli.options import DryRunOption, JsonOption, PresetArgument, RegisterOption, SetOption
from dice_ray.cli.printing import print_end


def train(
    preset: PresetArgument,
    settings: SetOption = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Data-parallel workers; more than one on Ray Train.")
    ] = None,
    gpus_per_worker: Annotated[int | None, typer.Option(min=0, help="GPUs of each worker.")] = None,
    name: Annotated[str | None, typer.Option(help="The run's name; that of an earlier run goes on with it.")] = None,
    register: RegisterOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Fine-tune one task with one loss."""
    from dice_ray import api
    from dice_ray.cli.screen import TrainScreen

    launch = {"launch.workers": workers, "launch.gpus": gpus_per_worker}
    settings = [*(settings or []), *(f"{path}={value}" for path, value in launch.items() if value is not None)]
    if dry_run:
        print_dry_run(api.dry_run(preset, settings, name=name), as_json=as_json)
        return
    result = api.train(preset, settings, name=name, register=register, show=None if as_json else TrainScreen)
    if not as_json:
        typer.echo(f"\n{result.name}: best {result.best.metric} {result.best.score:.4f}")
    commands = (f"evaluate {result.name} test", f"predict {result.name} FILE", "report train")
    print_end(result, [f"dice-ray {command}" for command in commands], as_json)
