"""The two ways to read a store: an SQLite file of ours by SQL, any other store through MLflow in pages.

MLflow's search is slow (10,000 runs with 30 parameters and 10 metrics: 20.5 s, by SQL 1.8 s), so an SQLite file is read
by SQL, but only if its tables have a revision that this code was tested with; after a migration by another version of
MLflow the file is read through MLflow, slower and with the same result.

By SQL, everything is read in one transaction: a writer may add runs at any time, and tables read at different moments
would not fit together (a parameter of a run that the select of runs did not see). With the journal in WAL mode, which
the writer sets, this transaction neither waits for the writer nor blocks it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias
from urllib.parse import unquote, urlsplit

from pydantic import ConfigDict, Field

from dice_ray.errors import RunError
from dice_ray.tracking.store import (
    as_run_error,
    check_exists,
    deleted_error,
    is_mlflow_error,
    is_refusal,
    locked,
    quiet,
    quiet_client,
    sqlite_file,
    store_uri,
)

_REVISIONS: Final = frozenset(
    {"1b5f0d9ad7c1", "b7e4c1a90f23", "6f8d9c3b2a1e", "b7e2c1a4d9f3", "dc11669786a5", "f4a9b2c7d1e6"}
)
"""Schema revisions whose tables are read by SQL: those of MLflow 3.10 and 3.14 to 3.18, which have the same columns."""
_PAGE: Final = 1000
_LATEST: Final = 9_000_000_000_000
"""The last time that pandas can hold is in 2262."""
_Stage: TypeAlias = Literal["active", "deleted"]
"""MLflow's lifecycle stage of an experiment; a deleted one can be restored."""


@dataclass
class StoredRun:
    """A run as MLflow holds it; times in milliseconds since 1970; `artifacts` is the URI of their root."""

    __pydantic_config__: ClassVar = ConfigDict(revalidate_instances="always")  # by `reader.py`, once it is whole
    name: str | None
    status: str
    start: Annotated[int, Field(ge=0, le=_LATEST)]
    end: Annotated[int, Field(ge=0, le=_LATEST)] | None
    artifacts: str
    params: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)


Source: TypeAlias = "_Database | _Api"
"""A store that is open for reading."""


@contextmanager
def open_store(uri: str | None = None) -> Iterator[Source]:
    """Open the store for reading; a RunError where it does not exist or does not answer."""
    uri = store_uri(uri)
    check_exists(uri)
    if file := sqlite_file(uri):
        try:
            with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
                if _revision(database) in _REVISIONS:
                    yield _Database(database)
                    return
        except sqlite3.Error as error:
            raise RunError(f"the store of runs must be a database of MLflow, reading {file} failed: {error}") from error
    with _store_errors(uri):
        yield _Api(uri)


def check_not_deleted(experiment: str, uri: str) -> None:
    """Raise a RunError for an experiment that was deleted, or where MLflow has no store of this kind.

    Passes where the store does not exist yet or does not answer.
    """
    try:
        with open_store(uri) as source:
            deleted = source.experiments("deleted")
    except RunError as error:
        if is_mlflow_error(error.__cause__) and is_refusal(error.__cause__):
            known = "`sqlite:///FILE` or `http://HOST:PORT`"
            raise RunError(f"{error}: set MLFLOW_TRACKING_URI to a store that MLflow has, such as {known}") from error
        return
    if experiment in deleted:
        raise deleted_error(experiment, deleted[experiment], uri)


