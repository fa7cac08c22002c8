"""The commands, their options and the functions stay: users have them in scripts."""

from __future__ import annotations

from typer.core import TyperGroup
from typer.main import get_command

import dice_ray
from dice_ray.cli.app import app

COMMANDS = {
    "dice-ray": {"--debug", "-v", "--verbose", "--version", "--install-completion", "--show-completion"},
    "train": {
        "preset",
        "--set",
        "--workers",
        "--gpus-per-worker",
        "--name",
        "--register",
        "--note",
        "--tag",
        "--dry-run",
        "--json",
    },
    "predict": {"run", "file", "--out", "--threshold", "--json"},
    "evaluate": {"run", "data", "--items", "--json"},
    "export": {"run", "folder", "--push", "--public", "--json"},
    "tune": {
        "preset",
        "--set",
        "--space",
        "--trials",
        "--objective",
        "--sampler",
        "--scheduler",
        "--seed",
        "--seeds",
        "--top",
        "--warm-start",
        "--trial-timeout",
        "--max-hours",
        "--name",
        "--register",
        "--note",
        "--tag",
        "--address",
        "--dry-run",
        "--price-per-hour",
        "--json",
    },
    "ablate": {
        "study",
        "--data",
        "--encoder",
        "--set",
        "--arm",
        "--seeds",
        "--tune-shared",
        "--tuned-from",
        "--trial-timeout",
        "--max-hours",
        "--name",
        "--note",
        "--tag",
        "--address",
        "--dry-run",
        "--price-per-hour",
        "--json",
    },
    "resume": {
        "name",
        "--trials",
        "--seeds",
        "--top",
        "--max-hours",
        "--register",
        "--address",
        "--dry-run",
        "--price-per-hour",
        "--json",
    },
    "doctor": {"preset", "--set", "--address", "--json"},
    "submit": {"command", "--runs", "--follow", "--address"},
    "jobs": {"--address", "--json"},
    "stop": {"job", "--address"},
    "report": {"names", "--out", "--open", "--json"},
    "export-preset": {"sweep", "file", "--json"},
    "export-optuna": {"sweep", "file", "--json"},
    "runs": {"experiment", "--json"},
    "ui": {"--port", "--host", "--allow-remote"},
    "init": {
        "--as",
        "--on-bad-row",
        "file",
        "--dev",
        "--test",
        "--text-column",
        "--label-column",
        "--id-column",
        "--positive",
        "--encoding",
        "--out",
        "--overwrite",
        "--json",
    },
    "inspect": {"presets", "--set", "--out", "--json"},
    "list": {"--json"},
    "losses": {"name", "--plot", "--json"},
    "cache": {"--clear", "--older-than", "--json"},
    "validate": {"preset", "--set", "--json"},
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
    assert set(dice_ray.__all__) == {
        "Tables",
        "ablate",
        "evaluate",
        "export",
        "predict",
        "report",
        "resume",
        "train",
        "tune",
    }
    assert all(callable(getattr(dice_ray, name)) for name in dice_ray.__all__)
    assert set(dice_ray.__all__) <= set(dir(dice_ray))
