"""Prints the tree of the three packages: each file with its first sentence."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PACKAGES = ("dice_ray", "search_spaces", "analysis")
WIDTH = 28


def first_sentence(file: Path) -> str:
    """The first sentence of a module's docstring, or of the comment that opens a preset; empty if there is none."""
    source = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        text = ast.get_docstring(ast.parse(source)) or ""
    else:
        text = "\n".join(line.lstrip("# ") for line in source.splitlines() if line.startswith("#"))
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<!\beq)(?<!\bal)\.(?: |$)", paragraph)[0]  # not within `eq. 5` or `et al. 2019`


def _lines(folder: Path, depth: int) -> Iterator[str]:
    init = folder / "__init__.py"
    yield _line(f"{folder.name}/", first_sentence(init) if init.exists() else "", depth)
    for file in sorted(folder.iterdir()):
        if file.suffix in (".py", ".yaml") and file != init:
            yield _line(file.name, first_sentence(file), depth + 1)
    for below in sorted(folder.iterdir()):
        if below.is_dir() and any(file.suffix in (".py", ".yaml") for file in below.iterdir()):
            yield from _lines(below, depth + 1)


def _line(name: str, sentence: str, depth: int) -> str:
    return f"{'  ' * depth + name:{WIDTH}}{sentence}".rstrip()


if __name__ == "__main__":
    print("\n".join(line for package in PACKAGES for line in _lines(REPOSITORY / package, depth=0)))
