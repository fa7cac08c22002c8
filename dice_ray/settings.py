"""What every Config is made of: frozen, closed, finite; the choice among named sections; nested and flat forms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, TypeAlias, TypeGuard, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError, ValidationInfo, field_validator
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from dice_ray.errors import Problem, nearest

Nested: TypeAlias = dict[str, Any]
"""A layer or a configuration as YAML nests it; a chosen branch is a mapping of one key."""
Flat: TypeAlias = dict[str, Any]
"""The same by paths with dots: `loss` is `focal`, `loss.focal.gamma` is 2."""


class Settings(BaseModel):
    """A section of the configuration: frozen, closed to unknown keys, finite, no boolean for a number."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_boolean_for_a_number(cls, value: object, info: ValidationInfo) -> object:
        assert info.field_name is not None
        annotation = cls.model_fields[info.field_name].annotation
        leaves = _leaf_types(annotation)
        if not any(map(_is_section, leaves)) and bool not in leaves and _holds_boolean(value):
            raise PydanticCustomError("boolean", "must not be true or false (quote a word that YAML takes for one)")
        return value


class Branch(Settings):
    """A section that is one of several to choose from, by its name."""

    name: ClassVar[str]


class Choice:
    """Marks a union of branches, `Annotated[DiceConfig | FocalConfig, Choice()]`: written `focal` or `{focal: {}}`."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        branches = branches_of(source)
        assert branches, f"{source} is not a union of branches"

        def unwrap(name: str) -> Any:
            return lambda value: value[name]

        union = core_schema.tagged_union_schema(
            choices={
                name: core_schema.no_info_before_validator_function(unwrap(name), handler(branch))
                for name, branch in branches.items()
            },
            discriminator=lambda value: next(iter(value)),
        )
        return core_schema.no_info_before_validator_function(lambda value: _one_branch(value, branches), union)


def branches_of(annotation: Any) -> dict[str, type[Branch]]:
    """The branches by name if the annotation is a choice (or an optional one), else nothing."""
    members = [member for member in _union_members(annotation) if member is not NoneType]
    if members and all(isinstance(member, type) and issubclass(member, Branch) for member in members):
        return {member.name: member for member in members}
    return {}


def nest(flat: Mapping[str, Any]) -> Nested:
    """Nest paths with dots; a branch chosen by name and keys of it join, in any order.

    >>> nest({"loss": "focal", "loss.focal.gamma": 2, "training.lr": 0.1})
    {'loss': {'focal': {'gamma': 2}}, 'training': {'lr': 0.1}}
    """
    joined: Any = {}
    for path, value in flat.items():
        for key in reversed(path.split(".")):
            value = {key: value}
        joined = _joined(joined, value)
    nested: Nested = joined
    return nested


def merge(model: type[Settings], base: Nested, layer: Nested) -> Nested:
    """Lay one layer over another: the same branch merges, another branch replaces, a value replaces.

    Unknown keys and malformed choices pass through: `model` itself refuses them with their path.
    """
    merged = dict(base)
    for key, value in layer.items():
        field = model.model_fields.get(key)
        annotation = field.annotation if field else None
        if branches := branches_of(annotation):
            merged[key] = _merge_choice(branches, base.get(key), value)
        elif _is_section(annotation) and isinstance(value, Mapping):
            below = base.get(key)
            merged[key] = merge(annotation, below if isinstance(below, dict) else {}, dict(value))
        else:
            merged[key] = value
    return merged


def nested(config: Settings) -> Nested:
    """A resolved section as plain values, choices as mappings of one key."""
    return {key: _plain(getattr(config, key)) for key in type(config).model_fields}


def flat(config: Settings) -> Flat:
    """A resolved section by paths: a choice is its branch's name, and the branch is part of the paths below it."""
    return dict(_flat_items(config, ""))


def differing_paths(one: Settings, other: Settings) -> list[str]:
    """The paths at which two resolved sections differ."""
    ours, theirs = flat(one), flat(other)
    return sorted(path for path in {*ours, *theirs} if ours.get(path) != theirs.get(path))


def non_defaults(config: Settings) -> Flat:
    """What of a resolved section is not a default, by paths.

    It is the same however a value was written, and stays the same when a key with a default is added to the section.
    """
    return dict(_flat_items(config, "", with_defaults=False))


def paths(model: type[BaseModel], prefix: str = "") -> list[str]:
    """Every path that the model knows, those inside of all branches included."""
    found = []
    for key, field in model.model_fields.items():
        path = f"{prefix}{key}"
        found.append(path)
        for name, branch in branches_of(field.annotation).items():
            found += paths(branch, f"{path}.{name}.")
        if _is_section(field.annotation):
            found += paths(field.annotation, f"{path}.")
    return found


