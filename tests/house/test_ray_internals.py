"""Private modules of Ray are used in one file, which an upgrade of Ray has to check."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.house.tree import REPOSITORY


def private_modules(file: Path) -> Iterator[str]:
    """The modules of Ray that a file imports or names whose path has a part that begins with an underscore."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value]
        for name in names:
            if re.fullmatch(r"ray(\.\w+)*\._\w+(\.\w+)*", name):
                yield name


def test_private_modules_of_ray_are_imported_in_one_file() -> None:
    importing = {file.name for file in (REPOSITORY / "dice_ray").rglob("*.py") if list(private_modules(file))}
    assert importing == {"ray_internals.py"}
