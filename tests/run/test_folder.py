"""The folder of a run: what it holds is checked before it is used."""

from __future__ import annotations

from pathlib import Path

import pytest

from dice_ray.errors import RunError
from dice_ray.run.folder import TASK, stored_digest


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", '{"data": 1}', '{"classes": 1, "facts": [], "data": ""}', "\xff", "[" * 100_000),
        '{"classes": [], "facts": [{"name": "label", "link": "softmax", "classes": ["a"]}], "data": ""}',
        '{"classes": [], "facts": [{"name": "x", "link": "softmax", "classes": ["a"], "counts": []}], "data": ""}',
        '{"classes": [], "facts": [{"name": "x", "link": "x", "classes": ["a"], "counts": [1]}], "data": ""}',
    ],
)
def test_a_damaged_description_of_a_task_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / TASK).write_text(text, encoding="latin-1")
    with pytest.raises(RunError, match=r"task\.json must be as dice_ray wrote it, but is damaged"):
        stored_digest(tmp_path)
