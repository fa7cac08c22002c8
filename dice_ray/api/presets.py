"""Presets with settings over them: resolved, checked, shown with all defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from dice_ray.api import library
from dice_ray.errors import InputError
from dice_ray.run.names import check_lists

if TYPE_CHECKING:
    from dice_ray.config.load import Layer
    from dice_ray.config.schema import RunConfig
    from dice_ray.settings import Nested

EMBEDDED_PRESET = "synthetic_pairs"

Written: TypeAlias = Mapping[str, Any] | Sequence[str]
"""Settings over a preset: {"loss.focal.gamma": 2}, or ["loss.focal.gamma=2"]."""


def validate(preset: str | Path, settings: Written = ()) -> RunConfig:
    """The configuration that a preset with these settings resolves to.

    Raises:
        ConfigError: It lists every problem.
    """
    from dice_ray.config.load import resolve

    return resolve(layers_of(preset, settings))


def resolved(preset: str | Path, settings: Written = ()) -> Nested:
    """The same as plain values, nested as in YAML, with all defaults."""
    from dice_ray.settings import nested

    return nested(validate(preset, settings))


def resolved_yaml(preset: str | Path, settings: Written = ()) -> str:
    """The same as YAML: itself a preset."""
    from dice_ray.config.load import as_yaml

    return as_yaml(validate(preset, settings))


def settings_named(key: str) -> list[str]:
    """The paths of the settings of this name, the shortest first."""
    from dice_ray.config.schema import RunConfig
    from dice_ray.settings import paths

    return sorted((path for path in paths(RunConfig) if path.rpartition(".")[2] == key), key=len)


def without_defaults(params: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run, as MLflow holds them by path, that are not defaults."""
    from dice_ray.config.schema import RunConfig
    from dice_ray.settings import defaults

    known = defaults(RunConfig)
    return {path: value for path, value in params.items() if path not in known or value != known[path]}


def layers_of(preset: str | Path, settings: Written) -> list[Layer]:
    """The preset, and a layer of settings over it.

    Settings that change the data are no longer the published data that a preset may stand for.
    """
    from dice_ray.config.load import read_layer, set_layer, values_layer

    if isinstance(settings, Mapping):
        if callable(loss := settings.get("loss")):
            raise InputError(f"a loss that is an object must be the argument `loss`, as train(..., loss={loss!r})")
        above = values_layer("settings", {str(path): value for path, value in settings.items()})
    else:
        check_lists(settings=settings)
        above = set_layer(settings)
    below = read_layer(library.preset_file(preset))
    tracked = below.values.get("tracking")
    if isinstance(tracked, Mapping) and "published" in tracked and _change_data(above.values):
        return [below, values_layer("other data", {"tracking.published": None}), above]
    return [below, above]


def _change_data(values: Nested) -> bool:
    """Whether settings name other files or splits; another folder may hold the same files."""
    data = values.get("data")
    if not isinstance(data, Mapping):
        return data is not None
    source = data.get("source", {"files": {}})
    files = source.get("files") if isinstance(source, Mapping) else None
    return data.get("test_share") is not None or not isinstance(files, Mapping) or not set(files) <= {"folder"}
