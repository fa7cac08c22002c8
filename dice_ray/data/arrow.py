"""Records and rows stored in Arrow files: written in batches, memory-mapped, made into objects on access."""

from __future__ import annotations

import mmap
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from itertools import accumulate, chain, pairwise
from operator import eq
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar, get_args, get_origin, get_type_hints, overload

import numpy as np
import pyarrow as pa

from dice_ray.data.records import Record

_ItemT = TypeVar("_ItemT")

_ARROW_TYPES: Mapping[type, pa.DataType] = {str: pa.string(), int: pa.int64(), bool: pa.bool_(), float: pa.float64()}
_PlainRow: TypeAlias = dict[str, Any]


class ArrowWriter(AbstractContextManager["ArrowWriter"]):
    """Writes an Arrow file batch by batch; the first batch decides its schema. Without a batch no file is written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: pa.ipc.RecordBatchFileWriter | None = None

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, batch: pa.RecordBatch) -> None:
        if self._file is None:
            self._file = pa.ipc.new_file(str(self._path), batch.schema)
        self._file.write_batch(batch)


class ArrowTable:
    """A memory-mapped Arrow file, readable even after the file is deleted."""

    def __init__(self, path: Path) -> None:
        # Not pyarrow.memory_map, which has no madvise.
        with path.open("rb") as file:
            self._mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._file = pa.ipc.open_file(pa.py_buffer(self._mapped))
        self._offsets: list[int] = [0, *accumulate(batch.num_rows for batch in self.batches())]

    def __len__(self) -> int:
        return self._offsets[-1]

    def batch(self, number: int) -> pa.RecordBatch:
        return self._file.get_batch(number)

    def batches(self) -> Iterator[pa.RecordBatch]:
        for number in range(self._file.num_record_batches):
            yield self.batch(number)
            # Else every page that was read would count as memory of this process.
            self._mapped.madvise(mmap.MADV_DONTNEED)

    def locate(self, index: int) -> tuple[int, int]:
        """The number of the batch that holds a row, and the index of the row within it."""
        number = bisect_right(self._offsets, index) - 1
        return number, index - self._offsets[number]


class _StoredSequence(Sequence[_ItemT], ABC, Generic[_ItemT]):
    """The rows of a table as objects, constructed anew on each access."""

    def __init__(self, table: ArrowTable) -> None:
        self.table = table

    def __len__(self) -> int:
        return len(self.table)

    @overload
    def __getitem__(self, index: int) -> _ItemT: ...

    @overload
    def __getitem__(self, index: slice) -> list[_ItemT]: ...

    def __getitem__(self, index: int | slice) -> _ItemT | list[_ItemT]:
        if isinstance(index, slice):
            return [self._item(position) for position in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"row {index} of {len(self)}")
        return self._item(index % len(self))

    def __iter__(self) -> Iterator[_ItemT]:
        for batch in self.table.batches():
            yield from self._items(batch)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    @abstractmethod
    def _item(self, index: int) -> _ItemT: ...

    @abstractmethod
    def _items(self, batch: pa.RecordBatch) -> Iterator[_ItemT]: ...


class Records(_StoredSequence[Record]):
    """Records of one type."""

    def __init__(self, table: ArrowTable, kind: type[Record]) -> None:
        super().__init__(table)
        self._kind, self._types = kind, _field_types(kind)

    def _item(self, index: int) -> Record:
        number, position = self.table.locate(index)
        return next(self._items(self.table.batch(number).slice(position, 1)))

    def _items(self, batch: pa.RecordBatch) -> Iterator[Record]:
        # Entries of older versions lack the document of texts and pairs, which is the last field.
        columns = (
            _as_tuples(column.to_pylist(), self._types[name])
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        )
        return map(self._kind, *columns)


class Rows(_StoredSequence[_PlainRow]):
    """Encoded rows: numbers, strings and flat lists of numbers; lists are read as NumPy views of the mapped file."""

    def __init__(self, table: ArrowTable) -> None:
        super().__init__(table)
        self._columns: dict[int, dict[str, _BatchColumn]] = {}

    def _item(self, index: int) -> _PlainRow:
        number, position = self.table.locate(index)
        if number not in self._columns:
            batch = self.table.batch(number)
            self._columns[number] = {name: _BatchColumn(batch.column(name)) for name in batch.schema.names}
        return {name: column.get(position) for name, column in self._columns[number].items()}

    def _items(self, batch: pa.RecordBatch) -> Iterator[_PlainRow]:
        columns = [_BatchColumn(column).values() for column in batch.columns]
        return (dict(zip(batch.schema.names, values, strict=True)) for values in zip(*columns, strict=True))


class _BatchColumn:
    """A column of one batch; reading a number or a list needs no call into Arrow."""

    def __init__(self, array: pa.Array) -> None:
        self._array = array
        if pa.types.is_list(array.type):
            self._flat = array.values.to_numpy()
            self._offsets = memoryview(array.offsets.to_numpy())
            self.get: Callable[[int], Any] = lambda row: self._flat[self._offsets[row] : self._offsets[row + 1]]
        elif pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
            self.get = memoryview(array.to_numpy()).__getitem__
        else:
            self.get = lambda position: array[position].as_py()

    def values(self) -> list[Any]:
        if not pa.types.is_list(self._array.type):
            values: list[Any] = self._array.to_pylist()
            return values
        return [self._flat[start:end] for start, end in pairwise(self._offsets.tolist())]


def _field_types(kind: type[Record]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def batch_of_records(records: Sequence[Record]) -> pa.RecordBatch:
    """Records of one type as a batch; there must be at least one."""
    types_by_name = _field_types(type(records[0]))
    arrays = [
        pa.array([getattr(record, name) for record in records], _arrow_type(kind))
        for name, kind in types_by_name.items()
    ]
    return pa.RecordBatch.from_arrays(arrays, list(types_by_name))


def batch_of_rows(rows: Sequence[_PlainRow]) -> pa.RecordBatch:
    """Rows with the same keys as a batch; there must be at least one."""
    return pa.RecordBatch.from_arrays([_array([row[name] for row in rows]) for name in rows[0]], list(rows[0]))


def _array(values: list[Any]) -> pa.Array:
    if isinstance(values[0], str | int | float):  # a bool is an int
        return pa.array(values, _ARROW_TYPES[type(values[0])])
    # Arrow's lists have 32-bit offsets; a batch is small enough for them.
    sizes = [len(value) for value in values]
    offsets = np.fromiter(chain([0], accumulate(sizes)), np.int32, len(sizes) + 1)
    is_real = any(isinstance(value[0], float | np.floating) for value in values if len(value))
    flat = np.fromiter(chain.from_iterable(values), np.float64 if is_real else np.int32, int(offsets[-1]))
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat))


def _arrow_type(kind: Any) -> pa.DataType:
    """The Arrow type of a field: a scalar, a struct for a tuple of fixed length, or a list for one of any length."""
    if kind in _ARROW_TYPES:
        return _ARROW_TYPES[kind]
    if parts := _parts(kind):
        return pa.struct([(name, _arrow_type(part)) for name, part in parts.items()])
    return pa.list_(_arrow_type(get_args(kind)[0]))


def _parts(kind: Any) -> dict[str, Any]:
    """The element types of a tuple of fixed length, by name or number; empty for any other type."""
    if get_origin(kind) is tuple:
        arguments = get_args(kind)
        return {} if Ellipsis in arguments else {str(number): part for number, part in enumerate(arguments)}
    return get_type_hints(kind) if isinstance(kind, type) and issubclass(kind, tuple) else {}


def _as_tuples(values: Iterable[Any], kind: Any) -> Iterable[Any]:
    """The lists and dicts that Arrow returns, converted to the tuples of the field's type."""
    if kind in _ARROW_TYPES:
        return values
    if parts := _parts(kind):
        # A NamedTuple (AnswerSpan) takes its fields as arguments, and an iterable only by `_make`.
        make = kind._make if hasattr(kind, "_make") else tuple
        return [make(next(iter(_as_tuples([value[name]], part))) for name, part in parts.items()) for value in values]
    (item, _) = get_args(kind)
    return [tuple(_as_tuples(value, item)) for value in values]
