"""Presets with settings over them: resolved, checked, shown with all defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from dice_ray.api import shipped

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


def layers_of(preset: str | Path, settings: Written) -> list[Layer]:
    """The preset, and a layer of settings over it."""
    from dice_ray.config.load import read_layer, set_layer, values_layer

    above = values_layer("settings", settings) if isinstance(settings, Mapping) else set_layer(settings)
    return [read_layer(shipped.preset_file(preset)), above]
