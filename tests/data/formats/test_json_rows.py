"""JSON rows: a document gives the rows of its list, and JSON lines one each, whatever the file is called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dice_ray.config.init import start
from dice_ray.data.formats import text as text_files
from dice_ray.data.formats.base import Bad, Drop, Kept
from dice_ray.data.formats.columns import TextColumns
from dice_ray.data.formats.json_rows import _Document, json_rows
from dice_ray.data.formats.rows import JsonlConfig
from dice_ray.data.formats.text import blocks
from dice_ray.data.guess import guess
from dice_ray.data.records import TextRecord
from dice_ray.errors import DataError

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


def test_a_damaged_line_is_a_bad_row_and_a_damaged_document_an_error_of_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for text in ('{"a": 1}\n{"a\n{"a": 2}', '{"a\n{"a": 2}\n'):
        path.write_text(text)
        rows = list(json_rows(path, "utf-8"))
        assert [isinstance(row, Bad) for _, row in rows] == [line.endswith('"a') for line in text.splitlines()]
    for text, place in (('[\n{"a": 1},\n', "line 3"), ('{"data": [\n{"a": 1}\n{"a": 2}]}', "line 3")):
        path.write_text(text)
        with pytest.raises(DataError, match=f"{place}: expected JSON, found"):
            list(json_rows(path, "utf-8"))


def test_a_document_is_parsed_item_by_item_also_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Items, numbers and escapes that two blocks share, and a document that is larger than its longest item."""
    monkeypatch.setattr(text_files, "_BLOCK", 7)
    path = tmp_path / "a.json"
    rows = [{"text": 'caf\u00e9 \U0001f600 "x"', "n": -1234567.5e3, "deep": [[{}]]}, {"text": "", "n": 12345678901}]
    for indent in (None, 1):
        path.write_text(json.dumps({"n": 1234567890, "data": rows * 3}, indent=indent))
        assert [row for _, row in json_rows(path, "utf-8")] == rows * 3
    path.write_text(json.dumps(ROWS))
    held = _Document(blocks(path))
    assert next(iter(held.items())) == ROWS[0]
    assert len(held._text) < len(json.dumps(ROWS)) / 2, "only what is not yet parsed is held"


