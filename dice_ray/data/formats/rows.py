"""JSON, Parquet and Arrow: rows with named columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import pyarrow as pa

from dice_ray.data.formats.base import (
    NUM_ROWS,
    READER,
    Bad,
    Drop,
    Given,
    Guess,
    Labels,
    ReaderBranch,
    RowResult,
    Sample,
    TextReaderBranch,
)
from dice_ray.data.formats.candidates import begins_with_names, choose_columns
from dice_ray.data.formats.columns import ID, LABELS, ONE_HOT, TEXTS, ColumnsBranch, PairColumns, TextColumns
from dice_ray.data.formats.json_rows import flat, json_rows, parted, row_lists
from dice_ray.data.formats.lists import QuestionColumns, ReadColumns, SpanColumns, TaggedColumns, guess_lists
from dice_ray.data.formats.text import binary_format, unreadable
from dice_ray.data.records import Record
from dice_ray.data.split_names import lists_of_splits
from dice_ray.errors import DataError, first_line, meant, shown
from dice_ray.settings import Choice

_ClassNames: TypeAlias = Mapping[str, tuple[str, ...]]
"""The class names of each column of class labels."""


def class_names(features: Mapping[str, Any]) -> _ClassNames:
    """The class names in features, as `Features.to_dict` or the metadata of a Parquet file write them."""
    return {column: names for column, feature in features.items() if (names := _names(feature))}


def _class_names_in_metadata(metadata: Mapping[bytes, bytes] | None) -> _ClassNames:
    """The class names in the metadata that `datasets` writes into a Parquet file; empty for other files."""
    try:
        features = json.loads((metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, TypeError, ValueError):
        return {}
    return class_names(features) if isinstance(features, dict) else {}


def _to_class_names(value: Any, names: tuple[str, ...]) -> Any:
    """Replace a class number, or a list of them, by names; -1 outside a list is no label, as GLUE's test sets have it.

    A LookupError where a number is not that of a class.
    """
    if isinstance(value, list):
        return [_name(number, names) for number in value]
    return None if value is None or value == -1 else _name(value, names)


def _name(number: Any, names: tuple[str, ...]) -> str:
    # `type() is`, as True would be class 1.
    if type(number) is not int or not 0 <= number < len(names):
        raise LookupError(number)
    return names[number]


def _names(feature: Any) -> tuple[str, ...]:
    """The class names of a feature that is a class label or a list of them, else ()."""
    match feature:
        case {"_type": "ClassLabel", "names": [*names]}:
            return tuple(map(str, names))
        case {"_type": "List" | "LargeList" | "Sequence", "feature": inner} | [inner]:
            return _names(inner)
    return ()


RowColumnsConfig: TypeAlias = Annotated[
    PairColumns | TextColumns | TaggedColumns | SpanColumns | QuestionColumns, Choice()
]
"""The columns of rows with named columns, some of which may hold lists."""
_BATCH_SIZE = 1000
"""Rows of a Parquet file in memory at once; an Arrow file has batches of its own."""
_ANY_VALUE = LABELS | {"words", "groups", "time"}
"""The uses of columns whose values need not be strings."""


class JsonlConfig(TextReaderBranch):
    """JSON objects: one a line, or a list of them in one document, which may be in an object (`{"data": [...]}`).

    Of a document with several lists, as `{"train": [...], "val": [...]}`, a preset reads one as `data.json#train`.

    Attributes:
        columns: The keys that make a record; `data.text` is the key `text` in the object `data`. Of rows that are
            lists, such as `["text", "label"]`, they are numbers, 0 the first.
    """

    name = "jsonl"
    reads = ("text", "list")

    columns: RowColumnsConfig = PairColumns()

    def yields(self) -> type[Record]:
        return self.columns.yields()

    def files(self, path: Path) -> list[Path]:
        return [parted(path)[0]]

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        file, key = parted(path)
        rows = json_rows(file, self.encoding, key)
        if all(isinstance(column, int) for column in self.columns.used(labels).values()):
            rows = (
                (line, {str(number): item for number, item in enumerate(row)} if isinstance(row, list) else row)
                for line, row in rows
            )
        yield from read_named_rows(self.columns, rows, labels)

    @classmethod
    def fits(cls, sample: Sample) -> Guess | str:
        """JSON lines, or a document with a list of rows, or with one for each split."""
        path = sample.path
        if parted(path)[1] is not None:
            return cls._fits_rows(sample)
        if not sample.first_line.startswith(("{", "[")):
            return "it does not begin with { or ["
        keys = row_lists(path, sample.encoding)
        lists = lists_of_splits(keys) if len(keys) > 1 else {}
        if not lists:
            return cls._fits_rows(sample)
        found = cls._fits_rows(replace(sample, path=path.with_name(f"{path.name}#{lists['train']}")))
        if isinstance(found, str):
            return found
        others = ", ".join(key for key in keys if key not in lists.values())
        why = "The lists of the splits in the document." + (f" These are not read: {others}." if others else "")
        return replace(found, lists=lists, why={f"{READER.rpartition('.')[0]}.train": why} | found.why)

    @classmethod
    def _fits_rows(cls, sample: Sample) -> Guess | str:
        """The guess for rows of the whole file or of one list in it."""
        file, key = parted(sample.path)
        rows = list[Any]()
        try:
            for _, row in islice(json_rows(file, sample.encoding, key), NUM_ROWS):
                if not isinstance(row, Bad):
                    rows.append(dict(enumerate(row)) if isinstance(row, list) else flat(row))
                elif not rows:
                    return f"line {row.place}: {row.actual}"
        except DataError as error:
            if rows:  # it is JSON, which no other reader reads
                raise
            return str(error).removeprefix(f"{file}, ")
        are_numbered = bool(rows) and isinstance(rows[0], dict) and 0 in rows[0]
        if are_numbered and begins_with_names([[*row.values()] for row in rows if isinstance(row, dict)]):
            names = shown([*rows[0].values()])
            raise unreadable(file, "its first row", "values", f"names of columns, {names}: delete it")
        kind = "Lists of values, numbered from 0." if are_numbered else "Objects with the same keys."
        return _guess_rows(cls, sample, rows, kind)


class ParquetConfig(ReaderBranch):
    """A Parquet file; class labels that `datasets` stored as numbers are replaced by their names.

    Attributes:
        columns: The columns that make a record.
    """

    name = "parquet"
    reads = ("Parquet",)

    columns: RowColumnsConfig = PairColumns()

    def yields(self) -> type[Record]:
        return self.columns.yields()

    def read(self, path: Path, labels: Labels = "read") -> Iterator[RowResult]:
        used = {use: str(column) for use, column in self.columns.used(labels).items()}
        with _table_of(path) as (schema, read_columns):
            if labels == "ignored" and (id_ := used.pop("id", ID)) in schema.names:
                used["id"] = id_  # a file to predict need not have ids
            names = list(used.values())
            if missing := [name for name in names if name not in schema.names]:
                known = ", ".join(map(repr, schema.names)) + meant(missing[0], schema.names)
                raise unreadable(path, "its schema", f"a column named {missing[0]!r}", known)
            classes = _class_names_in_metadata(schema.metadata)
            yield from read_named_rows(self.columns, enumerate(read_columns(names), start=1), labels, classes)

    @classmethod
    def fits(cls, sample: Sample) -> Guess | str:
        with _table_of(sample.path) as (schema, read_columns):
            rows = list(islice(read_columns(schema.names), NUM_ROWS))
        return _guess_rows(cls, sample, rows, f"{'An Arrow' if cls is ArrowConfig else 'A Parquet'} file.")


class ArrowConfig(ParquetConfig):
    """A file in Arrow's format, which is also that of Feather and of `datasets`; class labels as in Parquet."""

    name = "arrow"
    reads = ("Arrow",)


