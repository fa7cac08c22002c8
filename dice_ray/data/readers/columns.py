"""Which columns of a row make a record: shared by every reader whose rows have named or numbered columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, TypeAlias

from dice_ray.data.readers.base import Drop, Found, Kept
from dice_ray.data.records import PairRecord
from dice_ray.settings import Branch, Choice

Column: TypeAlias = int | str
"""A column by its name in the header, or by its number: 0 is the first, -1 the last."""
UNLABELLED = "no label"


class ColumnsBranch(Branch, ABC):
    """The columns of one kind of record.

    Attributes:
        id: The column of the record's id; none numbers the records by their line.
    """

    id: Column | None = None

    def used(self) -> dict[str, Column]:
        """The columns that a row must have, by what they are for."""
        return {name: value for name in type(self).model_fields if (value := getattr(self, name)) is not None}

    @abstractmethod
    def record(self, line: int, values: Mapping[str, str]) -> Found:
        """The record of a row, from the values of its used columns."""


class PairColumns(ColumnsBranch):
    """Two sentences and a label."""

    name = "pair"

    first: Column = "sentence1"
    second: Column = "sentence2"
    label: Column = "label"

    def record(self, line: int, values: Mapping[str, str]) -> Found:
        if not (label := values["label"].strip()):
            return Drop(line, UNLABELLED)
        return Kept(line, PairRecord(values.get("id", str(line)), values["first"], values["second"], label))


ColumnsConfig: TypeAlias = Annotated[PairColumns, Choice()]
