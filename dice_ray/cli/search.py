"""Commands that train: train, tune, ablate, and resume, which continues what was interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dice_ray import api
from dice_ray.cli.options import Arguments, JsonOption, PriceOption, with_options_of
from dice_ray.cli.printing import print_dry_run, print_result, print_text

if TYPE_CHECKING:
    from dice_ray.api import Result


@with_options_of("train")
def train(
    given: Arguments,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of data-parallel workers; more than one run on Ray Train.")
    ] = None,
    gpus_per_worker: Annotated[int | None, typer.Option(min=0, help="Number of GPUs of each worker.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Train one model: fine-tune an encoder on one task with one loss."""
    given["settings"] = with_launch(given.get("settings"), workers, gpus_per_worker)
    if given["dry_run"]:
        plan = api.train(**given).rehearsal
        assert plan is not None
        print_dry_run(plan, as_json=as_json)
    else:
        print_result(api.train, given, as_json=as_json)


def with_launch(settings: Sequence[str] | None, workers: int | None, gpus_per_worker: int | None) -> list[str]:
    """The settings of `--set`, and those that `--workers` and `--gpus-per-worker` stand for above them."""
    launch = {"launch.workers": workers, "launch.gpus": gpus_per_worker}
    return [*(settings or ()), *(f"{path}={value}" for path, value in launch.items() if value is not None)]


@with_options_of("tune")
def tune(given: Arguments, price_per_hour: PriceOption = None, as_json: JsonOption = False) -> None:
    """Search for the best loss and its hyperparameters: a sweep."""
    if given.get("warm_start") == api.PUBLISHED and not as_json:
        _print_published(given["preset"], given["space"])

    def next_commands(result: Result) -> list[list[str]]:
        # A search for several objectives has no best trial to export.
        export = [] if "objectives" in given else [["export-preset", result.name, f"{result.name}.yaml"]]
        return [["runs", result.name], ["report", result.name], *export]

    print_result(api.tune, given, next_commands, price_per_hour, as_json=as_json)


def _print_published(preset: str, space: str) -> None:
    """Print the published settings that the sweep starts from, and the values of theirs that it cannot take over."""
    points = api.published_points(preset, space)
    print_text(
        f"The first trials are the preset's own settings and {len(points)} published ones. "
        f"Published values that the space {space} does not search are left out:"
    )
    for number, point in enumerate(points, start=1):
        left_out = ", ".join(f"{path}={value}" for path, value in point.left_out.items())
        print_text(f"  {number} {point.params['loss']}: {left_out or 'nothing'}")


@with_options_of("ablate")
def ablate(given: Arguments, price_per_hour: PriceOption = None, as_json: JsonOption = False) -> None:
    """Compare the arms of an ablation study over the same seeds, on one or several data sets."""

    def next_commands(result: Result) -> list[list[str]]:
        return [["report", result.name], *_more_seeds(result, given)]

    print_result(api.ablate, given, next_commands, price_per_hour, as_json=as_json)


@with_options_of("resume")
def resume(given: Arguments, price_per_hour: PriceOption = None, as_json: JsonOption = False) -> None:
    """Continue a sweep, study or run that was interrupted, or extend a sweep that has finished."""

    def next_commands(result: Result) -> list[list[str]]:
        return [["runs", result.name], ["report", result.name], *_more_seeds(result, given)]

    print_result(api.resume, given, next_commands, price_per_hour, as_json=as_json)


def _more_seeds(result: Result, given: Arguments) -> list[list[str]]:
    """The command that would answer the question of a study, if it is open."""
    address = ["--address", given["address"]] if "address" in given else []
    return [[*words[1:], *address]] if (words := result.next_study) else []
