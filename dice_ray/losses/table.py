"""The registered losses as rows of a table, like the paper's Table 2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic.fields import FieldInfo

from dice_ray.losses import LossConfig
from dice_ray.losses.base import LossBranch
from dice_ray.losses.dice import ScopedConfig, SetConfig
from dice_ray.settings import Branch, branches_of


@dataclass(frozen=True)
class LossRow:
    """One registered loss; each of `parameters` is a name with its default."""

    name: str
    formula: str
    parameters: tuple[str, ...]
    scope: str
    source: str


def rows() -> list[LossRow]:
    """Every registered loss, in the order of the registry."""
    table = []
    for branch in branches_of(LossConfig).values():
        assert issubclass(branch, LossBranch)
        scope = "batch, example" if issubclass(branch, ScopedConfig) else "batch"
        scope = scope if issubclass(branch, SetConfig) else "mean over items"
        table.append(LossRow(branch.name, branch.formula, tuple(_parameters(branch)), scope, branch.source))
    return table


def _parameters(branch: type[Branch], prefix: str = "") -> Iterator[str]:
    for name, field in branch.model_fields.items():
        yield f"{prefix}{name}: {_default(field)}"
        for inner, choice in branches_of(field.annotation).items():
            yield from _parameters(choice, f"{prefix}{name}.{inner}.")


def _default(field: FieldInfo) -> str:
    if field.description:
        return field.description
    default = None if field.is_required() else field.default
    return default.name if isinstance(default, Branch) else "none" if default is None else str(default)
