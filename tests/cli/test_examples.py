"""The examples in the help: each is a command that the parser takes, with names and settings that exist."""

from __future__ import annotations

import shlex

import pytest
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from dice_ray import api
from dice_ray.cli.app import _COMMANDS, app

PRESET_OF_INIT = "mine.yaml"


@pytest.mark.parametrize(
    ("name", "example"),
    [(name, example) for group in _COMMANDS.values() for name, (_, *two) in group.items() for example in two],
)
def test_an_example_is_shown_whole_and_can_be_run(name: str, example: str) -> None:
    """Finds renamed options, presets and settings, and lines that the help of a terminal of 80 columns would wrap."""
    assert f" {example} " in CliRunner().invoke(app, [name, "--help"], terminal_width=80).output
    program, command, *arguments = shlex.split(example.rpartition("|")[2], comments=True)
    assert (program, command) == ("dice-ray", name)
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    given = group.commands[name].make_context(name, arguments).params
    known = api.names()
    presets = [*given.get("presets", ()), *(given.get("data") or () if name == "ablate" else ())]
    for preset in filter(None, [*presets, given.get("preset")]):
        api.validate("synthetic_pairs" if preset == PRESET_OF_INIT else preset, given.get("settings") or ())
    assert given.get("study", "mining") in known["studies"]
    assert (given.get("space") or "loss_tuning").partition(":")[0] in known["spaces"]
