"""The reference of all settings, made from the schema of RunConfig: path, values, default and description of each."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from dice_ray.config.schema import RunConfig
from dice_ray.settings import Branch, Settings, branches_of

MARK = "<!-- settings -->"
"""Where the page of settings holds this reference."""
BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
WORDS = {"str": "text", "int": "whole number", "float": "number", "bool": "true or false", "Any": "any value"}


def settings_reference() -> str:
    """A chapter in Markdown for each section of the configuration, with a table for it and each branch in it."""
    chapters = []
    for name, field in RunConfig.model_fields.items():
        chapters += [f"## {name}", "", *_section(field.annotation, name), ""]
    return "\n".join(chapters)


def _section(annotation: Any, path: str) -> Iterator[str]:
    """The tables of a section, or of the branches of a choice; of nested choices a heading for each branch."""
    if branches := branches_of(annotation):
        for name, branch in branches.items():
            yield from [f"### {path}.{name}", "", summary(branch), "", *_table(branch, f"{path}.{name}")]
        return
    yield from [summary(annotation), "", *_table(annotation, path)]


def _table(section: type[Settings], path: str) -> Iterator[str]:
    rows = list(rows_of(section, path))
    if not rows:
        yield from ["It has no settings.", ""]
        return
    yield from ["| setting | values | default | meaning |", "| --- | --- | --- | --- |"]
    yield from (f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in rows)
    yield ""
    for key, field in section.model_fields.items():
        below = f"{path}.{key}"
        if branches_of(field.annotation) or _is_section(field.annotation):
            yield from _section(field.annotation, below)


def rows_of(section: type[Settings], path: str) -> Iterator[tuple[str, str, str, str]]:
    """Path, values, default and description of each setting of a section."""
    descriptions = attributes(section)
    for key, field in section.model_fields.items():
        yield f"`{path}.{key}`", values(field), default(field), descriptions.get(key, "")


def summary(section: type[Settings]) -> str:
    """The docstring of a section without examples and the list of its attributes."""
    text = inspect.getdoc(section) or ""
    text = re.split(r"\n(?:Attributes:|>>>)", text)[0].strip()
    return f"`{text}`" if issubclass(section, Branch) and hasattr(section, "formula") and "\n" not in text else text


def attributes(section: type[Settings]) -> dict[str, str]:
    """The descriptions of the settings in the docstrings of a section and of the classes that it is made of."""
    found: dict[str, str] = {}
    for base in reversed(section.__mro__):
        _, _, listed = inspect.cleandoc(base.__doc__ or "").partition("Attributes:\n")
        block = re.split(r"\n(?=\S)", listed)[0]
        for name, text in re.findall(r"^    (\w+): (.*?)(?=^    \w|\Z)", block, re.DOTALL | re.MULTILINE):
            found[name] = " ".join(text.split())
    return found


def values(field: FieldInfo) -> str:
    """The values that a setting takes, in words."""
    if branches := branches_of(field.annotation):
        return "one of " + ", ".join(f"`{name}`" for name in branches)
    bounds = [
        f"{word} {getattr(item, bound):g}"
        for item in field.metadata
        for bound, word in BOUNDS.items()
        if getattr(item, bound, None) is not None
    ]
    return ", ".join([_in_words(field.annotation), *bounds])


def default(field: FieldInfo) -> str:
    """The default of a setting, or that it must be given."""
    if field.is_required():
        return "must be given"
    if field.default_factory is dict:
        return "empty"
    if field.default_factory is not None:
        return field.description or ""  # how it is derived from other settings
    value = field.default
    if isinstance(value, Branch):
        return f"`{value.name}`"
    if isinstance(value, Settings):
        return ""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str) and value.strip() != value:
        return f"`{value!r}`"
    return f"`{value}`" if value != () else "empty"


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Settings)


def _in_words(annotation: Any) -> str:
    if get_origin(annotation) is Annotated:
        return _in_words(get_args(annotation)[0])
    if _is_section(annotation):
        return "the settings below"
    inside = [arg for arg in get_args(annotation) if arg not in (types.NoneType, Ellipsis)]
    origin = get_origin(annotation)
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in inside)
    if origin in (Union, types.UnionType):
        return ", ".join(dict.fromkeys(map(_in_words, inside)))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"names with a {_in_words(inside[1])} each" if inside[1] is not Any else "names and values"
    if origin is not None and inside:
        return f"list of: {', '.join(dict.fromkeys(map(_in_words, inside)))}"
    name = getattr(annotation, "__name__", str(annotation))
    return WORDS.get(name, name)
