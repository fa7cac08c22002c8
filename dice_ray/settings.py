"""Base classes of every Config: frozen, closed, finite; choices among named sections; nested and flat forms.

A choice is a union of branches, each a section with a name. It is written `loss: focal` or `loss: {focal: {gamma: 2}}`;
the layers of a configuration (preset, `--set`, arm, trial) are merged as written, and defaults are filled in once, when
the merged layer is validated. Merging validated sections instead would turn the defaults of a lower layer into values.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Final, TypeAlias, TypeGuard, Union, get_args, get_origin

import numpy as np
from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError, ValidationInfo, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from dice_ray.errors import ConfigError, Problem, nearest, num_items, shown

Nested: TypeAlias = dict[str, Any]
"""A layer or a configuration, nested as in YAML; a choice is a mapping with the branch as its only key."""
# Dots, since Ray splits names at `/` and then loses some (seen in 2.60.0). The branch is part of the name, since Optuna
# refuses a name with two kinds of distribution, and silently mixes two ranges (seen in 5.0.0).
Flat: TypeAlias = dict[str, Any]
"""The same by dotted paths: `loss` is `focal`, `loss.focal.gamma` is 2."""

_MAX_DEPTH: Final = 50
"""Deeper than any setting, and far from Python's limit of recursion."""
_MAX_ITEMS: Final = 100_000
"""More than any setting holds: the weights of some thousand classes, or the settings of some thousand arms."""


class Settings(BaseModel):
    """A section of the configuration: frozen, with unknown keys, infinite numbers and booleans for numbers refused."""

    # pydantic's defaults would accept `lr: inf`, and would take `true` for 1.0 (`_no_boolean_for_a_number`).
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_boolean_for_a_number(cls, value: object, info: ValidationInfo) -> object:
        assert info.field_name is not None
        annotation = cls.model_fields[info.field_name].annotation
        leaves = _leaf_types(annotation)
        takes_any = bool in leaves or Any in leaves
        if not any(map(_is_section, leaves)) and not takes_any and _holds_boolean(value):
            raise PydanticCustomError(
                "boolean", "must not be true or false (quote YAML's words for them, such as 'no')"
            )
        return value


class Branch(Settings):
    """A section that can be chosen by its name."""

    name: ClassVar[str]


