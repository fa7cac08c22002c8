"""Which files of the three packages one value passes through while a command runs."""

from __future__ import annotations

import sys
import threading
from collections import defaultdict
from dataclasses import is_dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from pydantic import BaseModel

from tests.house.tree import PACKAGES, REPOSITORY

FOLDERS = tuple(f"{REPOSITORY / package}/" for package in PACKAGES)


class Trace:
    """Records, until the end of the block and in every thread that starts in it, the functions that handle a parameter.

    A function handles it if an argument or its result *is* the value, or a text with the parameter's path or value, or
    directly contains one of these: a mapping, sequence, dataclass or pydantic model does, but one that holds the
    configuration as a whole does not. Text counts since the value comes as `--set PATH=VALUE` and is stored as YAML.

    Attributes:
        functions: The names of these functions by their file, relative to the repository.
    """

    def __init__(self, path: str, value: float) -> None:
        self.path, self.value = path, value
        self.functions: dict[str, set[str]] = defaultdict(set)

    def __enter__(self) -> Trace:
        self._previous = sys.getprofile(), threading.getprofile()
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        own, threads = self._previous
        sys.setprofile(own)
        threading.setprofile(threads)

    @property
    def files(self) -> set[str]:
        return set(self.functions)

    def _profile(self, frame: FrameType, event: str, result: Any) -> None:
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(FOLDERS):
            return
        if code.co_name == "<module>" or not code.co_filename.endswith(".py"):  # a page's template
            return
        if event == "return":
            values = [result]
        else:  # `*names` and `**names` come after the parameters, where the flags 4 and 8 are set
            num_arguments = (
                code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
            )
            values = [frame.f_locals.get(name) for name in code.co_varnames[:num_arguments]]
        if any(map(self._holds, values)):
            file = Path(code.co_filename).relative_to(REPOSITORY).as_posix()
            self.functions[file].add(code.co_qualname)

    def _holds(self, value: Any) -> bool:
        if isinstance(value, dict):
            return any(map(self._is, value)) or any(map(self._is, value.values()))
        if isinstance(value, list | tuple):
            return any(map(self._is, value))
        if isinstance(value, BaseModel) or (is_dataclass(value) and not isinstance(value, type)):
            return any(map(self._is, getattr(value, "__dict__", {}).values()))
        return self._is(value)

    def _is(self, value: Any) -> bool:
        if type(value) is str:
            return self.path in value or str(self.value) in value
        return type(value) is float and value == self.value