def problems_of(error: ValidationError, model: type[BaseModel]) -> list[Problem]:
    """A pydantic error as the user's problems: path, what must hold, what was got, the nearest name, the known ones."""
    known = paths(model)
    found = []
    for detail in error.errors():
        path = ".".join(str(part) for part in detail["loc"])
        match detail["type"]:
            case "default_factory_not_called":
                continue
            case "extra_forbidden":
                siblings = _siblings(path, known)
                found.append(
                    Problem(path, "is not a key", suggestion=_meant(path, siblings, known), known=tuple(siblings))
                )
            case "branch":
                context = detail["ctx"]
                found.append(
                    Problem(
                        path,
                        "must name one of its branches",
                        context["got"],
                        suggestion=_meant(f"{path}.{context['name']}", context["known"], known)
                        if context["name"]
                        else None,
                        known=tuple(context["known"]),
                    )
                )
            case "missing":
                found.append(Problem(path, "must be given"))
            case _:
                must = detail["msg"].removeprefix("Value error, ").replace("Input should", "must")
                found.append(Problem(path, must[:1].lower() + must[1:], _shown(detail["input"])))
    return found


def _joined(below: Any, above: Any) -> Any:
    """Two written values in one: mappings key by key, a name as the mapping that it opens, else the later one."""
    if not isinstance(above, Mapping) and not (isinstance(above, str) and isinstance(below, Mapping)):
        return above
    first, second = (
        value if isinstance(value, Mapping) else {value: {}} if isinstance(value, str) else {}
        for value in (below, above)
    )
    return {**first, **{key: _joined(first.get(key), value) for key, value in second.items()}}


def _is_section(annotation: Any) -> TypeGuard[type[Settings]]:
    return isinstance(annotation, type) and issubclass(annotation, Settings)


def _one_branch(value: object, branches: Mapping[str, type[Branch]]) -> Nested:
    if isinstance(value, Branch):
        value = {value.name: value}
    elif isinstance(value, str):
        value = {value: {}}
    if isinstance(value, Mapping) and len(value) == 1 and next(iter(value)) in branches:
        ((name, body),) = value.items()
        return {name: {} if body is None else body}
    names = [str(name) for name in value] if isinstance(value, Mapping) else []
    unknown = [name for name in names if name not in branches]
    raise PydanticCustomError(
        "branch",
        "must name one of its branches",
        {"got": " and ".join(names) or _shown(value), "name": unknown[0] if unknown else "", "known": list(branches)},
    )


def _merge_choice(branches: Mapping[str, type[Branch]], base: object, layer: object) -> object:
    def opened(value: object) -> object:
        return {value: {}} if isinstance(value, str) else value

    base, layer = opened(base), opened(layer)
    if not (isinstance(base, dict) and isinstance(layer, dict) and len(base) == len(layer) == 1):
        return layer
    ((old, below), (name, above)) = *base.items(), *layer.items()
    if old != name or name not in branches:
        return layer
    if not isinstance(below or {}, dict) or not isinstance(above or {}, dict):
        return layer
    return {name: merge(branches[name], below or {}, above or {})}


def _flat_items(config: Settings, prefix: str, *, with_defaults: bool = True) -> Iterator[tuple[str, Any]]:
    above: dict[str, Any] = {}
    for key, field in type(config).model_fields.items():
        value, path = getattr(config, key), f"{prefix}{key}"
        is_default = value == field.get_default(call_default_factory=True, validated_data=above)
        above[key] = value
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
    return isinstance(value, bool)


def _siblings(path: str, known: list[str]) -> list[str]:
    parent = path.rpartition(".")[0]
    return [other.rpartition(".")[2] for other in known if other.rpartition(".")[0] == parent]


def _meant(path: str, siblings: list[str], known: list[str]) -> str | None:
    """The path that was meant: a sibling spelt alike, else the same key elsewhere, else a path spelt alike."""
    parent, _, key = path.rpartition(".")
    if sibling := nearest(key, siblings):
        return f"{parent}.{sibling}" if parent else sibling
    head = path.partition(".")[0]
    elsewhere = [other for other in known if other.rpartition(".")[2] == key]
    elsewhere.sort(key=lambda other: (not other.startswith(f"{head}."), other.count(".")))
    return elsewhere[0] if elsewhere else nearest(path, known)


def _shown(value: object, width: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= width else f"{text[: width - 3]}..."
