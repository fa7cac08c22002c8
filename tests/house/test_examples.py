"""The examples in the docstrings of all packages are executed."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
MODULES = [
    ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")
    for package in ("dice_ray", "search_spaces", "analysis")
    for path in sorted((REPOSITORY / package).rglob("*.py"))
    if ">>>" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS).failed == 0


def test_some_are_found() -> None:
    assert len(MODULES) > 40
