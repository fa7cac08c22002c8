"""Every file says what it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.tree import PACKAGES, REPOSITORY, first_sentence


def test_every_file_says_what_it_is() -> None:
    files = [file for package in PACKAGES for file in (REPOSITORY / package).rglob("*.py")]
    assert len(files) > 30
    assert not [file for file in files if file.stat().st_size and not first_sentence(file)]


@pytest.mark.parametrize(
    ("name", "source", "sentence"),
    [
        ("module.py", '"""One thing, and\nanother. More.\n\nFurther."""\n', "One thing, and another"),
        ("module.py", '"""conll.py reads v1.2 files."""\n', "conll.py reads v1.2 files"),
        ("module.py", '"""Dice (eq. 5 of Li et al. 2020). More."""\n', "Dice (eq. 5 of Li et al. 2020)"),
        ("module.py", "import os\n", ""),
        ("preset.yaml", "# Table 2 of the paper. Took\n# an hour.\ntask: tagging\n", "Table 2 of the paper"),
    ],
)
def test_first_sentence(tmp_path: Path, name: str, source: str, sentence: str) -> None:
    file = tmp_path / name
    file.write_text(source)
    assert first_sentence(file) == sentence