class Choice:
    """Marks a union of branches, `Annotated[DiceConfig | FocalConfig, Choice()]`; written `focal` or `{focal: {}}`."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        branches = branches_of(source)
        assert branches, f"{source} is not a union of branches"
        union = core_schema.tagged_union_schema(
            choices={
                name: core_schema.no_info_before_validator_function(itemgetter(name), handler(branch))
                for name, branch in branches.items()
            },
            discriminator=lambda value: next(iter(value)),
        )
        return core_schema.no_info_before_validator_function(lambda value: _one_branch(value, branches), union)


def branches_of(annotation: Any) -> dict[str, type[Branch]]:
    """The branches by name if the annotation is a choice, optional or not; else empty."""
    members = [member for member in _union_members(annotation) if member is not NoneType]
    if members and all(isinstance(member, type) and issubclass(member, Branch) for member in members):
        return {member.name: member for member in members}
    return {}


def without_numpy(value: Any) -> Any:
    """A value with the scalars of NumPy, also as keys, replaced by those of Python, which plans and commands can hold.

    >>> without_numpy({"training.epochs": np.int64(2), "loss": "dice"})
    {'training.epochs': 2, 'loss': 'dice'}
    """
    if isinstance(value, Mapping):
        return {without_numpy(key): without_numpy(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return (list if isinstance(value, list) else tuple)(map(without_numpy, value))
    return value.item() if isinstance(value, np.generic) else value


def nest(flat: Mapping[str, Any]) -> Nested:
    """Nest dotted paths; the name of a branch and its keys are joined, in any order. NumPy's scalars become Python's.

    >>> nest({"loss": "focal", "loss.focal.gamma": 2, "training.lr": 0.1})
    {'loss': {'focal': {'gamma': 2}}, 'training': {'lr': 0.1}}

    Raises:
        ConfigError: A path or value is nested deeper than any setting, where Python's recursion would fail; it holds
            more than any setting; or it has half a surrogate pair, which could not be stored.
    """
    if refused := [Problem(path, must, shown(flat[path])) for path in flat if (must := _refused(path, flat[path]))]:
        raise ConfigError(refused)
    joined: Nested = {}
    for path, value in without_numpy(flat).items():
        for key in reversed(path.split(".")):
            value = {key: value}
        joined = _joined(joined, value)
    return joined


def merge(model: type[Settings], base: Nested, layer: Nested) -> Nested:
    """Merge a layer into a lower one: it merges into the same branch and into a mapping, such as class weights by name,
    and replaces another branch or a value.

    Unknown keys and malformed choices are kept; validating the result reports them with their path.
    """
    merged = dict(base)
    for key, value in layer.items():
        field = model.model_fields.get(key)
        annotation = field.annotation if field else None
        if branches := branches_of(annotation):
            merged[key] = _merged_choice(branches, base.get(key), value)
        elif _is_section(annotation) and isinstance(value, Mapping):
            below = base.get(key)
            merged[key] = merge(annotation, below if isinstance(below, dict) else {}, dict(value))
        elif isinstance(value, Mapping) and isinstance(below := base.get(key), Mapping):
            merged[key] = {**below, **value}
        else:
            merged[key] = value
    return merged


def nested(config: Settings) -> Nested:
    """A validated section as plain values, with a choice as a mapping of one key."""
    return {key: _plain(getattr(config, key)) for key in type(config).model_fields}


def flat(config: Settings) -> Flat:
    """A validated section by dotted paths; a choice has the branch name as value and as part of the paths below it."""
    return dict(_flat_items(config, ""))


def differing_paths(one: Settings, other: Settings) -> list[str]:
    """The sorted paths at which two validated sections differ."""
    first, second = flat(one), flat(other)
    return sorted(path for path in {*first, *second} if first.get(path) != second.get(path))


def non_defaults(config: Settings) -> Flat:
    """The values of a validated section that are not defaults, by dotted paths.

    They do not depend on how a value was written, and do not change when a key with a default is added to the section.
    """
    return dict(_flat_items(config, "", with_defaults=False))


def paths(model: type[BaseModel]) -> list[str]:
    """Every path of the model, including those inside all branches."""
    return [path for path, _ in fields(model)]


def defaults(model: type[BaseModel]) -> Flat:
    """The default of every path that has one which depends on no other value."""
    values = {path: field.default for path, field in fields(model) if not field.is_required()}
    return {path: value.name if isinstance(value, Branch) else _plain(value) for path, value in values.items()}


def fields(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every path of the model, with its field."""
    for key, field in model.model_fields.items():
        path = f"{prefix}{key}"
        yield path, field
        for name, branch in branches_of(field.annotation).items():
            yield from fields(branch, f"{path}.{name}.")
        if _is_section(field.annotation):
            yield from fields(field.annotation, f"{path}.")