@contextmanager
def _table_of(path: Path) -> Iterator[tuple[pa.Schema, Callable[[list[str]], Iterator[dict[str, Any]]]]]:
    """The schema of a Parquet or Arrow file, and a function that yields its rows with some of its columns."""
    from pyarrow import parquet

    kind = binary_format(path) or "Parquet"
    try:
        with path.open("rb") as file:
            if kind == "Parquet":
                table = parquet.ParquetFile(file)
                schema, batches = table.schema_arrow, lambda names: table.iter_batches(_BATCH_SIZE, columns=names)
            elif file.read(6) == b"ARROW1":
                opened = pa.ipc.open_file(file)
                whole = map(opened.get_batch, range(opened.num_record_batches))
                schema, batches = opened.schema, lambda names: (_sound(batch, names) for batch in whole)
            else:
                stream = pa.ipc.open_stream(path)
                schema, batches = stream.schema, lambda names: (_sound(batch, names) for batch in stream)
            yield schema, lambda names: (row for batch in batches(names) for row in batch.to_pylist())
    # An OSError without a number is one of Arrow's own; a text that is not in UTF-8 is found when it is read.
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise unreadable(path, "the file", f"a whole file of {kind}", f"none: {first_line(error)}") from None


def _sound(batch: pa.RecordBatch, names: list[str]) -> pa.RecordBatch:
    """Some columns of a batch. Arrow does not check what it reads: a damaged offset would end the process."""
    batch.validate(full=True)
    return batch.select(names)


