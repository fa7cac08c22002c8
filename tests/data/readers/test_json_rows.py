"""JSON rows: a document gives the rows of its list, and JSON lines one each, whatever the file is called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dice_ray.data.guess import guess
from dice_ray.data.readers.base import Bad, Kept
from dice_ray.data.readers.columns import TextColumns
from dice_ray.data.readers.json_rows import json_rows
from dice_ray.data.readers.rows import JsonlConfig
from dice_ray.data.records import TextRecord

ROWS = [{"text": f"a nice day {number}", "label": number % 2} for number in range(20)]


@pytest.mark.parametrize("root", [ROWS, {"data": ROWS}, {"version": "1", "rows": ROWS, "labels": ["a", "b"]}])
@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_of_objects_is_read_and_recognised(root: Any, indent: int | None, tmp_path: Path) -> None:
    """Only JSON lines were read, and a list of objects was refused by every reader."""
    path = tmp_path / "train.json"
    path.write_text(json.dumps(root, indent=indent))
    assert list(json_rows(path, "utf-8")) == list(enumerate(ROWS, start=1))
    assert guess(path).reader == {"jsonl": {"columns": {"text": {"text": "text", "label": "label"}}}}


@pytest.mark.parametrize(
    "text", ['{"text": "a b", "answers": [{"text": "a"}]}', '["a b", {"entities": []}]\n["c", {}]']
)
def test_rows_that_look_like_documents_are_rows(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    assert [row for _, row in json_rows(path, "utf-8")] == [json.loads(line) for line in text.split("\n")]


def test_a_damaged_document_and_a_damaged_line_are_bad_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for text, bad in (('[\n{"a": 1},\n', [1, 2]), ('{"a": 1}\n{"a\n{"a": 2}', [2])):
        path.write_text(text)
        assert [line for line, row in json_rows(path, "utf-8") if isinstance(row, Bad)] == bad


def test_nested_keys_are_columns_with_dots(tmp_path: Path) -> None:
    """Exports of annotation tools hold the text in an object `data`, which no column could name."""
    path = tmp_path / "a.jsonl"
    row = {"data": {"text": "a nice day", "by": {"id": 7}}, "label": "x"}
    path.write_text(json.dumps(row))
    columns = TextColumns(text="data.text", label="label", id="data.by.id")
    assert list(JsonlConfig(columns=columns).read(path)) == [Kept(1, TextRecord("7", "a nice day", ("x",)))]
