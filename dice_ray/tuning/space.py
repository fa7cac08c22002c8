"""Search spaces by their address: functions of an Optuna trial that suggest parameters and return nothing.

Ray pickles the searcher, with its space, after each suggestion. A function of a script or a lambda cannot be pickled,
so a space is stored as its address and loaded when it is called.
"""

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
    """A space that can be pickled: its address, loaded at the first call."""

    address: str

    def __reduce__(self) -> tuple[type[Space], tuple[str]]:
        return type(self), (self.address,)

    def __call__(self, trial: Trial | FixedTrial) -> None:
        """Suggest every parameter of a trial.

        Raises:
            InputError: The function failed, or returned something: Ray lets a returned constant override suggestions.
        """
        function = self._function
        try:
            returned: Any = function(trial)
        except Exception as error:
            raise InputError(
                f"the space {self.address} must suggest a trial, and raised {describe_error(error)}"
            ) from error
        if returned is not None:
            raise InputError(
                f"a space must return nothing, and {self.address} returned {type(returned).__name__}: "
                "put constants into a preset or --set"
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
    """The module of that name, or of that file if it ends in .py.

    Raises:
        InputError: There is none, or it raises.
    """
    try:
        return _module_of_file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"a space or study must be in a module that can be imported, and {where} raised {describe_error(error)}"
        ) from error


def _module_of_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise InputError(f"a space or study must be in an existing file, got {path} in {Path.cwd()}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def describe_error(error: BaseException) -> str:
    """An exception of the user's own code, in one line."""
    return f"{type(error).__name__}: {error}"