def read_named_rows(
    columns: ColumnsBranch,
    rows: Iterable[tuple[int, Any]],
    labels: Labels = "read",
    classes: _ClassNames | None = None,
) -> Iterator[RowResult]:
    """The results of numbered rows with named columns, or `Bad`; class numbers become the names of `classes`."""
    used = {use: str(column) for use, column in columns.used(labels).items()}
    numbered = {column: names for column, names in (classes or {}).items() if column in used.values()}
    texts = [used[use] for use in TEXTS & used.keys()]
    for line, row in rows:
        if not isinstance(row, dict):
            yield row if isinstance(row, Bad) else Bad(line, "a JSON object", shown(row))
            continue
        for column, names in numbered.items():
            try:
                row[column] = _to_class_names(row[column], names)
            except LookupError as error:
                number = shown(error.args[0])
                yield Bad(line, f"numbers of the {len(names)} classes of {column!r}, the first is 0", number)
                break
        else:
            row = flat(row)
            row |= {column: "" for column in texts if row.get(column, "") is None}
            yield _record(columns, _with_optional_id(used, row) if labels == "ignored" else used, line, row)


def _with_optional_id(used: dict[str, str], row: dict[str, Any]) -> dict[str, str]:
    """The used columns of a row to predict: it need not have an id, and by default a column `id` is one."""
    column = used.get("id", ID)
    others = {use: name for use, name in used.items() if use != "id"}
    return {"id": column} | others if isinstance(row.get(column), str | int) else others


def _record(columns: ColumnsBranch, used: dict[str, str], line: int, row: dict[str, Any]) -> RowResult:
    """Texts must be strings; ids and labels may be numbers, and several labels are a list."""
    for use, column in used.items():
        if column not in row:
            if use in LABELS:
                return Drop(line, f"no key {column!r} for the label")
            return Bad(line, f"a key {column!r}", f"{', '.join(row)}{meant(column, row)}")
        is_text = isinstance(row[column], str) or (use == "id" and type(row[column]) is int)
        if not is_text and use not in _ANY_VALUE and not use.startswith(ONE_HOT):
            return Bad(line, f"a text as {column!r}", shown(row[column]))
    return columns.row(line, {use: str(row[column]) if use == "id" else row[column] for use, column in used.items()})


def guess_named_rows(read: ReadColumns, path: str, rows: Sequence[Any], given: Given, why: str = "") -> Guess | str:
    """The guess for rows with named columns: tagged words, spans, questions, or texts with labels.

    Of the first rows, others than objects are left out. `why` is the reason for the reader.
    """
    are_given = given.columns or given.splits
    rows = [row if are_given else _without_bookkeeping(row) for row in rows if isinstance(row, dict)]
    are_named = bool(rows) and all(isinstance(column, str) for column in rows[0])
    if are_named and not given.columns and isinstance(found := guess_lists(rows, read, path), Guess):
        return found
    chosen = choose_columns(rows, given)
    if isinstance(chosen, str):
        return chosen
    columns, why_columns = chosen
    return read(columns).guess({READER: why, path: why_columns})


def _guess_rows(reader: type[ReaderBranch], sample: Sample, rows: Sequence[Any], why: str) -> Guess | str:
    path = f"{READER}.{reader.name}.columns"
    return guess_named_rows(lambda columns: sample.attempt(reader, columns=columns), path, rows, sample.given, why)


def _without_bookkeeping(row: dict[Any, Any]) -> dict[Any, Any]:
    """A row of Label Studio's JSON-MIN without the numbers of annotators, which repeat as labels do, and the like."""
    exported = {"annotator", "lead_time"}
    bookkeeping = exported | {"annotation_id", "created_at", "updated_at"}
    return {key: value for key, value in row.items() if key not in bookkeeping} if row.keys() >= exported else row
