"""Names of runs, sweeps and studies: those that can be used, and new ones."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Collection, Hashable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import TypeVar

from dice_ray.errors import InputError
from dice_ray.files import runs_folder, write_atomically

_NamedT = TypeVar("_NamedT", bound=Hashable)

TRAIN_EXPERIMENT = "train"
"""The MLflow experiment of runs that are trained alone; each sweep or study has one of its own name."""

_RESERVED = (TRAIN_EXPERIMENT, "Default")
"""Names of experiments that no sweep or study can have: `Default` is MLflow's own, which is not read."""

LONGEST = 200
"""Bytes of a name: file systems take 255, and some names of files are longer by an ending."""


def given_folder() -> Path:
    """The folder of tables and losses that were given in Python, for its owner alone; no run can have its name."""
    folder = runs_folder() / ".given"
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def stored_code(stem: str, content: str) -> Path:
    """The absolute path of a file of Python code there, which is named by its content."""
    file = given_folder() / f"{stem}_{hashlib.sha256(content.encode()).hexdigest()[:16]}.py"
    write_atomically(file, content)
    return file.absolute()


def check_name(name: str) -> str:
    """Returns the name, which must be usable as a folder and as an experiment."""
    if not re.fullmatch(r"\w[\w.-]*", name) or name in _RESERVED or len(name.encode()) > LONGEST:
        raise InputError(
            f"a name must be letters, digits, '_', '-' and '.', not begin with '-' or '.', have at most {LONGEST} "
            f"bytes, and not be {' or '.join(map(repr, _RESERVED))}, got {name!r}"
        )
    return name


def check_lists(**lists: object) -> None:
    """Raise an InputError if one of these arguments is no list of texts, such as a single text, a list of letters."""
    for argument, given in lists.items():
        if isinstance(given, str) or not isinstance(given, Collection):
            raise InputError(f"{argument} must be a list, as [{given!r}], got {given!r}")
        if wrong := [each for each in given if not isinstance(each, str | Path)]:
            raise InputError(f"{argument} must be texts, got {wrong[0]!r}")


def by_name(argument: str, form: str, given: Mapping[str, str] | Sequence[str]) -> dict[str, str]:
    """Values by name, which may be written as texts NAME=VALUE; an InputError that names the form for another text."""
    if isinstance(given, Mapping):
        return dict(given)
    written = [given] if isinstance(given, str) else given
    if wrong := [each for each in written if "=" not in each]:
        raise InputError(f"{argument} must be {form}, got {wrong[0]!r}")
    return dict(each.split("=", 1) for each in written)


def check_whole(**numbers: object) -> None:
    """Raise an InputError if one of these arguments is given, and is no whole number."""
    for argument, given in numbers.items():
        if not isinstance(given, Integral | None):
            raise InputError(f"{argument} must be a whole number, got {given!r}")


def valid_name(stem: str) -> str:
    """The name nearest to the stem of a file that `check_name` accepts.

    >>> valid_name("my tickets (1)")
    'my_tickets_1'
    """
    name = re.sub(r"[^\w.-]+", "_", stem).lstrip("_.-").encode()[: LONGEST - 10].decode(errors="ignore").rstrip("_")
    name = name or "run"
    return f"{name}_data" if name in _RESERVED else name


def new_name(stem: str) -> str:
    """A name that begins with a stem and is not used yet."""
    while True:
        name = f"{valid_name(stem)}-{''.join(secrets.choice('abcdefghjkmnpqrstuvwxyz23456789') for _ in range(4))}"
        if not (runs_folder() / name).exists():
            return name


def names_of(presets: Sequence[str | Path]) -> dict[str | Path, str]:
    """A name for the data of each preset: its own, with as many of its folders as make it different from the others.

    >>> names_of(["mrpc", "a/mine.yaml", "b/mine.yaml"])
    {'mrpc': 'mrpc', 'a/mine.yaml': 'a/mine', 'b/mine.yaml': 'b/mine'}
    """
    return told_apart({preset: (*Path(preset).parent.parts, Path(preset).stem) for preset in presets})


def told_apart(paths: Mapping[_NamedT, tuple[str, ...]]) -> dict[_NamedT, str]:
    """The last part of each path, with as many before it as make it different from the others."""
    names = {}
    for key, parts in paths.items():
        others = [other for each, other in paths.items() if each != key]
        size = next(
            size
            for size in range(1, len(parts) + 1)
            if all(other[-size:] != parts[-size:] for other in others) or size == len(parts)
        )
        names[key] = "/".join(parts[-size:])
    return names
