"""The folder of a run: its files are replaced as a whole, also by a machine that loses power."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dice_ray.run.folder import write_atomically


def test_a_file_is_on_the_disk_before_it_takes_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, rename = tmp_path / "config.yaml", Path.replace
    file.write_text("old")
    events: list[str] = []

    def renamed(self: Path, target: Path) -> Path:
        events.append("renamed")
        return rename(self, target)

    monkeypatch.setattr(
        os, "fsync", lambda number: events.append(f"{os.fstat(number).st_size} bytes, {file.read_text()}")
    )
    monkeypatch.setattr(Path, "replace", renamed)
    write_atomically(file, "newer")
    assert events == ["5 bytes, old", "renamed"]
    assert file.read_text() == "newer"
