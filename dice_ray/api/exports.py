"""Exports of sweeps: the best trial as a preset, and all trials as an Optuna study."""

from __future__ import annotations

from pathlib import Path

from dice_ray.api import shipped
from dice_ray.errors import InputError
from dice_ray.files import runs_folder


def export_preset(sweep: str, out: Path | None = None) -> str:
    """The best configuration of a sweep as a commented preset for `train`.

    Args:
        sweep: Name of a sweep, or SWEEP/TRIAL for the configuration of one of its trials.
        out: File to write; by default the preset is printed.
    """
    from dice_ray.files import check_output, write_output
    from dice_ray.tuning.export import preset

    if out is not None:
        check_output(out)
    name, _, trial = sweep.partition("/")
    text = preset(runs_folder() / name, trial or None)
    if out is not None:
        write_output(out, text)
    return text


def export_optuna(sweep: str, file: str | Path) -> int:
    """Write a sweep as an Optuna study in an SQLite file, which optuna-dashboard opens; returns the number of trials.

    Args:
        sweep: Name of a sweep.
        file: New SQLite file to write, such as study.db.
    """
    from dice_ray.files import check_output
    from dice_ray.tuning.export import optuna_study

    if (file := Path(file)).exists():
        raise InputError(f"an Optuna study must be written to a new file, got {file}")
    check_output(file)
    shipped.folder_of("search_spaces")
    return optuna_study(runs_folder() / sweep, file)
