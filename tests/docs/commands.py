"""What is wrong with a command that a page, a script or a manifest gives, by the parsers of dice_ray and of Ray."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from dice_ray import api
from dice_ray.cli.app import app
from dice_ray.config.schema import RunConfig
from dice_ray.settings import paths
from tests.house.tree import REPOSITORY

USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
"""The base class of all errors in arguments and options, which typer does not export."""
GROUP = get_command(app)
assert isinstance(GROUP, TyperGroup)
OPTIONS_OF_ALL = {option for each in GROUP.params for option in each.opts}
COMMANDS: dict[str, Any] = dict(GROUP.commands)


def problems_of(words: Sequence[str]) -> Iterator[str]:
    """What is wrong with a command: an option or a name that does not exist, a missing or superfluous argument."""
    yield from (f"no file {word}" for word in words if word.startswith("deploy/") and not (REPOSITORY / word).exists())
    match words[0]:
        case "make":
            targets = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
            yield from (f"no target {target}" for target in words[1:] if target not in targets)
        case "ray":
            yield from _problems_of_ray(words[1:])
        case "dice-ray":
            yield from _problems_of_dice_ray(words[1:])


def _problems_of_dice_ray(words: Sequence[str]) -> Iterator[str]:
    command = COMMANDS.get(words[0])
    if command is None:
        yield f"no command {words[0]}"
        return
    try:
        given = command.make_context(words[0], list(words[1:])).params
    except USAGE_ERROR as error:
        yield str(error)
        return
    yield from _unknown_names(words[0], given)
    for setting in given.get("settings") or ():
        yield from unknown_settings(setting)


def _unknown_names(command: str, given: dict[str, Any]) -> Iterator[str]:
    """Names of presets, studies and spaces that are not shipped; files are made by the blocks before."""
    known = api.names()
    named: dict[str, list[str]] = {"presets": [], "studies": [], "spaces": []}
    if given.get("preset"):
        named["presets"] = [given["preset"]]
    if given.get("space"):
        named["spaces"] = [given["space"].partition(":")[0]]
    if command == "inspect":
        named["presets"] = given["presets"]
    if command == "ablate":
        named |= {"studies": [given["study"]], "presets": given["data"] or []}
    for kind, names in named.items():
        for name in names:
            if not name.endswith((".yaml", ".py")) and name not in known[kind]:
                yield f"no {name} among the {kind}"


def unknown_settings(text: str) -> Iterator[str]:
    path = text.partition("=")[0]
    if path not in paths(RunConfig) and not path.startswith("loss.custom.parameters."):
        yield f"no setting {path}"


def _problems_of_ray(words: Sequence[str]) -> Iterator[str]:
    import click

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray Serve's, which it imports (Ray 2.60)
        from ray.scripts.scripts import cli
    command: Any = cli
    while isinstance(command, click.Group):
        (name, *words), group = words, command
        if (command := group.commands.get(name)) is None:
            yield f"no command ray {name}"
            return
    own, separator, run = list(words), "", []
    if name == "symmetric-run" and "--" in words:
        at = own.index("--")
        own, separator, run = own[:at], "--", own[at + 1 :]
    try:
        given = command.make_context(name, own).params
        if name == "symmetric-run":  # hands what it does not know to `ray start`
            cli.commands["start"].make_context("start", list(given["ray_args_and_entrypoint"]))
    except click.UsageError as error:
        yield str(error)
    yield from problems_of(run) if separator else ()
