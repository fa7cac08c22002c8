"""Where runs are stored: its URI, its SQLite file if it has one, a client that prints nothing, and its errors."""

from __future__ import annotations

import fcntl
import logging
import os
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeGuard
from urllib.parse import unquote

from dice_ray.errors import DiceRayError, RefusedError, RunError, first_line
from dice_ray.files import without_password

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

_DEFAULT: Final = "sqlite:///mlflow.db"
_IN_DOUBT: Final = (401, 403, 404)
"""Statuses that a proxy gives in place of a server that is restarted."""
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
    uri = uri or os.environ.get("MLFLOW_TRACKING_URI") or _DEFAULT
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
    """Raise a RefusedError where the file of an SQLite store does not exist; other stores are not asked."""
    file = sqlite_file(uri)
    if file is not None and not file.is_file():
        raise RefusedError(f"the store of runs must exist, {file} does not: nothing has been tracked in it yet")


def check_answers(uri: str | None = None) -> str:
    """Ask the store for its first experiment, and write and delete a file where a new one keeps its artifacts.

    Other experiments may have been given any artifact store, which tells nothing of that of a new one. Returns where
    both are; a RunError where the store does not answer, or its artifacts cannot be written.
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


def is_store_error(error: Exception) -> bool:
    """Whether an error came from a store or its client, and not from this program.

    Clients of artifact stores raise classes of their own, and sometimes Python's. One of Python's counts as the
    store's if it is about files, networks or a client that is not installed, or was raised in a module of others.

    >>> [is_store_error(error) for error in (TimeoutError(), ImportError("No module named 'boto3'"), TypeError())]
    [True, True, False]
    """
    if type(error).__module__ != "builtins":
        return not isinstance(error, DiceRayError)
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    is_raised_outside = bool(frames) and not frames[-1].f_globals["__name__"].startswith("dice_ray.")
    return is_raised_outside or isinstance(error, OSError | EOFError | ImportError)


@contextmanager
def as_run_error(requirement: str, advice: str = "") -> Iterator[None]:
    """Turn an error of the store into a RunError, without passwords: the requirement, the reason, and the advice."""
    try:
        yield
    except Exception as error:
        if not is_store_error(error):
            raise
        raise RunError(without_password(f"{requirement}: {first_line(error)}{advice}")) from error


def is_mlflow_error(error: BaseException | None) -> TypeGuard[MlflowException]:
    """Whether MLflow or its server has raised it."""
    from mlflow.exceptions import MlflowException

    return isinstance(error, MlflowException)


def is_refusal(error: Exception) -> bool:
    """Whether the store answered, and will answer the same the next time."""
    if not is_mlflow_error(error):
        return True
    status: int = error.get_http_status_code()
    # 429: too many requests, which are accepted later
    return status < 500 and status != 429 and status not in _IN_DOUBT


def is_in_doubt(error: Exception) -> bool:
    """Whether a proxy may have answered in place of the store."""
    if is_mlflow_error(error):
        return error.get_http_status_code() in _IN_DOUBT
    response = getattr(error, "response", None)  # of requests, which the artifacts are sent with
    return getattr(response, "status_code", None) in _IN_DOUBT


def is_deleted_run(error: Exception) -> bool:
    """Whether it is MLflow's own answer that a run does not exist; that of a proxy has another code."""
    return is_mlflow_error(error) and error.error_code == "RESOURCE_DOES_NOT_EXIST"


def message(error: Exception) -> str:
    """The first line of an error, without the password of a URI in it."""
    return without_password(first_line(error))
