"""The commands, their options and the functions stay: users have them in scripts."""

from __future__ import annotations

from typer.core import TyperGroup
from typer.main import get_command

import dice_ray
from dice_ray.cli.app import app

COMMANDS = {
    "dice-ray": {"--debug", "--install-completion", "--show-completion"},
    "train": {"preset", "--set", "--workers", "--gpus-per-worker", "--name", "--dry-run"},
    "predict": {"run", "file", "--out"},
    "export": {"run", "folder"},
    "evaluate": {"run", "data", "--items"},
    "tune": {
        "preset",
        "--set",
        "--space",
        "--trials",
        "--seed",
        "--seeds",
        "--top",
        "--objective",
        "--sampler",
        "--scheduler",
        "--warm-start",
        "--trial-timeout",
        "--max-hours",
        "--name",
        "--resume",
        "--address",
        "--dry-run",
        "--price-per-hour",
    },
    "ablate": {
        "study",
        "--preset",
        "--set",
        "--arm",
        "--seeds",
        "--tuned-from",
        "--trial-timeout",
        "--max-hours",
        "--name",
        "--address",
        "--dry-run",
        "--price-per-hour",
    },
    "report": {"name", "--out"},
    "export-preset": {"sweep", "file"},
    "init": {"file", "--dev", "--test", "--out", "--overwrite"},
    "inspect": {"presets", "--out", "--json"},
    "list": {"--json"},
    "losses": {"--plot", "--json"},
    "validate": {"preset", "--set"},
    "cache": {"--clear", "--json"},
}


def test_the_commands_and_their_options_stay() -> None:
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    options = {
        name: {spelling for parameter in command.params for spelling in parameter.opts + parameter.secondary_opts}
        for name, command in {"dice-ray": group, **group.commands}.items()
    }
    assert options == COMMANDS


def test_the_functions_stay() -> None:
    assert set(dice_ray.__all__) == {"ablate", "evaluate", "export", "predict", "report", "train", "tune"}
    assert all(callable(getattr(dice_ray, name)) for name in dice_ray.__all__)