def problems_of(error: ValidationError, model: type[BaseModel]) -> list[Problem]:
    """A pydantic error as problems: path, what must hold, what was given, the nearest name, the allowed ones."""
    known = paths(model)
    several = {path for path, field in fields(model) if _has_several_types(field.annotation)}
    problems, of_several = list[Problem](), dict[str, list[Problem]]()
    for detail in error.errors():
        path, is_of_several = _path(detail["loc"], several)
        match detail["type"]:
            case "default_factory_not_called":  # the default depends on another value of the section, which is invalid
                continue
            case "extra_forbidden":
                section = path.rpartition(".")[0]
                siblings = [key for parent, _, key in (other.rpartition(".") for other in known) if parent == section]
                suggestion = _suggestion(path, siblings, known)
                problem = Problem(path, "is not a key", suggestion=suggestion, known=tuple(siblings))
            case "branch":
                got, unknown, branches = itemgetter("got", "unknown", "known")(detail["ctx"])
                suggestion = _suggestion(f"{path}.{unknown}", branches, known) if unknown else None
                must = "must be one of the known names"
                problem = Problem(path, must, got, suggestion=suggestion, known=tuple(branches))
            case "missing":
                problem = Problem(path, "must be given")
            case "literal_error":
                known_values = re.findall("'([^']*)'", detail["ctx"]["expected"])
                must = detail["msg"].replace("Input should", "must")
                got = detail["input"]
                problem = Problem(path, must, shown(got), suggestion=nearest(str(got), known_values))
            case "string_type" if detail["loc"][-1] == "[key]" and isinstance(got := detail["input"], int | float):
                problem = _not_a_text_as_key(_path(detail["loc"][:-2], several)[0], got)
            case "string_type" if isinstance(got := detail["input"], int | float):
                must = f"must be a text: write the number in quotes (after --set, \"{path}='{got}'\")"
                problem = Problem(path, must, shown(got))
            case "model_type":
                must = "must be a section with keys, or be left out"
                problem = Problem(path, must, shown(detail["input"]))
            case _:
                must = detail["msg"].removeprefix("Value error, ").replace("Input should", "must")
                problem = Problem(path, must[:1].lower() + must[1:], shown(detail["input"]))
        (of_several.setdefault(is_of_several, []) if is_of_several else problems).append(problem)
    return problems + [each for found in of_several.values() for each in _of_one_value(found)]


def _path(place: Sequence[str | int], several: Collection[str]) -> tuple[str, str]:
    """The path of a problem, and if it is of a setting with several types, that setting.

    Pydantic puts the name of the type below such a setting, which is no part of its path.
    """
    parts = [str(part) for part in place]
    for number in range(1, len(parts)):
        if (path := ".".join(parts[:number])) in several:
            return ".".join([*parts[:number], *parts[number + 1 :]]), path
    return ".".join(parts), ""


def _of_one_value(problems: Sequence[Problem]) -> list[Problem]:
    """The problems of a value that is none of the types of its setting: those within it, else one that names all."""
    path = min((each.path for each in problems), key=len)
    within = [each for each in problems if each.path != path or not each.must.startswith("must be ")]
    if within:
        return within
    must = ", or ".join([problems[0].must, *(each.must.removeprefix("must be ") for each in problems[1:])])
    return [replace(problems[0], must=must)]


def _has_several_types(annotation: Any) -> bool:
    """Whether a value is of one of several types, such as a text or a mapping; a choice has one."""
    members = [member for member in _union_members(annotation) if member is not NoneType]
    return len(members) > 1 and not branches_of(annotation)


def _not_a_text_as_key(path: str, key: float) -> Problem:
    quoted = (
        "the word in quotes, as {'yes': ...}, since YAML reads yes, no, on and off as true or false"
        if isinstance(key, bool)
        else f"the number in quotes, as {{'{key}': ...}}"
    )
    return Problem(path, f"must have texts as keys: write {quoted}", f"the key {key}")


def _refused(path: str, value: Any) -> str | None:
    """What must hold of a written value before anything walks through it, as YAML can hold itself; None if it holds."""
    if num_items(value, _MAX_ITEMS) == _MAX_ITEMS:
        return f"must hold fewer than {_MAX_ITEMS:,} values"
    depth, level, written = path.count("."), [value], [path]
    while level:
        written += [item for item in level if isinstance(item, str)]
        holders = [item for item in level if isinstance(item, Mapping | list | tuple)]
        written += [key for item in holders if isinstance(item, Mapping) for key in item if isinstance(key, str)]
        depth += bool(holders)
        if depth > _MAX_DEPTH:
            return f"must be nested at most {_MAX_DEPTH} deep"
        level = [inner for item in holders for inner in (item.values() if isinstance(item, Mapping) else item)]
    is_unicode = all(text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text) for text in written)
    return None if is_unicode else "must be text without half of a surrogate pair"


def _as_mapping(value: Any) -> Any:
    """A choice written as a name, as the mapping that it stands for; other values unchanged."""
    return {value: {}} if isinstance(value, str) else value


