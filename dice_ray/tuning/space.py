"""Search spaces by their address: functions of an Optuna trial that return nothing."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from dice_ray.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from optuna import Trial
    from optuna.trial import FixedTrial

SpaceFunction: TypeAlias = "Callable[[Trial | FixedTrial], None]"


@dataclass(frozen=True)
class Space:
    """A space that can be pickled: it is its address, and is loaded when it is first called."""

    address: str

    def __reduce__(self) -> tuple[type[Space], tuple[str]]:
        return type(self), (self.address,)

    def __call__(self, trial: Trial | FixedTrial) -> None:
        """Suggest every parameter of a trial.

        Raises:
            InputError: The function failed, or returned something: it would override what is suggested.
        """
        function = self._function
        try:
            returned: Any = function(trial)
        except Exception as error:
            raise InputError(f"the space {self.address} must suggest a trial, and raised {said(error)}") from error
        if returned is not None:
            raise InputError(
                f"a space must return nothing, and {self.address} returned {type(returned).__name__}: "
                "constants stand in a preset or in --set"
            )

    @cached_property
    def _function(self) -> SpaceFunction:
        return load(self.address)


def load(address: str) -> SpaceFunction:
    """The function at `module:function` or `file.py:function`."""
    where, colon, name = address.rpartition(":")
    if not colon or not where:
        raise InputError(f"a space must be given as module:function or file.py:function, got {address!r}")
    module = module_at(where)
    function: SpaceFunction | None = getattr(module, name, None)
    if not inspect.isfunction(function):
        raise UnknownNameError(f"space in {where}", name, spaces_in(module))
    return function


def spaces_in(module: ModuleType) -> list[str]:
    """The spaces of a module: its own public functions."""
    own = inspect.getmembers(module, lambda value: inspect.isfunction(value) and value.__module__ == module.__name__)
    return [name for name, _ in own if not name.startswith("_")]


def module_at(where: str) -> ModuleType:
    """The module of that name, or of that file if it ends in .py."""
    return _file(Path(where)) if where.endswith(".py") else _module(where)


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise InputError(f"a space or study must be in a module that runs, and {name} raised {said(error)}") from error


def _file(path: Path) -> ModuleType:
    if not path.is_file():
        raise InputError(f"a space or study must be in a file that is there, got {path} in {Path.cwd()}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(f"a space or study must be in a file that runs, and {path} raised {said(error)}") from error
    return module


def said(error: BaseException) -> str:
    """What a user's own code raised, in one line."""
    return f"{type(error).__name__}: {error}"
