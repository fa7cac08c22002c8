"""The commands with their options, defaults and help, and the functions of the package: users have them in scripts."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from typer.core import TyperGroup
from typer.main import get_command

import dice_ray
from dice_ray import api
from dice_ray.cli.app import app
from tests.golden.conftest import Golden


def _described(name: str, command: Any) -> Iterator[str]:
    yield f"{name}: {' '.join((command.help or '').split())}"
    for parameter in command.params:
        spellings = ", ".join([*parameter.opts, *parameter.secondary_opts])
        kind = parameter.type_descriptor.annotation
        rest = [f"{kind.__name__ if isinstance(kind, type) else kind}{' required' * parameter.required}"]
        shown = parameter.show_default if isinstance(parameter.show_default, str) else parameter.default
        rest += [f"default {shown}"] if shown is not None else []
        rest += [f"{bound} {value}" for bound in ("min", "max") if (value := getattr(parameter, bound)) is not None]
        yield f"    {spellings} ({', '.join(rest)}): {' '.join((parameter.help or '').split())}"


def test_command_line(golden: Golden) -> None:
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    commands = {"dice-ray": group, **group.commands}
    golden("command_line.txt", "\n".join(line for item in commands.items() for line in _described(*item)) + "\n")


def test_functions_and_names(golden: Golden) -> None:
    functions = {}
    for name in dice_ray.__all__:
        parameters = inspect.signature(getattr(dice_ray, name)).parameters.values()
        functions[name] = [str(each.replace(annotation=inspect.Parameter.empty)) for each in parameters]
    golden("names.json", {"dice_ray": functions, "shipped": api.names()})
