"""The notebooks of examples/, and running one in Jupyter's kernel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.house.tree import REPOSITORY

NOTEBOOKS = sorted((REPOSITORY / "examples").glob("*.ipynb"))
WRITE = "%%writefile "


def code_cells(notebook: Path) -> list[str]:
    """The source of each code cell."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def run(cells: list[str], folder: Path) -> list[list[dict[str, Any]]]:
    """The outputs of each code cell, run by a kernel in a folder, where Jupyter keeps its own files too."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(REPOSITORY))
        for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR"):
            patch.setenv(name, str(folder / ".jupyter"))
        NotebookClient(notebook, timeout=1200, resources={"metadata": {"path": str(folder)}}).execute()
    return [cell["outputs"] for cell in notebook.cells]


def printed(outputs: list[dict[str, Any]]) -> str:
    """What a cell printed."""
    return "".join(output["text"] for output in outputs if output["output_type"] == "stream")


def displayed(outputs: list[dict[str, Any]], kind: str) -> list[str]:
    """What a cell displays in this format, such as `text/html`."""
    return [output["data"][kind] for output in outputs if kind in output.get("data", {})]
