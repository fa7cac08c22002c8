"""A package of ours is found from any folder, and what stands in its way is named."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import optuna
import pytest

from dice_ray.api.library import preset_file, read_study, spaces
from dice_ray.errors import InputError
from tests.house.tree import REPOSITORY

PACKAGES = ["search_spaces", "analysis"]


def _folder_of(package: str) -> subprocess.CompletedProcess[str]:
    code = f"from dice_ray.api.library import folder_of; print(folder_of({package!r}))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("package", PACKAGES)
def test_ours_is_found_from_any_folder(package: str) -> None:
    assert _folder_of(package).stdout.strip() == str(REPOSITORY / package)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_folder_without_init_does_not_stand_in_the_way(package: str) -> None:
    Path(package).mkdir()
    Path(package, "plot.py").touch()
    assert _folder_of(package).stdout.strip() == str(REPOSITORY / package)


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("file", ["{}.py", "{}/__init__.py"])
def test_what_stands_in_the_way_is_named(package: str, file: str) -> None:
    own = Path(file.format(package)).resolve()
    own.parent.mkdir(exist_ok=True)
    own.touch()
    error = _folder_of(package).stderr
    assert f"ShadowedError: dice_ray needs its own package {package}" in error
    assert f"Python finds {own} first" in error


def test_a_file_of_data_is_no_preset() -> None:
    Path("m.json").touch()
    with pytest.raises(
        InputError, match=r"a preset must be a \.yaml file, got m\.json: `dice-ray init m\.json` writes"
    ):
        preset_file("m.json")
    Path("my data.csv").touch()
    with pytest.raises(InputError, match=r"`dice-ray init 'my data\.csv'` writes"):
        preset_file("my data.csv")
    with pytest.raises(InputError, match=r"`dice-ray ablate loss_comparison --data 'my data\.yaml'` compares"):
        read_study("my data.yaml")
    Path("mrpc").touch()
    assert preset_file("mrpc").suffix == ".yaml"


def test_each_space_that_is_listed_can_be_drawn_from() -> None:
    """`draws`, which draws from a space, was listed as one."""
    known = spaces()
    assert "joint_tuning" in known
    for name, module in known.items():
        trial = optuna.create_study().ask()
        getattr(importlib.import_module(module), name)(trial)
        assert trial.params