@pytest.mark.parametrize(
    "root",
    [
        {name: [row[name] for row in ROWS] for name in ("text", "label")},
        {name: {str(number): row[name] for number, row in enumerate(ROWS)} for name in ("text", "label")},
        {"columns": ["text", "label"], "index": [*range(20)], "data": [[*row.values()] for row in ROWS]},
    ],
)
def test_the_columns_of_pandas_are_rows(root: Any, tmp_path: Path) -> None:
    """`DataFrame.to_json` writes columns by default, which were taken for one row."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps(root))
    assert list(json_rows(path, "utf-8")) == list(enumerate(ROWS, start=1))


@pytest.mark.parametrize("key", ["tokens", "words"])
def test_one_record_with_a_word_of_two_parts_is_a_row(key: str, tmp_path: Path) -> None:
    """The space in it made the lists of words and tags columns of texts and labels."""
    path = tmp_path / "a.json"
    row = {key: ["New York", "is", "big"], "tags": ["B-LOC", "O", "O"]}
    path.write_text(json.dumps(row))
    assert list(json_rows(path, "utf-8")) == [(1, row)]
    path.write_text(json.dumps({key: ["New York is big", "so is Rome", "yes"], "label": ["a", "b", "a"]}))
    assert len(list(json_rows(path, "utf-8"))) == 3, "texts under the same key are a column"
    path.write_text(json.dumps({key: {"0": "New York", "1": "is"}, "label": {"0": "a", "1": "b"}}))
    assert len(list(json_rows(path, "utf-8"))) == 2, "with an object by row it is a column"


def test_several_lists_of_rows_are_an_error_that_names_them(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"old": ROWS, "new": ROWS}))
    with pytest.raises(DataError, match="one list of rows in the document, found 'old', 'new': name the list of each"):
        guess(path)


def test_a_list_of_a_document_is_guessed_by_its_key(tmp_path: Path) -> None:
    """The error of several lists named this form, and init said that there was no such file."""
    texts = [{"text": f"a nice day {number}", "label": "ab"[number % 2]} for number in range(40)]
    (tmp_path / "a.json").write_text(json.dumps({"rows": texts, "classes": [{"id": 0}, {"id": 1}]}))
    found = guess(tmp_path / "a.json#rows")
    assert found.reader == {"jsonl": {"columns": {"text": {"text": "text", "label": "label"}}}}
    starter = start(tmp_path / "a.json#rows")
    assert "a.json#rows" in starter.text
    assert starter.inspection.load.read["train"].kept == 40
    with pytest.raises(DataError, match=r"there must be a file .*b\.json#rows, and there is none"):
        guess(tmp_path / "b.json#rows")


@pytest.mark.parametrize("indent", [None, 2])
def test_one_list_of_a_document_is_read_by_its_key(indent: int | None, tmp_path: Path) -> None:
    """Finds a reader that goes on with the lines of the document, or that takes the key for a part of the name."""
    path, reader = tmp_path / "a.json", JsonlConfig(columns=TextColumns(text=0, label=1))
    path.write_text(
        json.dumps({"n": 1, "none": [], "train": [["a", "x"]], "val": [["b", "y"], ["c", "x"]]}, indent=indent)
    )
    val, other = path.with_name("a.json#val"), path.with_name("a.json#dev")
    assert reader.files(val) == [path]
    assert list(reader.read(val)) == [Kept(1, TextRecord("1", "b", ("y",))), Kept(2, TextRecord("2", "c", ("x",)))]
    with pytest.raises(DataError, match=r"a\.json, the document: expected a list 'dev', found 'none', 'train', 'val'"):
        list(reader.read(other))
    val.write_text('[["d", "z"]]')
    assert list(reader.read(val)) == [Kept(1, TextRecord("1", "d", ("z",)))], "a file of that name"
    val.unlink()
    path.write_text('{"train": [["a", "x"]],\n "val": [["b"')
    with pytest.raises(DataError, match=r"a\.json, line 2: expected JSON, found Expecting ',' delimiter"):
        list(reader.read(val))


def test_choices_of_label_studio_are_those_of_the_first_annotation_that_counts(tmp_path: Path) -> None:
    def annotation(*choices: str, cancelled: bool = False, kind: str = "choices") -> dict[str, Any]:
        result = [{"type": kind, "from_name": "mood", "value": {kind: [choice]}} for choice in choices]
        return {"result": result, "was_cancelled": cancelled}

    annotations = [
        [annotation("x", cancelled=True), annotation("y", "z"), annotation("x")],
        [annotation()],
        [annotation("x", kind="labels")],
        [],
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"data": {"text": "a"}, "annotations": each} for each in annotations]))
    columns = TextColumns(text="data.text", label="annotations.mood")
    assert list(JsonlConfig(columns=columns).read(path)) == [
        Kept(1, TextRecord("1", "a", ("y", "z"))),
        *[Drop(line, "no key 'annotations.mood' for the label") for line in (2, 3, 4)],
    ]


def test_rows_that_are_lists_have_numbered_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('["x", "a"]\n["y"]\n{"0": "z", "1": "b"}\n')
    assert list(JsonlConfig(columns=TextColumns(text=1, label=0)).read(path)) == [
        Kept(1, TextRecord("1", "a", ("x",))),
        Bad(2, "a key '1'", "0"),
        Kept(3, TextRecord("3", "b", ("z",))),
    ]
    assert next(JsonlConfig(columns=TextColumns()).read(path)) == Bad(1, "a JSON object", "['x', 'a']")
    path.write_text(json.dumps([["text", "label"], *([row["text"], "ab"[n % 2]] for n, row in enumerate(ROWS))]))
    with pytest.raises(DataError, match=r"its first row: .* found names of columns, .*label.*: delete it"):
        guess(path)


def test_nested_keys_are_columns_with_dots(tmp_path: Path) -> None:
    """Exports of annotation tools hold the text in an object `data`, which no column could name."""
    path = tmp_path / "a.jsonl"
    row = {"data": {"text": "a nice day", "by": {"id": 7}}, "label": "x"}
    path.write_text(json.dumps(row))
    columns = TextColumns(text="data.text", label="label", id="data.by.id")
    assert list(JsonlConfig(columns=columns).read(path)) == [Kept(1, TextRecord("7", "a nice day", ("x",)))]
