"""Checks of a cluster, of MLflow and of a preset's data and encoder, without training anything."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from dice_ray.api.presets import Written, validate
from dice_ray.api.shipped import preset_of
from dice_ray.errors import RunError, counted
from dice_ray.files import runs_folder

if TYPE_CHECKING:
    from dice_ray.config.schema import RunConfig
    from dice_ray.run.cluster import Cluster
    from dice_ray.run.doctor import Check
    from dice_ray.run.tables import Preset


def doctor(preset: Preset | None = None, settings: Written = (), *, address: str | None = None) -> list[Check]:
    """Check every machine of a cluster, and MLflow; a check that fails has a `problem`, which says how to fix it.

    Args:
        preset: Name of a shipped preset, a YAML file, a table or `Tables`, whose data and encoder every machine must
            have, and for which the cluster must be large enough; only the cluster is checked where not given.
        settings: Values over it.
        address: As in `tune`.

    Raises:
        ConfigError: The preset with the settings is invalid.
        RunError: No cluster answers.
    """
    from dice_ray.output import redirected
    from dice_ray.run import cluster
    from dice_ray.run.doctor import Needs, examined
    from dice_ray.run.folder import LOG

    configs: tuple[RunConfig, ...] = ()
    if preset is not None:
        preset = preset_of(preset)
        configs = (validate(preset, settings).with_data_name(Path(preset).stem),)
    folder = runs_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="dice_ray-") as scratch:
        with cluster.started(address, log=Path(scratch) / LOG) as joined:
            checks = examined(Needs(folder, configs)) + [_size(config, joined) for config in configs]
        with redirected(Path(scratch) / LOG):
            return [*checks, _mlflow()]


def _size(config: RunConfig, joined: Cluster) -> Check:
    """Whether a trial fits on the machines."""
    from dice_ray.run.doctor import Check
    from dice_ray.tuning.resources import demand, unmeasured

    try:
        num_trials = demand(config, 1, unmeasured(config, joined.nodes)).slots(joined.nodes)
    except RunError as error:
        return Check("size", "cluster", "", f"{error}: add machines, or lower these settings")
    return Check("size", "cluster", f"{counted(num_trials, 'trial')} at once")


def _mlflow() -> Check:
    from dice_ray.run.doctor import DRIVER, Check
    from dice_ray.tracking.store import check_answers

    try:
        return Check("MLflow", DRIVER, check_answers())
    except RunError as error:
        return Check("MLflow", DRIVER, "", str(error))
