"""Presets, spaces and studies that are installed with dice_ray, by their names."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from dice_ray.errors import InputError, ShadowedError, UnknownNameError


def folder_of(package: str) -> Path:
    """The folder of `search_spaces` or `analysis`.

    Raises:
        ShadowedError: Another package of that name comes first on Python's import path.
    """
    own = Path(__file__).resolve().parents[2] / package
    spec = importlib.util.find_spec(package)
    first = Path(spec.origin).resolve() if spec and spec.origin else None
    if first != own / "__init__.py":
        raise ShadowedError(
            f"dice_ray needs its own package {package} in {own}, but Python finds {first} first; "
            "rename that one, or work in another folder"
        )
    return own


def preset_file(preset: str | Path) -> Path:
    """The file of a preset: a shipped one by its name, any other by its path."""
    path = Path(preset)
    if path.suffix in (".yaml", ".yml"):
        if path.is_file():
            return path
        raise InputError(f"a preset must be a shipped name or an existing file, got {path} in {Path.cwd()}")
    check_kind(str(preset), "preset")
    known = presets()
    if str(preset) not in known and path.is_file():
        raise InputError(
            f"a preset must be a .yaml file, got {path}: `dice-ray init {path}` writes one for a file of data"
        )
    if str(preset) not in known:
        raise UnknownNameError("preset", str(preset), known)
    return known[str(preset)]


def presets() -> dict[str, Path]:
    """The shipped presets: file by name."""
    return {path.stem: path for path in sorted(folder_of("search_spaces").glob("presets/*.yaml"))}


def spaces() -> dict[str, str]:
    """The shipped spaces: modules with a function of their own name that takes a trial."""
    files = sorted(folder_of("search_spaces").glob("*.py"))
    return {file.stem: f"search_spaces.{file.stem}" for file in files if f"\ndef {file.stem}(trial" in file.read_text()}


def space_address(space: str) -> str:
    """The address of a shipped `loss_tuning` or `loss_tuning:focal`; any other address as it is."""
    where, _, function = space.partition(":")
    if where in (known := spaces()):
        return f"{known[where]}:{function or where}"
    if not function:
        if space.endswith(".py"):
            raise InputError(f"a space must be a function, as {space}:FUNCTION, got {space}")
        raise UnknownNameError("space", space, known)
    return space


def studies() -> dict[str, str]:
    """The shipped studies: module by name."""
    files = sorted(folder_of("search_spaces").glob("studies/*.py"))
    return {file.stem: f"search_spaces.studies.{file.stem}" for file in files if file.stem != "__init__"}


def check_kind(name: str, wanted: Literal["preset", "study"]) -> None:
    """Raise an InputError with the right command if a name is that of another kind of thing than the wanted one."""
    of_preset = f"`dice-ray train {name}` trains on it, `dice-ray ablate loss_comparison --data {name}` compares losses"
    known: dict[str, tuple[Mapping[str, object], str]] = {
        "preset": (presets(), of_preset),
        "study": (studies(), f"`dice-ray ablate {name}` runs it"),
        "search space": (spaces(), f"`dice-ray tune PRESET --space {name}` searches it"),
    }
    is_file = Path(name).suffix in (".yaml", ".yml")
    for kind, (names, command) in known.items():
        if kind != wanted and name not in known[wanted][0] and (name in names or (is_file and kind == "preset")):
            raise InputError(f"{name} is a {kind}, not a {wanted}: {command}")
