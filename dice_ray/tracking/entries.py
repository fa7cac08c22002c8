"""What a writer can be told of a run, in the order of telling, and each as a line of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeAlias, get_args

from dice_ray.tracking.schema import Status

NUM_METRICS: Final = 1000
"""MLflow's limit on one call."""


@dataclass(frozen=True)
class Point:
    """One value of one metric; `at` is in milliseconds since 1970."""

    metric: str
    value: float
    step: int
    at: int


@dataclass(frozen=True)
class Open:
    """Create the run, or go on with the one that has this id."""

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
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Tags:
    """Tags to set over those that are there."""

    key: str
    tags: Mapping[str, str]


@dataclass(frozen=True)
class Text:
    """A text file among the run's artifacts."""

    key: str
    file: str
    content: str


@dataclass(frozen=True)
class Data:
    """The data set of the run: what it is, and where it came from, none of its content."""

    key: str
    name: str
    digest: str
    kind: str
    source: str


@dataclass(frozen=True)
class Model:
    """A folder in MLflow's model format, to be stored with the run and registered; it goes once it is stored."""

    key: str
    folder: str
    register: str


@dataclass(frozen=True)
class End:
    """The run ended."""

    key: str
    status: Status
    at: int


Entry: TypeAlias = Open | Points | Tags | Text | Data | Model | End
_KINDS: Final = {kind.__name__: kind for kind in get_args(Entry)}


def joined(entries: Iterable[Entry]) -> list[Entry]:
    """The same in fewer calls: points join the last entry of their run, if that holds points too."""
    together: list[Entry] = []
    last: dict[str, int] = {}
    for entry in entries:
        before = together[last[entry.key]] if entry.key in last else None
        match before, entry:
            case Points(key, first), Points(_, more) if len(first) + len(more) <= NUM_METRICS:
                together[last[key]] = Points(key, first + more)
            case _:
                last[entry.key] = len(together)
                together.append(entry)
    return together


def as_line(entry: Entry) -> str:
    """An entry as JSON.

    >>> from_line(as_line(Tags("a", {"x": "y"})))
    Tags(key='a', tags={'x': 'y'})
    """
    return json.dumps({"entry": type(entry).__name__, **asdict(entry)}, ensure_ascii=False)


def from_line(line: str) -> Entry:
    """The entry of a line."""
    fields: dict[str, Any] = json.loads(line)
    kind = _KINDS[fields.pop("entry")]
    if kind is Points:
        fields["points"] = tuple(Point(**point) for point in fields["points"])
    entry: Entry = kind(**fields)
    return entry
