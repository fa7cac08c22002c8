"""The commands and the code of README and of docs/ run, in order; and the documentation can be built."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import Block, blocks, guides
from tests.house.tree import REPOSITORY

BASH = ("bash", "-euo", "pipefail", "-c")
HERE = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def run_block(block: Block) -> None:
    """Run a block in this folder, or write the file that it is the content of."""
    if block.file:
        Path(block.file).write_text(block.text)
    elif block.is_run and block.language in ("bash", "python"):
        start = BASH if block.language == "bash" else (sys.executable, "-c")
        done = subprocess.run([*start, block.text], env=os.environ | HERE, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{block.place} failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("pages", [["README.md"], guides()], ids=["README", "docs"])
def test_the_blocks_run_in_order_in_an_empty_folder(pages: list[str]) -> None:
    of_pages = [block for page in pages for block in blocks(page)]
    assert any(block.is_run and block.language in ("bash", "python") for block in of_pages)
    for block in of_pages:
        run_block(block)


def test_a_block_that_fails_is_found() -> None:
    with pytest.raises(AssertionError, match=r"page\.md:7 failed"):
        run_block(Block("page.md", 7, "bash", "false\ntrue\n"))


@pytest.mark.slow
def test_the_documentation_is_built_without_warnings(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-d",
        "trees",
        str(REPOSITORY / "docs"),
        "html",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "html/settings.html").read_text()
    assert "training.checkpoint_minutes" in page
    assert "SelfAdjustingDiceLoss" in (tmp_path / "html/api.html").read_text()
