"""Each contract between the rooms is seen to fail: a breach is planted in a copy of the house."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from itertools import pairwise, product
from pathlib import Path

import pytest

from tests.house.tree import PACKAGES, REPOSITORY

CONTRACTS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
ARROWS = "the arrows of the house"
LAYERS = [layer.split(" | ") for layer in next(c["layers"] for c in CONTRACTS if c["name"] == ARROWS)]
UPWARDS = [pair for above, below in pairwise(LAYERS) for pair in product(below, above)]
SIDEWAYS = [pair for layer in LAYERS for pair in pairwise([*layer, layer[0]]) if len(layer) > 1]

BREACHES = [
    *((ARROWS, f"dice_ray.{importer}", f"dice_ray.{imported}") for importer, imported in UPWARDS + SIDEWAYS),
    ("tasks do not know losses", "dice_ray.tasks", "dice_ray.losses.base"),
    ("only api opens search_spaces and analysis", "dice_ray.tuning", "search_spaces"),
    ("only api opens search_spaces and analysis", "dice_ray.cli", "analysis"),
    ("search_spaces knows nothing of us", "search_spaces", "dice_ray.terms"),
    ("search_spaces knows nothing of us", "search_spaces", "analysis"),
    ("analysis reads the tracked runs, the losses and the terms alone", "analysis", "dice_ray"),
    ("analysis reads the tracked runs, the losses and the terms alone", "analysis", "dice_ray.tracking.writer"),
    ("analysis reads the tracked runs, the losses and the terms alone", "analysis", "search_spaces"),
    ("the command line knows the api and the errors alone", "dice_ray.cli", "dice_ray.config.load"),
    ("ray in run and tuning alone", "dice_ray.training", "ray.train"),
    ("mlflow in tracking alone", "analysis", "mlflow"),
    ("transformers in models and tasks alone", "dice_ray.losses", "transformers"),
    ("yaml in config.load and tuning.plan_file alone", "dice_ray.config.schema", "yaml"),
]


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of the house, in which every contract is kept."""
    for package in PACKAGES:
        shutil.copytree(REPOSITORY / package, tmp_path / package)
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    return tmp_path


def _broken(house: Path) -> list[str]:
    lint = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run([lint, "--no-cache"], cwd=house, capture_output=True, text=True, check=False)
    verdicts = re.findall(r"^(.+) (KEPT|BROKEN)\b", result.stdout, re.MULTILINE)
    assert len(verdicts) == len(CONTRACTS), result.stdout + result.stderr
    return [contract for contract, verdict in verdicts if verdict == "BROKEN"]


def test_the_house_keeps_its_contracts(house: Path) -> None:
    assert _broken(house) == []


@pytest.mark.parametrize(("contract", "importer", "imported"), BREACHES, ids=str)
def test_a_breach_is_seen(house: Path, contract: str, importer: str, imported: str) -> None:
    file = house / importer.replace(".", "/")
    file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    with file.open("a") as opened:
        opened.write(f"\n\ndef _breach() -> None:\n    import {imported}\n")
    assert contract in _broken(house)


def test_a_stray_room_is_seen(house: Path) -> None:
    (house / "dice_ray" / "utils.py").touch()
    assert _broken(house) == [ARROWS]


def test_every_contract_has_a_breach() -> None:
    assert {contract for contract, _, _ in BREACHES} == {contract["name"] for contract in CONTRACTS}
