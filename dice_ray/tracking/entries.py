"""What runs send to MLflow, as typed entries that are also the lines of the spool file.

The names of these classes and of their fields are stored: a spool that an older version of this program left behind
must still be read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeAlias, get_args

from pydantic import TypeAdapter

from dice_ray.tracking.schema import Status

NUM_METRICS: Final = 1000
"""MLflow's limit on the metrics of one call."""


@dataclass(frozen=True)
class MetricPoint:
    """One value of one metric; `at` is in milliseconds since 1970."""

    metric: str
    value: float
    step: int
    at: int


@dataclass(frozen=True)
class Open:
    """Create the run with our id `key`, or resume the one that has it; `parent` is our id of its parent run."""

    key: str
    name: str
    params: Mapping[str, str]
    tags: Mapping[str, str]
    parent: str | None
    at: int


@dataclass(frozen=True)
class Points:
    """Values of metrics, at most `NUM_METRICS`."""

    key: str
    points: tuple[MetricPoint, ...]


@dataclass(frozen=True)
class Tags:
    """Tags to set; those of the same name are overwritten, the others stay."""

    key: str
    tags: Mapping[str, str]


@dataclass(frozen=True)
class Text:
    """A text file to store among the run's artifacts."""

    key: str
    file: str
    content: str


@dataclass(frozen=True)
class Describe:
    """The description of the run's experiment, unless it has one, which the user may have written."""

    key: str
    description: str


@dataclass(frozen=True)
class Data:
    """The data set of the run: its name, digest, kind and source as JSON, none of its content."""

    key: str
    name: str
    digest: str
    kind: str
    source: str


@dataclass(frozen=True)
class Model:
    """A folder in MLflow's model format to store with the run and to register; it is deleted once it is stored."""

    key: str
    folder: str
    register: str


@dataclass(frozen=True)
class End:
    """The run ended."""

    key: str
    status: Status
    at: int


RunEntry: TypeAlias = Open | Points | Tags | Text | Describe | Data | Model | End
_KINDS: Final[dict[str, TypeAdapter[Any]]] = {kind.__name__: TypeAdapter(kind) for kind in get_args(RunEntry)}


def merge_points(entries: Iterable[RunEntry]) -> list[RunEntry]:
    """Merge the points of each run into fewer entries; the order of a run's entries is kept, not that between runs."""
    merged: list[RunEntry] = []
    last: dict[str, int] = {}  # the index of each run's latest entry
    for entry in entries:
        previous = merged[last[entry.key]] if entry.key in last else None
        match previous, entry:
            case Points(key, first), Points(_, more) if len(first) + len(more) <= NUM_METRICS:
                merged[last[key]] = Points(key, first + more)
            case _:
                last[entry.key] = len(merged)
                merged.append(entry)
    return merged


def as_line(entry: RunEntry) -> str:
    """An entry as a line of JSON.

    >>> from_line(as_line(Tags("a", {"x": "y"})))
    Tags(key='a', tags={'x': 'y'})
    """
    return json.dumps({"entry": type(entry).__name__, **asdict(entry)}, ensure_ascii=False)


def from_line(line: str) -> RunEntry:
    """The entry of a line; ValueError, TypeError or LookupError where the line is not one that `as_line` wrote."""
    fields: dict[str, Any] = TypeAdapter(dict[str, Any]).validate_python(json.loads(line))
    entry: RunEntry = _KINDS[fields.pop("entry")].validate_python(fields)
    return entry
