"""The runs of one experiment in MLflow by our own ids, and the entries that are sent to them."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dice_ray.errors import RunError
from dice_ray.tracking import schema
from dice_ray.tracking.entries import Data, End, Entry, Model, Open, Point, Points, Tags, Text
from dice_ray.tracking.model import bind
from dice_ray.tracking.sources import all_pages
from dice_ray.tracking.store import deleted, locked, quiet_client, sqlite_file

if TYPE_CHECKING:
    from mlflow.entities import Run

NUM_PARAMS: Final = 100
"""MLflow's limits on one call, and on the length of a value."""
NUM_TAGS: Final = 100
LENGTH_PARAM: Final = 6000
LENGTH_TAG: Final = 8000

Item = TypeVar("Item")


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
            self._name, self._uri = experiment, uri
            self._experiment = self._find()
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
            case Data():
                self._describe(entry)
            case Model():
                self._register(entry)
            case End(key, status, at):
                self._client.set_terminated(self._id_of(key), status, at)
                self._stored.pop(key, None)

    def check(self) -> None:
        """Whether the experiment is still there.

        Raises:
            RunError: It was deleted in MLflow.
        """
        if self._client.get_experiment(self._experiment).lifecycle_stage != "active":
            raise deleted(self._name, self._experiment, self._uri)

    def _find(self) -> str:
        found = self._client.get_experiment_by_name(self._name)
        if found is None:
            file = sqlite_file(self._uri)
            root = (file.parent / "mlartifacts").as_uri() if file else None
            tags = {schema.EXPERIMENT_KIND: "custom_model_development"}  # else the pages speak of prompts and judges
            return str(self._client.create_experiment(self._name, artifact_location=root, tags=tags))
        if found.lifecycle_stage != "active":
            raise deleted(self._name, found.experiment_id, self._uri)
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

    def _describe(self, data: Data) -> None:
        from mlflow.entities import Dataset, DatasetInput, InputTag

        described = Dataset(data.name, data.digest, data.kind, data.source)
        used = InputTag("mlflow.data.context", "training")
        self._client.log_inputs(self._id_of(data.key), [DatasetInput(described, [used])])

    def _register(self, model: Model) -> None:
        """Store a model with its run as the next version of its name; a run has one version of each name."""
        id_, folder = self._id_of(model.key), Path(model.folder)
        there = self._client.search_model_versions(f"name = '{model.register}' and run_id = '{id_}'")
        version = there[0].version if there else self._new_version(id_, model)
        self._tag(id_, {f"{schema.REGISTERED}.{model.register}": str(version)})
        shutil.rmtree(folder, ignore_errors=True)

    def _new_version(self, id_: str, model: Model) -> str:
        from mlflow.entities import LoggedModelOutput

        folder = Path(model.folder)
        if not folder.is_dir():
            raise RunError(f"the model of {model.key!r} must be in {folder}, and is not there any more")
        logged = self._client.create_logged_model(self._experiment, model.register, id_)
        bind(folder, run=id_, model=logged.model_id, location=logged.artifact_location)
        self._client.log_model_artifacts(logged.model_id, model.folder)
        self._client.finalize_logged_model(logged.model_id, "READY")
        self._client.log_outputs(id_, [LoggedModelOutput(logged.model_id, 0)])
        if not self._client.search_registered_models(f"name = '{model.register}'"):
            self._client.create_registered_model(model.register)
        version = self._client.create_model_version(
            model.register, logged.artifact_location, id_, model_id=logged.model_id
        )
        return str(version.version)

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
