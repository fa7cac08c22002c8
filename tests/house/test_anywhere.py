"""The command and the functions work from any folder; where the user's own package stands in the way, it is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

DICE_RAY = str(Path(sys.executable).with_name("dice-ray"))


def _run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)


def test_the_command_does_not_mind_the_users_own_packages() -> None:
    for own in ("search_spaces", "analysis"):
        Path(own).mkdir()
        Path(own, "__init__.py").write_text("raise AssertionError('not ours')\n")
    result = _run(DICE_RAY, "validate", "synthetic_pairs")
    assert result.returncode == 0, result.stderr


def test_the_functions_work_from_any_folder() -> None:
    code = "from dice_ray import ablate, api, report, train, tune; print(api.validate('synthetic_pairs').loss.name)"
    result = _run(sys.executable, "-c", code)
    assert result.stdout == "cross_entropy\n", result.stderr


def test_what_stands_in_the_way_of_the_functions_is_named() -> None:
    own = Path("analysis.py").resolve()
    own.touch()
    result = _run(sys.executable, "-c", "import dice_ray; dice_ray.report('any')")
    assert "ShadowedError" in result.stderr
    assert str(own) in result.stderr


@pytest.mark.parametrize(
    ("package", "command"), [("search_spaces", "validate synthetic_pairs"), ("analysis", "report any")]
)
def test_what_stands_in_the_way_of_the_command_is_a_mistake_of_the_user(package: str, command: str) -> None:
    own = Path(f"{package}.py").resolve()
    own.touch()
    result = _run(DICE_RAY, *command.split(), PYTHONPATH=".")
    assert result.returncode == 2
    assert str(own) in result.stderr
    assert "Traceback" not in result.stderr
