"""Columns that splits are drawn by: groups, which stay whole, and times, of which the latest are held out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from dice_ray.data.formats.base import Bad, Kept, Labels, RowResult
from dice_ray.data.formats.columns import Column, ColumnsBranch, whole
from dice_ray.data.records import QueryRecord, QuestionRecord
from dice_ray.errors import shown


@dataclass(frozen=True)
class WithSplitColumns:
    """The columns of records with those of `data.groups` and `data.time`, for a reader that knows only the former."""

    columns: ColumnsBranch
    by: Mapping[str, Column]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.columns, name)

    def used(self, labels: Labels = "read") -> dict[str, Column]:
        return {**self.columns.used(labels), **self.by}

    def row(self, line: int, values: Mapping[str, Any]) -> RowResult:
        """The record, which a missing group or time makes malformed."""
        row = self.columns.row(line, {use: value for use, value in values.items() if use not in self.by})
        if not isinstance(row, Kept):
            return row
        time, group = time_of(values.get("time", 0)), _group_of(values.get("groups", "-"))
        if time is None or not group:
            setting, expected = ("time", "an ISO date, a date-time or a number") if group else ("groups", "a group")
            return Bad(line, f"{expected} as {self.by[setting]!r} (data.{setting})", shown(values[setting]))
        record = row.record
        if isinstance(record, QuestionRecord):
            record = replace(record, group=f"{group}.paragraphs[{record.group}]")
        elif not isinstance(record, QueryRecord):
            record = replace(record, document=group)
        row = replace(row, time=time)
        return replace(row, document=group, record=record) if "groups" in self.by else row


def time_of(value: object) -> np.datetime64 | float | None:
    """The date, in seconds and UTC, or the number that a value is; None if it is neither.

    >>> str(time_of("2024-03-01T01:30+01:00")), time_of("17"), time_of("1 March")
    ('2024-03-01T00:30:00', 17.0, None)
    """
    text = str(value).strip()
    try:
        return number if abs(number := float(text)) < float("inf") else None
    except ValueError:
        pass
    try:
        found = datetime.fromisoformat(text)
        found = found.astimezone(UTC) if found.tzinfo else found
    except (ValueError, OverflowError):
        return None
    return np.datetime64(found.replace(tzinfo=None), "s")


def _group_of(value: object) -> str:
    """The name of a group; empty if it is missing."""
    return "" if value is None or value != value else whole(value)
