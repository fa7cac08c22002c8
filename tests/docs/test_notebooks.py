"""The notebooks of examples/ name what exists, hold no output, and run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.docs.notebooks import NOTEBOOKS, WRITE, code_cells, displayed, printed, run
from tests.docs.test_pages import python_problems


def problems(notebook: Path) -> list[str]:
    cells = code_cells(notebook)
    written = [cell.partition("\n") for cell in cells if cell.startswith(WRITE)]
    modules = [first.removeprefix(WRITE).strip().removesuffix(".py") for first, _, _ in written]
    code = "\n".join(cell for cell in cells if not cell.startswith(WRITE))
    for module, (_, _, content) in zip(modules, written, strict=True):
        compile(content, module, "exec")
        code = re.sub(rf"^from {module} import .*$", "", code, flags=re.MULTILINE)
    return list(python_problems(code))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_names_what_exists(notebook: Path) -> None:
    assert len(code_cells(notebook)) >= 3
    assert problems(notebook) == []
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    assert all(not cell.get("outputs") for cell in cells), "clear all outputs before you commit"


def test_a_keyword_that_does_not_exist_is_found(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "source": ["from dice_ray import train\n", "train('mrpc', nmae='a')"]}
    (tmp_path / "wrong.ipynb").write_text(json.dumps({"cells": [cell]}))
    assert any("nmae" in problem for problem in problems(tmp_path / "wrong.ipynb"))


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path) -> None:
    """Callbacks print into the notebook, progress is shown in one display, and a figure is drawn."""
    outputs = [output for cell in run(code_cells(notebook), tmp_path) for output in cell]
    assert re.search(r"^(epoch \d|\d+ s: \d+ finished)", printed(outputs), re.MULTILINE)
    assert any("</progress>" in shown for shown in displayed(outputs, "text/html"))
    assert displayed(outputs, "image/svg+xml")
