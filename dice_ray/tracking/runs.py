"""The runs of one experiment in MLflow by our own ids; each entry is stored at most once.

`create_run` takes no id, so our id is a tag and a run is found by it. An entry may be sent again: the call that
stored it may have failed after it took effect, or a killed driver left it in its spool, or a resumed run reports its
history from the beginning. So every entry is idempotent. A point counts once per (metric, step): the steps that MLflow
holds are read when a run is opened (continuing a run without them stored seven steps twice). A parameter is sent only
if MLflow does not have its name (MLflow refuses a changed value). Tags are overwritten. A run has one version of each
registered model. After the end of a run its steps are forgotten, and a point replaces a stored one of another value:
that is how a finished run is scored again.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from dice_ray.errors import RunError
from dice_ray.tracking import schema
from dice_ray.tracking.entries import Data, Describe, End, MetricPoint, Model, Open, Points, RunEntry, Tags, Text
from dice_ray.tracking.model import bind
from dice_ray.tracking.sources import all_pages
from dice_ray.tracking.store import artifact_root, deleted_error, locked, quiet_client, sqlite_file

if TYPE_CHECKING:
    from mlflow.entities import Run

_BATCH: Final = 100
"""MLflow's limits on the parameters or tags of one call, and on the length of a value."""
_LENGTH_PARAM: Final = 6000
_LENGTH_TAG: Final = 8000

_ItemT = TypeVar("_ItemT")


