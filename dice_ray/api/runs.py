"""One run: trained, or rehearsed by its first steps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dice_ray import folders
from dice_ray.api import tracking
from dice_ray.api.presets import Written, validate
from dice_ray.api.results import Best, Result
from dice_ray.folders import TRAIN_EXPERIMENT, Place, runs_folder

if TYPE_CHECKING:
    from dice_ray.config.schema import RunConfig
    from dice_ray.rehearsal import Rehearsal
    from dice_ray.run.driver import Show


def train(
    preset: str | Path,
    settings: Written = (),
    *,
    name: str | None = None,
    register: str | None = None,
    show: Show | None = None,
) -> Result:
    """Fine-tune one task with one loss.

    Args:
        preset: A shipped preset's name, or a YAML file.
        settings: What is written over it.
        name: The run's name; the name of an earlier run goes on with it.
        register: The name under which its model is registered in MLflow, as the next version.
        show: Makes, on the terminal, what shows how far it is.
    """
    from dice_ray import launch, single

    tracking.check_register(register)
    config = validate(preset, settings)
    name = folders.named(name or _train_name(preset, config))
    folder = runs_folder() / name
    config = launch.resolved(folders.as_begun(config, folder))
    score = single.run(config, folder, TRAIN_EXPERIMENT, show)
    trained = Place(folder, TRAIN_EXPERIMENT, name)
    tracking.keep_best(trained, "dev", text=config.tracking.text, register=register)
    return Result(name, TRAIN_EXPERIMENT, trained=Best(name, launch.objective(config), score))


@dataclass(frozen=True)
class DryRun:
    """What `train` would do, from its first steps.

    Attributes:
        config: As YAML, defaults filled in.
        folder: Where the run would lie.
    """

    config: str
    folder: Path
    rehearsal: Rehearsal


def dry_run(preset: str | Path, settings: Written = (), *, name: str | None = None) -> DryRun:
    """Run the first steps of what `train` would run, and leave nothing behind; the arguments are those of `train`."""
    from dice_ray import launch
    from dice_ray.config.load import as_yaml
    from dice_ray.rehearsal import rehearse

    config = validate(preset, settings)
    folder = runs_folder() / folders.named(name or _train_name(preset, config))
    config = launch.resolved(folders.as_begun(config, folder))
    folders.check_config(config, folder)
    return DryRun(as_yaml(config), folder, rehearse(config))


def _train_name(preset: str | Path, config: RunConfig) -> str:
    return folders.new_name(f"{Path(preset).stem}-{config.loss.name}")
