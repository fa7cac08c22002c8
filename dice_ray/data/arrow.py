"""Records and rows in Arrow files: written a chunk at a time, mapped into memory, made into objects when asked for."""

from __future__ import annotations

import mmap
import types
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar, get_args, get_origin, get_type_hints, overload

import numpy as np
import pyarrow as pa

from dice_ray.data.records import Record

ItemT = TypeVar("ItemT")

ARROW_TYPES: Mapping[type, pa.DataType] = {str: pa.string(), int: pa.int64(), bool: pa.bool_(), float: pa.float64()}
PlainRow: TypeAlias = dict[str, Any]


class Writer:
    """Writes one Arrow file, a batch at a time; the first batch decides its columns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: pa.ipc.RecordBatchFileWriter | None = None

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, batch: pa.RecordBatch) -> None:
        if self._file is None:
            self._file = pa.ipc.new_file(str(self._path), batch.schema)
        self._file.write_batch(batch)


class Table:
    """An Arrow file mapped into memory: it can be read even when it has been deleted meanwhile."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._file = pa.ipc.open_file(pa.py_buffer(self._mapped))
        sizes = (self._file.get_batch(number).num_rows for number in range(self._file.num_record_batches))
        self._ends: list[int] = [0, *accumulate(sizes)]

    def __len__(self) -> int:
        return self._ends[-1]

    def batch(self, number: int) -> pa.RecordBatch:
        return self._file.get_batch(number)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All batches in their order; what was read does not stay in the memory of this process."""
        for number in range(self._file.num_record_batches):
            yield self.batch(number)
            self._mapped.madvise(mmap.MADV_DONTNEED)

    def place(self, index: int) -> tuple[int, int]:
        """The number of the batch that holds a row, and its place there."""
        number = bisect_right(self._ends, index) - 1
        return number, index - self._ends[number]


class Stored(Sequence[ItemT], ABC, Generic[ItemT]):
    """The rows of a table as objects, made anew whenever they are asked for."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def __len__(self) -> int:
        return len(self.table)

    @overload
    def __getitem__(self, index: int) -> ItemT: ...

    @overload
    def __getitem__(self, index: slice) -> list[ItemT]: ...

    def __getitem__(self, index: int | slice) -> ItemT | list[ItemT]:
        if isinstance(index, slice):
            return [self._one(place) for place in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"row {index} of {len(self)}")
        return self._one(index % len(self))

    def __iter__(self) -> Iterator[ItemT]:
        for batch in self.table.batches():
            yield from self._all(batch)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return NotImplemented if not isinstance(other, Sequence) else False
        return all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    @abstractmethod
    def _one(self, index: int) -> ItemT: ...

    @abstractmethod
    def _all(self, batch: pa.RecordBatch) -> Iterator[ItemT]: ...


class Records(Stored[Record]):
    """Records of one kind."""

    def __init__(self, table: Table, kind: type[Record]) -> None:
        super().__init__(table)
        self._kind, self._types = kind, field_types(kind)

    def _one(self, index: int) -> Record:
        number, place = self.table.place(index)
        return next(self._all(self.table.batch(number).slice(place, 1)))

    def _all(self, batch: pa.RecordBatch) -> Iterator[Record]:
        columns = (
            _made(column.to_pylist(), kind) for column, kind in zip(batch.columns, self._types.values(), strict=True)
        )
        return map(self._kind, *columns)


class Rows(Stored[PlainRow]):
    """Rows of numbers, texts and flat lists of numbers; the lists are arrays that lie in the file."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._columns: dict[int, dict[str, Column]] = {}

    def _one(self, index: int) -> PlainRow:
        number, place = self.table.place(index)
        if number not in self._columns:
            batch = self.table.batch(number)
            self._columns[number] = {name: Column(batch.column(name)) for name in batch.schema.names}
        return {name: column.at(place) for name, column in self._columns[number].items()}

    def _all(self, batch: pa.RecordBatch) -> Iterator[PlainRow]:
        columns = [Column(column).every() for column in batch.columns]
        return (dict(zip(batch.schema.names, values, strict=True)) for values in zip(*columns, strict=True))


class Column:
    """A column of rows in one batch: its values without a call of Arrow for each."""

    def __init__(self, array: pa.Array) -> None:
        self._array = array
        if pa.types.is_list(array.type):
            self._values = array.values.to_numpy()
            self._offsets = memoryview(array.offsets.to_numpy())
            self.at: Callable[[int], Any] = self._list
        elif pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
            self.at = memoryview(array.to_numpy()).__getitem__
        else:
            self.at = self._scalar

    def every(self) -> list[Any]:
        if not pa.types.is_list(self._array.type):
            every: list[Any] = self._array.to_pylist()
            return every
        return [self._values[start:end] for start, end in pairwise(self._offsets.tolist())]

    def _list(self, place: int) -> Any:
        return self._values[self._offsets[place] : self._offsets[place + 1]]

    def _scalar(self, place: int) -> Any:
        return self._array[place].as_py()


def field_types(kind: type[Record]) -> dict[str, Any]:
    """The types of a record's fields, by name."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def batch_of_records(records: Sequence[Record]) -> pa.RecordBatch:
    """Records of one kind as columns."""
    types_by_name = field_types(type(records[0]))
    arrays = [
        pa.array([getattr(record, name) for record in records], _arrow_type(kind))
        for name, kind in types_by_name.items()
    ]
    return pa.RecordBatch.from_arrays(arrays, list(types_by_name))


def batch_of_rows(rows: Sequence[PlainRow]) -> pa.RecordBatch:
    """Rows with the same keys as columns."""
    return pa.RecordBatch.from_arrays([_column([row[name] for row in rows]) for name in rows[0]], list(rows[0]))


def _column(values: list[Any]) -> pa.Array:
    if isinstance(values[0], str | int | float):  # a bool is an int
        return pa.array(values, ARROW_TYPES[type(values[0])])
    sizes = [len(value) for value in values]
    offsets = np.fromiter(chain([0], accumulate(sizes)), np.int32, len(sizes) + 1)
    is_real = any(isinstance(value[0], float | np.floating) for value in values if len(value))
    flat = np.fromiter(chain.from_iterable(values), np.float64 if is_real else np.int32, int(offsets[-1]))
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat))


def _arrow_type(kind: Any) -> pa.DataType:
    """The Arrow type of a field: a scalar, a tuple of any length, or a tuple of named or numbered parts."""
    if kind in ARROW_TYPES:
        return ARROW_TYPES[kind]
    if parts := _parts(kind):
        return pa.struct([(name, _arrow_type(part)) for name, part in parts.items()])
    return pa.list_(_arrow_type(get_args(kind)[0]))


def _parts(kind: Any) -> dict[str, Any]:
    """The parts of a tuple of stated length; none of any other type."""
    if get_origin(kind) is tuple:
        arguments = get_args(kind)
        return {} if Ellipsis in arguments else {str(number): part for number, part in enumerate(arguments)}
    return get_type_hints(kind) if isinstance(kind, type) and issubclass(kind, tuple) else {}


def _made(values: Iterable[Any], kind: Any) -> Iterable[Any]:
    """What Arrow gives as lists and mappings, as the tuples of the field's type."""
    if kind in ARROW_TYPES:
        return values
    if parts := _parts(kind):
        make = kind._make if hasattr(kind, "_make") else tuple
        return [make(next(iter(_made([value[name]], part))) for name, part in parts.items()) for value in values]
    (item, _) = get_args(kind)
    return (
        [tuple(value) for value in values] if item in ARROW_TYPES else [tuple(_made(value, item)) for value in values]
    )
