"""The files of deploy/: what is in them as YAML, and the commands of dice_ray and Ray in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import yaml

from tests.house.tree import REPOSITORY

DEPLOY = REPOSITORY / "deploy"
MANIFESTS = sorted(file.name for file in (DEPLOY / "kuberay").iterdir())
PROGRAMS = ("dice-ray", "ray")


def manifest(name: str) -> Any:
    return yaml.safe_load((DEPLOY / "kuberay" / name).read_text(encoding="utf-8"))


def ray_up() -> Any:
    return yaml.safe_load((DEPLOY / "ray_up.yaml").read_text(encoding="utf-8"))


def skypilot() -> Any:
    return yaml.safe_load((DEPLOY / "skypilot.yaml").read_text(encoding="utf-8"))


def dstack() -> Any:
    return yaml.safe_load((DEPLOY / "search.dstack.yml").read_text(encoding="utf-8"))


def commands_of_shell(script: str) -> Iterator[list[str]]:
    """The commands of dice_ray and Ray in a script, from the program's name on; each variable stands for a 1."""
    script = re.sub(r"\$\{?\w+\}?", "1", script.replace("\\\n", " "))
    for line in script.splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars=";&|")
        words.whitespace_split = True
        for is_operator, group in groupby(words, lambda word: set(word) <= set(";&|")):
            command = list(group)
            starts = [at for at, word in enumerate(command) if word in PROGRAMS]
            if starts and not is_operator:
                yield command[starts[0] :]


def scripts() -> dict[str, str]:
    """What shells run, by the file that gives it."""
    start = [line for key, lines in ray_up().items() if key.endswith("_commands") for line in lines]
    return {
        "rayjob.yaml": manifest("rayjob.yaml")["spec"]["entrypoint"],
        "ray_up.yaml": "\n".join(start),
        "search.dstack.yml": "\n".join(dstack()["commands"]),
        "skypilot.yaml": skypilot()["run"],
        "slurm.sh": (DEPLOY / "slurm.sh").read_text(encoding="utf-8"),
    }
