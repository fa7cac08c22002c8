"""Which columns of a row make a record: shared by every reader whose rows have named or numbered columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, TypeAlias

from pydantic import Field

from dice_ray.data.readers.base import Bad, Found, Kept, Labels
from dice_ray.data.records import PairRecord, Record, TextRecord
from dice_ray.settings import Branch, Choice

Column: TypeAlias = int | str
"""A column by its name in the header, or by its number: 0 is the first, -1 the last."""


class ColumnsBranch(Branch, ABC):
    """The columns of one kind of record.

    Attributes:
        id: The column of the record's id; none numbers the records by their line.
    """

    id: Column | None = None

    def used(self, labels: Labels = "read") -> dict[str, Column]:
        """The columns that a row must have, by what they are for."""
        left_out = {"separator", "label"} if labels == "ignored" else {"separator"}
        given = {name: getattr(self, name) for name in type(self).model_fields if name not in left_out}
        return {use: column for use, column in given.items() if column is not None}

    def labels(self, cell: str) -> list[str]:
        """The labels in one cell."""
        return [cell.strip()] if cell.strip() else []

    def holds_several(self, cell: object) -> bool:
        """Whether the column may hold several labels: an empty cell says that none applies, not that none was given."""
        return False

    @abstractmethod
    def yields(self) -> type[Record]:
        """What a row becomes."""

    @abstractmethod
    def record(self, line: int, values: Mapping[str, str], labels: Sequence[str]) -> Found:
        """The record of a row, from the values of its used columns and its labels; none where labels are ignored."""


class PairColumns(ColumnsBranch):
    """Two sentences and a label."""

    name = "pair"

    first: Column = "sentence1"
    second: Column = "sentence2"
    label: Column = "label"

    def yields(self) -> type[Record]:
        return PairRecord

    def record(self, line: int, values: Mapping[str, str], labels: Sequence[str]) -> Found:
        if len(labels) > 1:
            return Bad(line, "one label", ", ".join(labels))
        return Kept(line, PairRecord(values.get("id", str(line)), values["first"], values["second"], *(labels or [""])))


class TextColumns(ColumnsBranch):
    """A text and a label, or several.

    Attributes:
        separator: What stands between several labels in one cell, where an empty one says that no label applies; none
            takes the cell as one label.
    """

    name = "text"

    text: Column = "sentence"
    label: Column = "label"
    separator: str | None = Field(default=None, min_length=1)

    def yields(self) -> type[Record]:
        return TextRecord

    def labels(self, cell: str) -> list[str]:
        cells = cell.split(self.separator) if self.separator else [cell]
        return [label.strip() for label in cells if label.strip()]

    def holds_several(self, cell: object) -> bool:
        return self.separator is not None or isinstance(cell, list)

    def record(self, line: int, values: Mapping[str, str], labels: Sequence[str]) -> Found:
        return Kept(line, TextRecord(values.get("id", str(line)), values["text"], tuple(dict.fromkeys(labels))))


ColumnsConfig: TypeAlias = Annotated[PairColumns | TextColumns, Choice()]