def _joined(below: Any, above: Any) -> Any:
    """Two written values as one: mappings key by key, the name of a branch with a mapping of it, else the later one."""
    if not isinstance(above, Mapping) and not (isinstance(above, str) and isinstance(below, Mapping)):
        return above
    first, second = _as_mapping(below), _as_mapping(above)
    if first is not None and not isinstance(first, Mapping):
        return below  # no value of a choice or section, which is refused later
    first = first or {}
    return {**first, **{key: _joined(first.get(key), value) for key, value in second.items()}}


def _is_section(annotation: Any) -> TypeGuard[type[Settings]]:
    return isinstance(annotation, type) and issubclass(annotation, Settings)


def _one_branch(value: object, branches: Mapping[str, type[Branch]]) -> Nested:
    """The mapping of one branch that a choice must be, however it was written."""
    value = {value.name: value} if isinstance(value, Branch) else _as_mapping(value)
    if isinstance(value, Mapping) and len(value) == 1 and next(iter(value)) in branches:
        ((name, body),) = value.items()
        return {name: {} if body is None else body}
    names = [str(name) for name in value] if isinstance(value, Mapping) else []
    unknown = next((name for name in names if name not in branches), "")
    if len(names) > 1 and not unknown:
        raise PydanticCustomError(
            "several", "must be one choice, and {names} are chosen", {"names": " and ".join(names)}
        )
    raise PydanticCustomError(
        "branch",
        "must be one of the known names",
        {"got": " and ".join(names) or shown(value), "unknown": unknown, "known": list(branches)},
    )


def _merged_choice(branches: Mapping[str, type[Branch]], base: object, layer: object) -> object:
    base, layer = _as_mapping(base), _as_mapping(layer)
    if isinstance(base, dict) and isinstance(layer, dict) and len(layer) == 1 and base.keys() == layer.keys():
        (name,) = layer
        below, above = base[name] or {}, layer[name] or {}
        if name in branches and isinstance(below, dict) and isinstance(above, dict):
            return {name: merge(branches[name], below, above)}
    return layer


def _flat_items(config: Settings, prefix: str, *, with_defaults: bool = True) -> Iterator[tuple[str, Any]]:
    previous: dict[str, Any] = {}  # the fields before, from which a default may be derived
    for key, field in type(config).model_fields.items():
        value, path = getattr(config, key), f"{prefix}{key}"
        is_default = value == field.get_default(call_default_factory=True, validated_data=previous)
        previous[key] = value
        if is_default and not with_defaults:
            continue
        if isinstance(value, Branch):
            yield path, value.name
            yield from _flat_items(value, f"{path}.{value.name}.", with_defaults=with_defaults)
        elif isinstance(value, Settings):
            yield from _flat_items(value, f"{path}.", with_defaults=with_defaults)
        else:
            yield path, _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Branch):
        return {value.name: nested(value)}
    if isinstance(value, Settings):
        return nested(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _union_members(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Annotated:
        return _union_members(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [leaf for member in get_args(annotation) for leaf in _union_members(member)]
    return [annotation]


def _leaf_types(annotation: Any) -> set[Any]:
    """The types of the values that an annotation admits, those inside of containers and literals included."""
    leaves: set[Any] = set()
    for member in _union_members(annotation):
        inside = [arg for arg in get_args(member) if arg is not Ellipsis]
        leaves |= {type(arg) if isinstance(arg, bool) else arg for arg in inside} if inside else {member}
    return leaves


def _holds_boolean(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(_holds_boolean(item) for item in value.values())
    if isinstance(value, list | tuple):
        return any(_holds_boolean(item) for item in value)
    return isinstance(value, bool | np.bool_)


def _suggestion(path: str, siblings: list[str], known: list[str]) -> str | None:
    """The path that was probably meant: a sibling of similar spelling, else the same key elsewhere, else any path."""
    parent, _, key = path.rpartition(".")
    if sibling := nearest(key, siblings):
        return f"{parent}.{sibling}" if parent else sibling
    head = path.partition(".")[0]
    elsewhere = [other for other in known if other.rpartition(".")[2] == key]
    elsewhere.sort(key=lambda other: (not other.startswith(f"{head}."), other.count(".")))
    return elsewhere[0] if elsewhere else nearest(path, known)
