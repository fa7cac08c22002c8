"""The registered losses as rows of a table: the paper's Table 2, and what it lacks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic.fields import FieldInfo

from dice_ray.losses import LossConfig
from dice_ray.losses.base import LossBranch
from dice_ray.losses.dice import SetConfig
from dice_ray.settings import Branch, branches_of


@dataclass(frozen=True)
class LossRow:
    """One registered loss. `parameters` hold their defaults."""

    name: str
    formula: str
    parameters: tuple[str, ...]
    scope: str
    source: str


def rows() -> list[LossRow]:
    """Every registered loss, in the order of the registry."""
    return [_row(branch) for branch in branches_of(LossConfig).values() if issubclass(branch, LossBranch)]


def _row(branch: type[LossBranch]) -> LossRow:
    scope = "mean over items"
    if issubclass(branch, SetConfig):
        scope = "batch, example" if "scope" in branch.model_fields else "batch"
    return LossRow(branch.name, branch.formula, tuple(_parameters(branch)), scope, branch.source)


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