class Runs:
    """The runs of one experiment, which is created if it does not exist.

    Raises:
        RunError: The experiment was deleted in MLflow.
    """

    def __init__(self, experiment: str, uri: str) -> None:
        with locked(uri):
            if file := sqlite_file(uri):
                with closing(sqlite3.connect(file)) as database:
                    # Readers and the writer do not block each other, and a write takes 16 to 29 ms, not 23 to 40 (p50,
                    # eight processes). The file keeps the mode.
                    database.execute("pragma journal_mode=wal")
            self._client = quiet_client(uri)
            self._name, self._uri = experiment, uri
            self._is_new = False
            self._experiment = self._find_or_create()
        self._ids: dict[str, str] = {}
        self._attempted: set[str] = set()
        """Keys of the runs that this process has created, or tried to."""
        self._stored: dict[str, set[tuple[str, int]]] = {}  # (metric, step) of each open run

    def send(self, entry: RunEntry) -> None:
        """Store one entry, unless it is stored already."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        match entry:
            case Open():
                self._open(entry)
            case Points(key, points):
                self._log(key, points)
            case Tags(key, tags):
                self._tag(self._id_of(key), tags)
            case Text(key, file, content):
                self._client.log_text(self._id_of(key), content, file)
            case Describe(_, description):
                if schema.NOTE not in self._client.get_experiment(self._experiment).tags:
                    self._client.set_experiment_tag(self._experiment, schema.NOTE, description[:_LENGTH_TAG])
            case Data(key, name, digest, kind, source):
                context = InputTag("mlflow.data.context", "training")
                inputs = [DatasetInput(Dataset(name, digest, kind, source), [context])]
                self._client.log_inputs(self._id_of(key), inputs)
            case Model():
                self._register(entry)
            case End(key, status, at):
                if status != "KILLED" or not _has_finished(self._client.get_run(self._id_of(key)), at):
                    self._client.set_terminated(self._id_of(key), status, at)
                self._stored.pop(key, None)

    def check_active(self) -> None:
        """Raise a RunError where the experiment was deleted in MLflow meanwhile."""
        if self._client.get_experiment(self._experiment).lifecycle_stage != "active":
            raise deleted_error(self._name, self._experiment, self._uri)

    def _find_or_create(self) -> str:
        experiment = self._client.get_experiment_by_name(self._name)
        if experiment is None:
            root = artifact_root(self._uri)
            tags = {schema.EXPERIMENT_KIND: "custom_model_development"}  # else the pages speak of prompts and judges
            id_ = str(self._client.create_experiment(self._name, artifact_location=root, tags=tags))
            self._is_new = True
            return _answered(id_)
        _answered(experiment.experiment_id)
        if experiment.lifecycle_stage != "active":
            raise deleted_error(self._name, experiment.experiment_id, self._uri)
        return str(experiment.experiment_id)

    def _open(self, entry: Open) -> None:
        from mlflow.entities import Param

        # In an experiment that this process has created, only its own runs can be. MLflow looks at each run that the
        # store holds, which takes 16 ms after 10,000 runs in SQLite.
        run = None if self._is_new and entry.key not in self._attempted else self._search(entry.key)
        if run is None:
            tags = {schema.ID: entry.key}
            if entry.parent is not None:
                tags[schema.PARENT] = self._id_of(entry.parent)
            self._attempted.add(entry.key)  # it may take effect and fail
            run = self._client.create_run(self._experiment, entry.at, tags, entry.name)
        elif not _has_finished(run, entry.at):
            self._client.update_run(run.info.run_id, status="RUNNING")
        id_ = self._ids[entry.key] = _answered(run.info.run_id)
        # All at once, and not when a point comes: the steps of a resumed run's history are nearly all stored already.
        self._stored[entry.key] = {
            (metric, point.step)
            for metric in run.data.metrics
            for point in self._client.get_metric_history(id_, metric)
        }
        new = [
            Param(name, value[:_LENGTH_PARAM]) for name, value in entry.params.items() if name not in run.data.params
        ]
        for batch in _batches(new):
            self._client.log_batch(id_, params=batch)
        self._tag(id_, entry.tags)

    def _log(self, key: str, points: Sequence[MetricPoint]) -> None:
        from mlflow.entities import Metric

        stored = self._stored.get(key)
        if stored is None:  # the run has ended and is scored again: only values that changed are stored
            latest, stored = self._client.get_run(self._id_of(key)).data.metrics, set()
            # As text, since NaN does not equal itself. Of several values in one call the last one is that of the run.
            points = [point for point in reversed(points) if repr(latest.get(point.metric)) != repr(point.value)]
        new: dict[tuple[str, int], MetricPoint] = {}
        for point in points:
            if (point.metric, point.step) not in stored:
                new.setdefault((point.metric, point.step), point)
        metrics = [Metric(point.metric, point.value, point.at, point.step) for point in new.values()]
        self._client.log_batch(self._id_of(key), metrics=metrics)
        stored.update(new)

    def _tag(self, id_: str, tags: Mapping[str, str]) -> None:
        from mlflow.entities import RunTag

        for batch in _batches([RunTag(name, value[:_LENGTH_TAG]) for name, value in tags.items()]):
            self._client.log_batch(id_, tags=batch)

    def _register(self, model: Model) -> None:
        """Store a model with its run as the next version of its registered name, then delete the folder."""
        id_ = self._id_of(model.key)
        # MLflow's versions decide, not our tag, which is set after them: a process that was killed in between would
        # register the model twice.
        versions = self._client.search_model_versions(f"name = '{model.register}' and run_id = '{id_}'")
        version = versions[0].version if versions else self._new_version(id_, model)
        self._tag(id_, {f"{schema.REGISTERED}.{model.register}": str(version)})
        shutil.rmtree(model.folder, ignore_errors=True)

    def _new_version(self, id_: str, model: Model) -> str:
        from mlflow.entities import LoggedModelOutput

        folder = Path(model.folder)
        if not folder.is_dir():
            raise RunError(f"the model of {model.key!r} must be in {folder}, which does not exist any more")
        logged = self._client.create_logged_model(self._experiment, model.register, id_)
        # The ids exist only now, and the description must hold them when its folder is stored.
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
        # MLflow's filter language cannot express every character: `_` matches any one, and the tag is compared below.
        query = f"tags.`{schema.ID}` LIKE '{re.sub(r'[^a-zA-Z0-9-]', '_', key)}'"
        matches = all_pages(lambda token: self._client.search_runs([self._experiment], query, page_token=token))
        return next((run for run in matches if run.data.tags[schema.ID] == key), None)


def _answered(id_: str) -> str:
    """An id in an answer of MLflow; a ConnectionError where it is empty.

    MLflow's client takes an empty body for an answer: entries for such an id would be refused.
    """
    if not id_:
        raise ConnectionError("MLflow's answer was empty")
    return id_


def _has_finished(run: Run, at: int) -> bool:
    """Whether a run has finished since a time: a copy of its folder, made when it was killed, must not end it again."""
    return bool(run.info.status == "FINISHED" and run.info.end_time and run.info.end_time > at)


def _batches(items: Sequence[_ItemT]) -> list[Sequence[_ItemT]]:
    return [items[start : start + _BATCH] for start in range(0, len(items), _BATCH)]
