"""The runs of one experiment in MLflow by our own ids, and the entries that are sent to them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from dice_ray.errors import RunError
from dice_ray.tracking import schema
from dice_ray.tracking.sources import all_pages
from dice_ray.tracking.store import locked, quiet_client, shown, sqlite_file

if TYPE_CHECKING:
    from mlflow.entities import Run

NUM_METRICS: Final = 1000
"""MLflow's limits on one call, and on the length of a value."""
NUM_PARAMS: Final = 100
NUM_TAGS: Final = 100
LENGTH_PARAM: Final = 6000
LENGTH_TAG: Final = 8000

Item = TypeVar("Item")


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
class End:
    """The run ended."""

    key: str
    status: schema.Status
    at: int


Entry: TypeAlias = Open | Points | Tags | Text | End


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


class Runs:
    """The runs of one experiment, which is created where it is not there.

    Raises:
        RunError: The experiment was deleted in MLflow.
    """

    def __init__(self, experiment: str, uri: str) -> None:
        with locked(uri):
            if file := sqlite_file(uri):
                with closing(sqlite3.connect(file)) as database:
                    database.execute("pragma journal_mode=wal")  # the file remembers it
            self._client = quiet_client(uri)
            self._experiment = self._find(experiment, uri)
        self._ids: dict[str, str] = {}
        self._stored: dict[str, set[tuple[str, int]]] = {}

    def send(self, entry: Entry) -> None:
        """Store one entry; what is stored already is not stored again."""
        match entry:
            case Open():
                self._open(entry)
            case Points(key, points):
                self._log(key, points)
            case Tags(key, tags):
                self._tag(self._id_of(key), tags)
            case Text(key, file, content):
                self._client.log_text(self._id_of(key), content, file)
            case End(key, status, at):
                self._client.set_terminated(self._id_of(key), status, at)
                self._stored.pop(key, None)

    def _find(self, name: str, uri: str) -> str:
        found = self._client.get_experiment_by_name(name)
        if found is None:
            file = sqlite_file(uri)
            root = (file.parent / "mlartifacts").as_uri() if file else None
            return str(self._client.create_experiment(name, artifact_location=root))
        if found.lifecycle_stage != "active":
            raise RunError(
                f"the experiment {name!r} must be active in {shown(uri)}, and was deleted: "
                f"`mlflow experiments restore --experiment-id {found.experiment_id}` brings it back, "
                "or choose another name"
            )
        return str(found.experiment_id)

    def _open(self, entry: Open) -> None:
        run = self._search(entry.key)
        if run is None:
            tags = {schema.ID: entry.key}
            if entry.parent is not None:
                tags[schema.PARENT] = self._id_of(entry.parent)
            run = self._client.create_run(self._experiment, entry.at, tags, entry.name)
        else:
            self._client.update_run(run.info.run_id, status="RUNNING")
        id_ = self._ids[entry.key] = run.info.run_id
        self._stored[entry.key] = self._history(run)
        new = [(name, value) for name, value in entry.params.items() if name not in run.data.params]
        for part in _parts(new, NUM_PARAMS):
            self._client.log_batch(id_, params=[_param(name, value) for name, value in part])
        self._tag(id_, entry.tags)

    def _history(self, run: Run) -> set[tuple[str, int]]:
        """The metrics that are stored, each with its step."""
        return {
            (metric, point.step)
            for metric in run.data.metrics
            for point in self._client.get_metric_history(run.info.run_id, metric)
        }

    def _log(self, key: str, points: Sequence[Point]) -> None:
        from mlflow.entities import Metric

        stored = self._stored.get(key)
        if stored is None:  # it has ended, and is scored now: what was stored of an earlier scoring is replaced
            latest, stored = self._client.get_run(self._id_of(key)).data.metrics, set()
            points = [point for point in points if latest.get(point.metric) != point.value]
        new = {(point.metric, point.step): point for point in points if (point.metric, point.step) not in stored}
        metrics = [Metric(point.metric, point.value, point.at, point.step) for point in new.values()]
        self._client.log_batch(self._id_of(key), metrics=metrics)
        stored.update(new)

    def _tag(self, id_: str, tags: Mapping[str, str]) -> None:
        from mlflow.entities import RunTag

        for part in _parts(list(tags.items()), NUM_TAGS):
            self._client.log_batch(id_, tags=[RunTag(name, value[:LENGTH_TAG]) for name, value in part])

    def _id_of(self, key: str) -> str:
        if key not in self._ids:
            run = self._search(key)
            if run is None:
                raise RunError(f"the run {key!r} must have been opened")
            self._ids[key] = run.info.run_id
        return self._ids[key]

    def _search(self, key: str) -> Run | None:
        # A filter of MLflow's cannot hold every character: `_` stands for any.
        query = f"tags.`{schema.ID}` LIKE '{re.sub(r'[^a-zA-Z0-9-]', '_', key)}'"
        found = all_pages(lambda token: self._client.search_runs([self._experiment], query, page_token=token))
        return next((run for run in found if run.data.tags[schema.ID] == key), None)


def _param(name: str, value: str) -> Any:
    from mlflow.entities import Param

    return Param(name, value[:LENGTH_PARAM])


def _parts(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
