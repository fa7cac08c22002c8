"""The notebooks of examples/: their cells, and running them as plain Python. `python -m tests.docs.notebooks FILE`."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

from tests.house.tree import REPOSITORY

NOTEBOOKS = sorted((REPOSITORY / "examples").glob("*.ipynb"))
WRITE = "%%writefile "


def code_cells(notebook: Path) -> list[str]:
    """The source of each code cell."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def run(notebook: Path) -> None:
    """Run the code cells as a notebook does: files are written, and the value of a last expression is displayed."""
    sys.path.insert(0, str(Path.cwd()))
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in code_cells(notebook):
        if cell.startswith(WRITE):
            first, _, content = cell.partition("\n")
            Path(first.removeprefix(WRITE).strip()).write_text(content, encoding="utf-8")
            continue
        tree = ast.parse(cell)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, str(notebook), "exec"), names)
        if isinstance(last, ast.Expr):
            display(eval(compile(ast.Expression(last.value), str(notebook), "eval"), names))


def display(value: Any) -> None:
    """Print what a notebook shows of a value: a picture, a table, or its repr."""
    for kind in ("_repr_svg_", "_repr_html_"):
        if shown := getattr(value, kind, lambda: None)():
            sys.stdout.write(f"{type(value).__name__}.{kind}: {len(shown)} characters\n")
            return
    if value is not None:
        sys.stdout.write(f"{value!r}\n")


if __name__ == "__main__":
    run(Path(sys.argv[1]))
