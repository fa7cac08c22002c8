"""Columns of groups and times: read by every reader of rows, and one error where a value is missing or none."""

from __future__ import annotations

import json
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from dice_ray.data.formats.base import Kept
from dice_ray.data.formats.split_columns import _group_of, time_of
from dice_ray.data.records import QuestionRecord
from dice_ray.data.sources import DataConfig, load
from dice_ray.errors import DataError

TEXT = {"text": {"text": "text", "label": "label"}}
ROWS = [
    {"text": "all is well", "label": "no", "customer": "A 1", "at": "2024-03-01"},
    {"text": "a fire", "label": "yes", "customer": "B", "at": "2024-03-02T10:30:00+02:00"},
]


def data(path: Path, reader: dict[str, Any], by: dict[str, Any] | None = None, **more: Any) -> DataConfig:
    files = {"folder": str(path.parent), "train": path.name, "reader": reader, **more}
    return DataConfig.model_validate({"source": {"files": files}, **(by or {"groups": "customer", "time": "at"})})


def kept(config: DataConfig) -> list[Kept]:
    rows = list(config.read()["train"].rows())
    assert all(isinstance(row, Kept) for row in rows), rows
    return rows  # type: ignore[return-value]


def csv(path: Path, rows: list[dict[str, Any]], header: bool = True) -> Path:
    lines = [",".join(map(str, row.values())) for row in rows]
    path.write_text("\n".join([",".join(rows[0])] * header + lines))
    return path


def written(folder: Path, kind: str) -> DataConfig:
    path, columns = folder / f"rows.{kind}", {"columns": TEXT}
    if kind == "csv":
        return data(csv(path, ROWS), {"tables": {"quoting": False, "delimiter": ",", **columns}})
    if kind == "headless":
        numbered = {"columns": {"text": {"text": 0, "label": 1}}, "header": False}
        reader = {"tables": {"quoting": False, "delimiter": ",", **numbered}}
        return data(csv(path, ROWS, header=False), reader, {"groups": -2, "time": 3})
    if kind == "jsonl":
        path.write_text("\n".join(json.dumps({**row, "meta": {"c": row["customer"]}}) for row in ROWS))
        return data(path, {"jsonl": columns}, {"groups": "meta.c", "time": "at"})
    table = pa.table({key: [row[key] for row in ROWS] for key in ("text", "label", "customer")})
    moments = [datetime(2024, 3, 1), datetime(2024, 3, 2, 8, 30)]
    table = table.append_column("at", pa.array(moments, pa.timestamp("ns")))
    if kind == "parquet":
        parquet.write_table(table, path)
    else:
        feather.write_feather(table, str(path), compression="uncompressed")
    return data(path, {kind: columns})


@pytest.mark.parametrize("kind", ["csv", "headless", "jsonl", "parquet", "arrow"])
def test_readers_of_rows_give_the_group_and_the_time_of_each_record(kind: str, tmp_path: Path) -> None:
    """Finds a reader whose rows do not pass a value on, and a time zone that is not taken into account."""
    first, second = kept(written(tmp_path, kind))
    assert (first.document, first.record.document) == ("A 1", "A 1")  # type: ignore[union-attr]
    assert (second.document, second.record.document) == ("B", "B")  # type: ignore[union-attr]
    assert [first.time, second.time] == [np.datetime64("2024-03-01T00:00:00"), np.datetime64("2024-03-02T08:30:00")]


def test_the_questions_of_a_group_keep_their_paragraphs(tmp_path: Path) -> None:
    """Questions on one paragraph have one `group`: the user's group must not take its place, but stand above it."""
    rows = [
        {
            "id": f"{n}",
            "question": "Who?",
            "context": f"Ada {n // 2}",
            "answers": {"text": ["Ada"], "answer_start": [0]},
        }
        for n in range(4)
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({**row, "book": 7}) for row in rows))
    records = [row.record for row in kept(data(path, {"jsonl": {"columns": "question"}}, {"groups": "book"}))]
    assert {record.document for record in records if isinstance(record, QuestionRecord)} == {"7"}
    assert len({record.group for record in records if isinstance(record, QuestionRecord)}) == 2


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"customer": " "}, r"line 3: expected a group as 'customer' \(data\.groups\), found ' '"),
        ({"at": "soon"}, r"line 3: expected an ISO date, a date-time or a number as 'at' \(data\.time\), found 'soon'"),
        ({"at": "03/01/2024"}, r"an ISO date.* found '03/01/2024'"),
        ({"at": "nan"}, r"an ISO date.* found 'nan'"),
        ({"at": 17}, r"data\.time: the values of 'at' must all be dates or all be numbers, got both"),
    ],
)
def test_a_value_that_is_missing_or_none_is_one_error(row: dict[str, Any], expected: str, tmp_path: Path) -> None:
    path = csv(tmp_path / "a.csv", [ROWS[0], ROWS[1] | row, *(ROWS * 10)])
    config = data(path, {"tables": {"quoting": False, "delimiter": ",", "columns": TEXT}})
    with pytest.raises(DataError, match=expected):
        load(config)


def test_a_column_that_does_not_exist_names_the_nearest(tmp_path: Path) -> None:
    path = csv(tmp_path / "a.csv", ROWS)
    config = data(path, {"tables": {"quoting": False, "delimiter": ",", "columns": TEXT}}, {"groups": "custmer"})
    with pytest.raises(DataError, match=r"line 1: expected a column named 'custmer'.*did you mean 'customer'\?"):
        list(config.read()["train"].rows())
    (tmp_path / "a.jsonl").write_text(json.dumps(ROWS[0]))
    (row,) = data(tmp_path / "a.jsonl", {"jsonl": {"columns": TEXT}}, {"groups": "custmer"}).read()["train"].rows()
    assert "did you mean 'customer'?" in str(row)


def test_only_the_rows_that_are_drawn_from_need_times(tmp_path: Path) -> None:
    """A test file of one's own may lack the dates: only dev is drawn by them."""
    csv(tmp_path / "test.csv", [{key: value for key, value in ROWS[0].items() if key != "at"}])
    reader = {"tables": {"quoting": False, "delimiter": ",", "columns": TEXT}}
    config = data(csv(tmp_path / "a.csv", ROWS), reader, test="test.csv")
    (row,) = config.read()["test"].rows()
    assert isinstance(row, Kept)
    assert (row.document, row.time) == ("A 1", 0.0)


def test_values_of_every_type() -> None:
    assert [_group_of(value) for value in (3, 3.0, "3.0", 3.5, "3 ", True)] == ["3", "3", "3", "3.5", "3", "True"]
    assert [_group_of(value) for value in (None, float("nan"), "  ")] == ["", "", ""]
    assert time_of(date(2024, 3, 1)) == time_of("2024-03-01") == time_of("2024-03-01 01:00:00+01:00")
    assert time_of("0001-01-01T00:00:00+01:00") is None
    assert [time_of(value) for value in (2, "2.5", "1e3", "inf", True, None, "")] == [
        2,
        2.5,
        1000,
        None,
        None,
        None,
        None,
    ]
