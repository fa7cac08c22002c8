"""Where runs are stored: the store's URI, its SQLite file if it is one, and a client that keeps quiet."""

from __future__ import annotations

import fcntl
import logging
import os
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dice_ray.errors import DiceRayError, RunError

if TYPE_CHECKING:
    from mlflow import MlflowClient

DEFAULT: Final = "sqlite:///mlflow.db"
_SQLITE: Final = "sqlite:///"
_ENVIRONMENT: Final = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    # MLflow's own seven tries take minutes; the writer tries again by itself, a reader wants its answer.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
}


def store_uri(uri: str | None = None) -> str:
    """The URI given, else MLFLOW_TRACKING_URI, else `sqlite:///mlflow.db`; an SQLite file by its absolute path."""
    uri = uri or os.environ.get("MLFLOW_TRACKING_URI") or DEFAULT
    file = sqlite_file(uri)
    return f"{_SQLITE}{file}" if file else uri


def sqlite_file(uri: str) -> Path | None:
    """The file of an SQLite store, none for any other."""
    if not uri.startswith(_SQLITE) or "?" in uri:
        return None
    return Path(uri.removeprefix(_SQLITE)).absolute()


def shown(text: str) -> str:
    """A URI, or a message that holds one, as it may be printed: without passwords.

    >>> shown("postgresql://me:secret@host/runs")
    'postgresql://***@host/runs'
    """
    return re.sub(r"://[^@/\s]*@", "://***@", text)


def is_of_a_store(error: Exception) -> bool:
    """Whether a store or its client failed, and not this program.

    Stores of artifacts have clients of many kinds, each with errors of its own, and some raise Python's: theirs are
    those of files and networks, those of a client that is not installed, and what was raised outside of this program.

    >>> is_of_a_store(TimeoutError()), is_of_a_store(ImportError("No module named 'boto3'")), is_of_a_store(TypeError())
    (True, True, False)
    """
    if type(error).__module__ != "builtins":
        return not isinstance(error, DiceRayError)
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    is_raised_outside = bool(frames) and not frames[-1].f_globals["__name__"].startswith("dice_ray.")
    return is_raised_outside or isinstance(error, OSError | EOFError | ImportError)


def deleted(experiment: str, id_: str, uri: str) -> RunError:
    """What to say of an experiment that was deleted in MLflow."""
    return RunError(
        f"the experiment {experiment!r} must be active in {shown(uri)}, and was deleted: "
        f"`mlflow experiments restore --experiment-id {id_}` brings it back, or choose another name"
    )


@contextmanager
def locked(uri: str) -> Iterator[None]:
    """One process or thread at a time; no SQLite file, no lock.

    MLflow creates its tables without one: of two that begin, one would fail on the other's tables.
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
    """MLflow's client for a store; an SQLite file is created and migrated here (about a second), so be `locked`."""
    quiet()
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=uri)


def quiet() -> None:
    """Import MLflow so that it neither prints nor reports home."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    import mlflow  # noqa: F401  it configures its loggers here, and reads the environment

    for logger in () if os.environ.get("DICE_RAY_VERBOSE") else ("mlflow", "alembic"):
        logging.getLogger(logger).setLevel(logging.ERROR)