class _Database:
    """An SQLite file that MLflow wrote, read by SQL in one transaction."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        # Python's sqlite3 opens no transaction for a select by itself: each would read another moment of the file.
        database.execute("begin")

    def experiments(self, stage: _Stage = "active") -> dict[str, str]:
        """MLflow's experiment ids by name, without its own "Default", which is experiment 0."""
        rows = self._database.execute(
            "select name, experiment_id from experiments "
            "where lifecycle_stage = ? and experiment_id != 0 and typeof(name) = 'text'",
            [stage],
        )
        return {name: str(id_) for name, id_ in rows}

    def runs(self, experiment: str) -> dict[str, StoredRun]:
        """The active runs of an experiment id, by MLflow's run id."""
        runs = {
            uuid: StoredRun(*info)
            for uuid, *info in self._database.execute(
                "select run_uuid, name, status, start_time, end_time, artifact_uri from runs "
                "where experiment_id = ? and lifecycle_stage = 'active'",
                [experiment],
            )
        }
        for uuid, name, value in self._of_runs("key, value", "params", experiment):
            runs[uuid].params[name] = value
        for uuid, name, value in self._of_runs("key, value", "tags", experiment):
            if value is not None:
                runs[uuid].tags[name] = value
        # The column `value` of a NaN holds 0.
        for uuid, name, value, is_nan in self._of_runs("key, value, is_nan", "latest_metrics", experiment):
            runs[uuid].metrics[name] = float("nan") if is_nan else value
        return runs

    def points(self, experiment: str) -> Iterator[tuple[str, int, str, float]]:
        """Every value of every metric: MLflow's run id, step, metric, value."""
        for uuid, step, name, value, is_nan in self._of_runs("step, key, value, is_nan", "metrics", experiment):
            yield uuid, step, name, float("nan") if is_nan else value

    def _of_runs(self, columns: str, table: str, experiment: str) -> sqlite3.Cursor:
        return self._database.execute(
            f"select run_uuid, {columns} from {table} where run_uuid in "  # nosec B608  # constants of this file
            "(select run_uuid from runs where experiment_id = ? and lifecycle_stage = 'active')",
            [experiment],
        )


class _Api:
    """Any store, read through MLflow's client in pages."""

    def __init__(self, uri: str) -> None:
        with locked(uri):
            self._client = quiet_client(uri)

    def experiments(self, stage: _Stage = "active") -> dict[str, str]:
        from mlflow.entities import ViewType

        view = ViewType.ACTIVE_ONLY if stage == "active" else ViewType.DELETED_ONLY
        pages = all_pages(lambda token: self._client.search_experiments(view, max_results=_PAGE, page_token=token))
        return {experiment.name: experiment.experiment_id for experiment in pages if experiment.experiment_id != "0"}

    def runs(self, experiment: str) -> dict[str, StoredRun]:
        runs = {}
        for run in all_pages(lambda token: self._client.search_runs([experiment], max_results=_PAGE, page_token=token)):
            info, data = run.info, run.data
            own = (info.run_name, info.status, info.start_time, info.end_time, info.artifact_uri)
            runs[info.run_id] = StoredRun(*own, data.params, data.metrics, data.tags)
        return runs

    def points(self, experiment: str) -> Iterator[tuple[str, int, str, float]]:
        for uuid, run in self.runs(experiment).items():
            for metric in run.metrics:
                for point in self._client.get_metric_history(uuid, metric):
                    yield uuid, point.step, metric, point.value


def text_artifact(root: str, name: str, uri: str | None) -> str | None:
    """The content of a text file below the root of a run's artifacts, None if the run has no such file."""
    location = urlsplit(root)
    if location.scheme in ("", "file"):
        file = Path(unquote(location.path) if location.scheme else root) / name
        return file.read_text(encoding="utf-8") if file.is_file() else None
    uri = store_uri(uri)
    with _store_errors(uri):
        from mlflow import artifacts

        address = f"{root}/{name}"
        folder, _, stem = address.rpartition("/")
        if stem not in [Path(artifact.path).name for artifact in artifacts.list_artifacts(folder, tracking_uri=uri)]:
            return None
        with TemporaryDirectory() as target:
            file = Path(artifacts.download_artifacts(address, dst_path=target, tracking_uri=uri))
            return file.read_text(encoding="utf-8")


@contextmanager
def _store_errors(uri: str) -> Iterator[None]:
    """Turn an error of the store into a RunError that names it."""
    quiet()
    with as_run_error(f"the store of runs must answer, reading {uri} failed"):
        yield


def _revision(database: sqlite3.Connection) -> str | None:
    if not database.execute("select 1 from sqlite_master where name = 'alembic_version'").fetchone():
        return None
    row = database.execute("select version_num from alembic_version").fetchone()
    return str(row[0]) if row else None


def all_pages(page: Callable[[str | None], Any]) -> Iterator[Any]:
    """Every item of a search of MLflow's, where `page` fetches the page of a token."""
    token = None
    while True:
        items = page(token)
        yield from items
        token = items.token
        if not token:
            return
