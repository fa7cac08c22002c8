"""Where runs are stored: the URI of the store, its SQLite file if it has one, and a client that prints nothing."""

from __future__ import annotations

import fcntl
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from dice_ray.errors import RunError
from dice_ray.files import without_password
from dice_ray.tracking.store_errors import as_run_error

if TYPE_CHECKING:
    from mlflow import MlflowClient

DEFAULT: Final = "sqlite:///mlflow.db"
_SQLITE: Final = "sqlite:///"
_ENVIRONMENT: Final = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    # MLflow's default of seven retries takes minutes: the writer retries by itself, a reader needs an answer soon.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
}


def store_uri(uri: str | None = None) -> str:
    """The URI given, else MLFLOW_TRACKING_URI, else `sqlite:///mlflow.db`; an SQLite file by its absolute path."""
    uri = uri or os.environ.get("MLFLOW_TRACKING_URI") or DEFAULT
    file = sqlite_file(uri)
    # SQLAlchemy reads the path as a part of a URL.
    return f"{_SQLITE}{str(file).replace('%', '%25').replace('?', '%3F')}" if file else uri


def sqlite_file(uri: str) -> Path | None:
    """The file of an SQLite store, None for any other store."""
    if not uri.startswith(_SQLITE) or "?" in uri:
        return None
    return Path(unquote(uri.removeprefix(_SQLITE))).absolute()


def artifact_root(uri: str) -> str | None:
    """Where new experiments of an SQLite store keep their artifacts; None for any other store, which decides itself.

    It is beside the database, wherever a command is started: MLflow's default is below the working directory.
    """
    file = sqlite_file(uri)
    return (file.parent / "mlartifacts").as_uri() if file else None


def check_exists(uri: str) -> None:
    """Check that the file of an SQLite store exists; other stores are not asked.

    Raises:
        RunError: It does not exist.
    """
    file = sqlite_file(uri)
    if file is not None and not file.is_file():
        raise RunError(f"the store of runs must exist, {file} does not: nothing has been tracked in it yet")


def check_answers(uri: str | None = None) -> str:
    """Ask the store for its first experiment, and write and delete a file where a new one keeps its artifacts.

    Other experiments may have been given any artifact store, which tells nothing of that of a new one.

    Returns:
        Where the store and its artifacts are.

    Raises:
        RunError: The store does not answer, or its artifacts cannot be written.
    """
    uri = store_uri(uri)
    shown, file = without_password(uri), sqlite_file(uri)
    if file is not None and not file.exists():
        above = next(above for above in file.parents if above.exists())
        if not os.access(above, os.W_OK):
            raise RunError(f"MLflow's {file} must be in a folder that can be written: set MLFLOW_TRACKING_URI")
        return f"{shown}, created by the first run"
    remedy = ": start it, or set MLFLOW_TRACKING_URI and its credentials"
    with as_run_error(f"MLflow must answer at {uri}", remedy), locked(uri):
        first = quiet_client(uri).get_experiment_by_name("Default")
    artifacts = artifact_root(uri) or (first and first.artifact_location)
    if not artifacts:
        return shown
    remedy = ": set the credentials of that store, or start `mlflow server` with --serve-artifacts"
    with as_run_error(f"MLflow's artifacts must be writable at {artifacts}", remedy):
        _write_artifact(artifacts, uri)
    return f"{shown}, artifacts in {without_password(artifacts)}"


def _write_artifact(location: str, uri: str) -> None:
    """Write a file to an artifact store, and delete it."""
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    repository = get_artifact_repository(location, tracking_uri=uri)
    with tempfile.TemporaryDirectory(prefix="dice_ray-") as folder:
        file = Path(folder) / f"dice_ray_doctor_{Path(folder).name}"
        file.write_text("written by `dice-ray doctor`", encoding="utf-8")
        repository.log_artifact(str(file))
        repository.delete_artifacts(file.name)


def deleted_error(experiment: str, id_: str, uri: str) -> RunError:
    """The error to raise for an experiment that was deleted in MLflow."""
    return RunError(
        f"the experiment {experiment!r} must be active in {without_password(uri)}, but was deleted: "
        f"`mlflow experiments restore --experiment-id {id_}` restores it, or choose another name"
    )


@contextmanager
def locked(uri: str) -> Iterator[None]:
    """Hold a lock beside an SQLite file; a store of another kind needs none.

    MLflow creates and migrates its tables without a lock: of two processes that start at once, one would fail because
    the other's tables exist.
    """
    file = sqlite_file(uri)
    if file is None:
        yield
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_name(f"{file.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def quiet_client(uri: str) -> MlflowClient:
    """MLflow's client for a store; call it under `locked`, since it creates and migrates an SQLite file (1 s)."""
    quiet()
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=uri)


def quiet() -> None:
    """Import MLflow with its messages and telemetry turned off; `DICE_RAY_VERBOSE` keeps the messages."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    import mlflow  # noqa: F401  the import reads the environment and configures the loggers

    for logger in () if os.environ.get("DICE_RAY_VERBOSE") else ("mlflow", "alembic"):
        logging.getLogger(logger).setLevel(logging.ERROR)
