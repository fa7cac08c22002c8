"""What import-linter cannot hold: who has an `__init__.py`, and that search_spaces imports Optuna alone."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.house.tree import PACKAGES, REPOSITORY


def imported(file: Path) -> Iterator[str]:
    """The top-level packages that a file imports, inside functions too."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


def test_search_spaces_imports_optuna_alone() -> None:
    allowed = {"optuna", "search_spaces", *sys.stdlib_module_names}
    files = list((REPOSITORY / "search_spaces").rglob("*.py"))
    assert len(files) > 3
    assert [(file.name, name) for file in files for name in imported(file) if name not in allowed] == []


def test_every_folder_of_modules_is_a_package() -> None:
    """import-linter sees no other."""
    folders = {file.parent for package in PACKAGES for file in (REPOSITORY / package).rglob("*.py")}
    assert [folder for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []
