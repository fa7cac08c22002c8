"""Functions by their address: from modules and files, wherever the process stands, or refused with what is known."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dice_ray.errors import InputError, UnknownNameError
from dice_ray.user_code import absolute, digest, load

MINE = """
from __future__ import annotations
from dataclasses import dataclass
import sys

import beside_mine

@dataclass
class Rate:
    value: float

def rate():
    return Rate(beside_mine.VALUE)

def _private():
    pass
"""


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], Path]]:
    """Writes a file in the working folder, which cannot be imported from, as in a console script."""
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder not in ("", str(tmp_path))])

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    yield write
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def test_a_module_of_the_current_folder_and_a_file_are_one_from_everywhere(
    written: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file was loaded without its folder, so that it could not import what lies beside it; a module not at all."""
    path = written("mine.py", MINE)
    written("beside_mine.py", "VALUE = 0.5")
    addresses = ["mine:rate", "mine.py:rate", "./mine.py:rate", f"{path}:rate"]
    assert {str(Path(absolute(address))) for address in addresses} == {f"{path}:rate"}
    assert [load(address)().value for address in addresses] == [0.5] * 4
    (tmp_path / "elsewhere").mkdir()
    stored = absolute("mine:rate")
    monkeypatch.chdir("elsewhere")
    assert load(stored)().value == 0.5
    assert absolute(stored) == stored


def test_an_edit_of_the_same_size_in_the_same_second_counts(
    written: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's cached bytecode was run while the digest was of the new source; the cache lay in the user's folder."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    values = []
    for value in (1, 2):
        path = written("mine.py", f"def f(): return {value}")
        os.utime(path, ns=(0, 0))
        values.append(load("mine:f")())
    assert values == [1, 2]
    assert not path.with_name("__pycache__").exists()


def test_a_file_hides_no_module_of_its_name(written: Callable[[str, str], Path]) -> None:
    written("json.py", "def f(): return 'mine'")
    written("optuna.py", "raise ValueError")
    assert load("json:f")() == "mine"
    import json

    import optuna

    assert json.loads("1") == 1
    assert hasattr(optuna, "Trial")


@pytest.mark.parametrize("address", ["pack.inner:f", "pack/inner.py:f", "pack:f"])
def test_a_module_of_a_package_can_import_from_its_package(written: Callable[[str, str], Path], address: str) -> None:
    written("pack/__init__.py", "from .inner import f")
    written("pack/inner.py", "from . import other\nfrom pack.other import g\ndef f(): return other.g() + g()")
    written("pack/other.py", "def g(): return 2")
    assert load(address)() == 4


def test_installed_modules_and_names_are_left_as_they_are(written: Callable[[str, str], Path]) -> None:
    """Also in the folder of a working copy: a plan with a shipped space runs on another machine."""
    written("search_spaces/loss_tuning.py", "")
    for address in ("search_spaces.loss_tuning:focal", "tpe", "no_such_module:f"):
        assert absolute(address) == address
    assert load("search_spaces.loss_tuning:focal").__name__ == "focal"


def test_an_unknown_function_names_the_functions_of_the_file(written: Callable[[str, str], Path]) -> None:
    path = written("mine.py", MINE)
    written("beside_mine.py", "VALUE = 0.5")
    with pytest.raises(
        UnknownNameError, match=rf"function in {path} named 'rats'; did you mean 'rate'\? Known: Rate, rate"
    ):
        load(f"{path}:rats")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("no_such_module:space", "no_such_module must be a module .* raised ModuleNotFoundError: No m"),
        ("nowhere.py:space", "nowhere.py must be an existing file"),
        ("space", "as module:function or file.py:function, got 'space'"),
        ("mine.py:f", r"^/.*mine.py must be a module that can be imported, and raised SyntaxError: "),
        ("leaves.py:f", r"^/.*leaves.py must be a module that can be imported, and raised SystemExit: "),
        ("mine:f", r"^/.*mine.py must be a module that can be imported, and raised SyntaxError: "),
    ],
)
def test_an_address_that_leads_nowhere(written: Callable[[str, str], Path], address: str, message: str) -> None:
    written("mine.py", "def f(:")
    written("leaves.py", "raise SystemExit")
    with pytest.raises(InputError, match=message):
        load(address)


def test_the_digest_is_of_the_file_of_the_address_and_of_the_one_that_defines_the_function(
    written: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the function alone, a rewritten class or helper in its file would not be seen; another file that it imports is
    not covered.
    """
    written("mine.py", "import beside_mine\nfrom defining import f\ndef g(): return helper()\ndef helper(): return 1")
    written("beside_mine.py", "VALUE = 1")
    written("defining.py", "def f(): return 1")

    def digests() -> tuple[str, str]:
        for name in ("beside_mine", "defining"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        return digest("mine:f"), digest("mine.py:g")

    first = digests()
    assert digests() == first
    written("beside_mine.py", "VALUE = 2")
    assert digests() == first
    written("defining.py", "def f(): return 2")
    second = digests()
    assert (second[0] != first[0], second[1] != first[1]) == (True, False)
    with (tmp_path / "mine.py").open("a") as file:
        file.write("\ndef helper(): return 2")
    third = digests()
    assert (third[0] != second[0], third[1] != second[1]) == (True, True)


def test_a_file_that_loads_itself_is_not_executed_without_end(written: Callable[[str, str], Path]) -> None:
    """As a script does that calls `train` with a loss of its own."""
    written("mine.py", "from dice_ray.user_code import load\ndef rate():\n    return 1\nfound = load('mine:rate')()\n")
    assert load("mine:rate")() == 1
