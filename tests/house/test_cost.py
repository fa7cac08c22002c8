"""What a command may load: help and completion next to nothing, `list` and `validate` no Ray and no MLflow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LOADED = """
import json, sys
from dice_ray.cli.app import main
try:
    main()
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""
HEAVY = {
    "torch",
    "ray",
    "mlflow",
    "pandas",
    "transformers",
    "optuna",
    "datasets",
    "sklearn",
    "scipy",
    "matplotlib",
    "numpy",
}


def loaded(arguments: list[str], **environment: str) -> set[str]:
    """The modules that a command has loaded when it ends."""
    command = [sys.executable, "-c", LOADED, *arguments]
    result = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert "Traceback" not in result.stderr, result.stderr
    assert result.stdout, result.stderr
    return set(json.loads(result.stderr.splitlines()[-1]))


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["ablate", "--help"]], ids=" ".join)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    modules = loaded(arguments)
    assert not modules & HEAVY
    assert len(modules) < 600


def test_completion_loads_nothing_heavy() -> None:
    modules = loaded([], _DICE_RAY_COMPLETE="complete_bash", COMP_WORDS="dice-ray tu", COMP_CWORD="1")
    assert not modules & HEAVY


@pytest.mark.parametrize("arguments", [["list"], ["validate", "synthetic_pairs"]], ids=" ".join)
def test_what_only_reads_starts_neither_ray_nor_mlflow(arguments: list[str]) -> None:
    assert not loaded(arguments) & {"ray", "mlflow", "transformers", "datasets", "sklearn", "pandas"}


def test_what_reads_no_configuration_loads_no_torch() -> None:
    assert not loaded(["cache"]) & (HEAVY - {"numpy"})


def test_a_first_look_at_files_loads_no_statistics_and_no_model() -> None:
    """`init` and `inspect` are what a new user tries first, and are mostly imports."""
    rows = [f"a text {number}\t{number % 2}" for number in range(40)]
    Path("mine.tsv").write_text("\n".join(["text\tlabel", *rows]))
    never = HEAVY - {"torch", "numpy", "pandas", "matplotlib"}
    assert not loaded(["init", "mine.tsv", "--out", "mine.yaml"]) & {*never, "matplotlib", "jinja2"}
    assert not loaded(["inspect", "mine.yaml"]) & never
