"""The registered losses as rows of a table, like the paper's Table 2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from dice_ray.losses import LossConfig
from dice_ray.losses.base import Group, LossBranch
from dice_ray.losses.custom import CustomConfig
from dice_ray.losses.dice import ScopedConfig, SetConfig
from dice_ray.settings import Branch, branches_of
from dice_ray.terms import Link


@dataclass(frozen=True)
class LossRow:
    """One registered loss; each of `parameters` is a name with its default, `allowed` has their allowed values."""

    name: str
    group: Group
    formula: str
    parameters: tuple[str, ...]
    scope: str
    links: tuple[Link, ...]
    source: str
    section: str
    use: str
    allowed: tuple[str, ...]


def rows() -> list[LossRow]:
    """Every registered loss, in the order of the registry."""
    table = []
    for branch in branches_of(LossConfig).values():
        assert issubclass(branch, LossBranch)
        parameters = dict(_parameters(branch))
        table.append(
            LossRow(
                branch.name,
                branch.group,
                branch.formula,
                tuple(f"{name}: {_default(field)}" for name, field in parameters.items()),
                _scope(branch),
                branch.supported,
                branch.source,
                branch.section,
                branch.use,
                tuple(map(_allowed, parameters.values())),
            )
        )
    return table


def _scope(branch: type[LossBranch]) -> str:
    if branch is CustomConfig:
        return "as the target decides"
    if not issubclass(branch, SetConfig):
        return "batch" if branch.group == "ranking" else "mean over items"
    return "batch, example" if issubclass(branch, ScopedConfig) else "batch"


def _parameters(branch: type[Branch], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, field in branch.model_fields.items():
        yield f"{prefix}{name}", field
        for inner, choice in branches_of(field.annotation).items():
            yield from _parameters(choice, f"{prefix}{name}.{inner}.")


def _default(field: FieldInfo) -> str:
    if field.description:
        return field.description
    default = None if field.is_required() else field.default
    return default.name if isinstance(default, Branch) else "none" if default is None else str(default)


def _allowed(field: FieldInfo) -> str:
    """The choices of a parameter, or its type and bounds."""
    if branches := branches_of(field.annotation):
        return ", ".join(branches if field.is_required() or field.default is not None else ["none", *branches])
    if get_origin(field.annotation) is Literal:
        return ", ".join(get_args(field.annotation))
    if get_origin(field.annotation) is dict:
        return "values by name"
    bounds = [
        f"{word} {getattr(bound, name):g}"
        for bound in field.metadata
        for name, word in (("ge", "at least"), ("gt", "above"), ("le", "at most"), ("lt", "below"))
        if hasattr(bound, name)
    ]
    return " and ".join(bounds) or ("any number" if field.annotation is float else "text")
