"""Addresses of the user's own code in the layers and configurations of a plan.

They are absolute from the start, since trials run in other processes and a plan may be resumed from another folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel

from dice_ray.config.load import Layer
from dice_ray.config.schema import RunConfig
from dice_ray.losses.custom import CustomConfig
from dice_ray.settings import Flat, fields
from dice_ray.user_code import absolute


@cache
def address_paths(model: type[BaseModel] = RunConfig) -> frozenset[str]:
    """The paths of settings that hold addresses of the user's own code, such as a custom loss or an own metric."""
    return frozenset(
        path for path, field in fields(model) if any(getattr(each, "func", None) is absolute for each in field.metadata)
    )


def targets_of(config: RunConfig) -> list[str]:
    """The addresses of the custom loss and of the own metric of a configuration."""
    loss = config.loss.target if isinstance(config.loss, CustomConfig) else None
    return [target for target in (loss, config.task.own_metric()) if target is not None]


def _with_absolute_addresses(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings, nested or by path, with the addresses of the user's own code made absolute."""
    located = dict(values)
    for key, value in values.items():
        if isinstance(value, Mapping):
            located[key] = _with_absolute_addresses(value, f"{prefix}{key}.")
        elif f"{prefix}{key}" in address_paths() and isinstance(value, str):
            located[key] = absolute(value)
    return located


StoredValues: TypeAlias = Annotated[Flat, AfterValidator(_with_absolute_addresses)]
StoredLayer: TypeAlias = Annotated[
    Layer, AfterValidator(lambda layer: replace(layer, values=_with_absolute_addresses(layer.values)))
]
