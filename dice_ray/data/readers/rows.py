"""JSON lines and Parquet: rows with named values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from dice_ray.data.readers.base import UNLABELLED, Bad, Drop, Found, Labels, ReaderBranch, lines, shown, unreadable
from dice_ray.data.readers.columns import ColumnsBranch, ColumnsConfig, PairColumns
from dice_ray.data.records import Record
from dice_ray.errors import nearest


class JsonlConfig(ReaderBranch):
    """An object a line.

    Attributes:
        columns: Which keys make a record.
    """

    name = "jsonl"

    columns: ColumnsConfig = PairColumns()

    def yields(self) -> type[Record]:
        return self.columns.yields()

    def read(self, path: Path, labels: Labels = "read") -> Iterator[Found]:
        for line, text in lines(path):
            if not text.strip():
                continue
            try:
                row = json.loads(text)
            except json.JSONDecodeError as error:
                yield Bad(line, "a JSON object", f"{error.msg} at character {error.colno}")
                continue
            yield from named(self.columns, [(line, row)], labels)


class ParquetConfig(ReaderBranch):
    """A Parquet file.

    Attributes:
        columns: Which columns make a record.
    """

    name = "parquet"

    columns: ColumnsConfig = PairColumns()

    def yields(self) -> type[Record]:
        return self.columns.yields()

    def read(self, path: Path, labels: Labels = "read") -> Iterator[Found]:
        import pyarrow
        from pyarrow import parquet

        names = [str(column) for column in self.columns.used(labels).values()]
        try:
            with parquet.ParquetFile(path) as file:
                if missing := [name for name in names if name not in file.schema_arrow.names]:
                    known = ", ".join(map(repr, file.schema_arrow.names))
                    raise unreadable(path, "its schema", f"a column named {missing[0]!r}", known)
                line = 0
                for batch in file.iter_batches(columns=names):
                    yield from named(self.columns, enumerate(batch.to_pylist(), start=line + 1), labels)
                    line += batch.num_rows
        except pyarrow.ArrowException as error:
            raise unreadable(path, "the file", "Parquet", str(error).splitlines()[0]) from None


def first_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file with all their columns."""
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=1000):
                yield from batch.to_pylist()
    except pyarrow.ArrowException as error:
        raise unreadable(path, "the file", "Parquet", str(error).splitlines()[0]) from None


def named(columns: ColumnsBranch, rows: Iterable[tuple[int, Any]], labels: Labels = "read") -> Iterator[Found]:
    """The records of rows with named values."""
    used = {use: str(column) for use, column in columns.used(labels).items()}
    for line, row in rows:
        yield _record(columns, used, line, row) if isinstance(row, dict) else Bad(line, "a JSON object", shown(row))


def _record(columns: ColumnsBranch, used: dict[str, str], line: int, row: dict[str, Any]) -> Found:
    """Texts are strings, ids and labels may be numbers, several labels stand in a list."""
    for use, column in used.items():
        if column not in row:
            close = nearest(column, row)
            found = f"{', '.join(row)}{f'; did you mean {close!r}?' if close else ''}"
            return (
                Drop(line, f"no key {column!r} for the label")
                if use == "label"
                else Bad(line, f"a key {column!r}", found)
            )
        if use != "label" and not isinstance(row[column], str) and not (use == "id" and type(row[column]) is int):
            return Bad(line, f"a text as {column!r}", shown(row[column]))
    values = {use: str(row[column]) for use, column in used.items() if use != "label"}
    if "label" not in used:
        return columns.record(line, values, [])
    label = row[used["label"]]
    given = label if isinstance(label, list) else [] if label is None else [label]
    if any(not isinstance(item, str | int | float) for item in given):
        return Bad(line, f"a label as {used['label']!r}", shown(label))
    texts = [item if isinstance(item, str) else json.dumps(item) for item in given]
    labels = texts if isinstance(label, list) else [part for text in texts for part in columns.labels(text)]
    if not labels:
        return Drop(line, UNLABELLED)
    return columns.record(line, values, labels)
