"""Each contract between the rooms is seen to fail: a breach is added to the graph of the house's imports."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from copy import deepcopy
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import grimp
import pytest
from importlinter.api import read_configuration
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.layers import LayersContract
from importlinter.contracts.protected import ProtectedContract

from tests.house.imports import import_graph
from tests.house.tree import PACKAGES, REPOSITORY

CONFIGURATION = read_configuration(str(REPOSITORY / "pyproject.toml"))
CONTRACTS = {options["name"]: options for options in CONFIGURATION["contracts_options"]}
CONTRACT_TYPES: dict[str, type[Any]] = {
    "forbidden": ForbiddenContract,
    "layers": LayersContract,
    "protected": ProtectedContract,
}
ARROWS = "the arrows of the house"
LAYERS = [layer.split(" | ") for layer in CONTRACTS[ARROWS]["layers"]]
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
    ("ray in run and tuning alone", "dice_ray.training", "ray"),
    ("mlflow in tracking alone", "analysis", "mlflow"),
    ("transformers in models and tasks alone", "dice_ray.losses", "transformers"),
    ("peft in models alone", "dice_ray.training", "peft"),
    ("yaml in config.load and tuning.plan_file alone", "dice_ray.config.schema", "yaml"),
]


def broken_contracts(graph: grimp.ImportGraph) -> list[str]:
    """The contracts that a graph of imports breaks, checked as lint-imports checks them."""
    broken = []
    for options in CONFIGURATION["contracts_options"]:
        contract = CONTRACT_TYPES[options["type"]](options["name"], CONFIGURATION["session_options"], options)
        if not contract.check(deepcopy(graph), verbose=False).kept:  # a contract may change the graph
            broken.append(contract.name)
    return broken


def test_the_house_keeps_its_contracts() -> None:
    assert broken_contracts(import_graph()) == []
    assert ARROWS not in broken_contracts(import_graph(with_types=True))


@pytest.mark.parametrize(("contract", "importer", "imported"), BREACHES, ids=str)
def test_a_breach_is_seen(contract: str, importer: str, imported: str) -> None:
    graph = deepcopy(import_graph())
    assert {importer, imported} <= graph.modules
    graph.add_import(importer=importer, imported=imported)
    assert contract in broken_contracts(graph)


def test_a_stray_room_is_seen() -> None:
    graph = deepcopy(import_graph())
    graph.add_module("dice_ray.utils")
    assert broken_contracts(graph) == [ARROWS]


def test_every_contract_has_a_breach() -> None:
    assert {contract for contract, _, _ in BREACHES} == set(CONTRACTS)


def test_the_command_sees_imports_inside_functions(tmp_path: Path) -> None:
    """A breach of each contract in a copy of the house: the command of `make check` reports them all."""
    for package in PACKAGES:
        shutil.copytree(REPOSITORY / package, tmp_path / package)
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    for importer, imported in {contract: (importer, imported) for contract, importer, imported in BREACHES}.values():
        file = tmp_path / importer.replace(".", "/")
        file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
        with file.open("a") as opened:
            opened.write(f"\n\ndef _breach() -> None:\n    import {imported}\n")
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    verdicts = dict(re.findall(r"^(.+) (KEPT|BROKEN)\b", result.stdout, re.MULTILINE))
    assert verdicts == dict.fromkeys(CONTRACTS, "BROKEN"), result.stdout + result.stderr
