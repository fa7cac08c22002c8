"""Errors of the store: which come from it, which of its answers a proxy may have given, and which are final."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeGuard

from dice_ray.errors import DiceRayError, RunError, first_line
from dice_ray.files import without_password

if TYPE_CHECKING:
    from mlflow.exceptions import MlflowException

IN_DOUBT: Final = (401, 403, 404)
"""Statuses that a proxy gives in place of a server that is restarted."""


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
    return status < 500 and status != 429 and status not in IN_DOUBT


def is_in_doubt(error: Exception) -> bool:
    """Whether a proxy may have answered in place of the store."""
    if is_mlflow_error(error):
        return error.get_http_status_code() in IN_DOUBT
    response = getattr(error, "response", None)  # of requests, which the artifacts are sent with
    return getattr(response, "status_code", None) in IN_DOUBT


def is_deleted_run(error: Exception) -> bool:
    """Whether it is MLflow's own answer that a run does not exist; that of a proxy has another code."""
    return is_mlflow_error(error) and error.error_code == "RESOURCE_DOES_NOT_EXIST"


def message(error: Exception) -> str:
    """The first line of an error, without the password of a URI in it."""
    return without_password(first_line(error))
