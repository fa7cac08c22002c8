"""MLflow's web pages of the store, served on this machine only."""

from __future__ import annotations

import os
import socket
import sys
from typing import NoReturn

from dice_ray.errors import InputError, RunError
from dice_ray.tracking.store import check_exists, store_uri, without_password

HOST = "127.0.0.1"
PAGE = "#/experiments?workflowType=machine_learning"
"""The page of experiments; MLflow's first page is about agents and prompts."""
_QUIET = {
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "PYTHONWARNINGS": "ignore",
}


def command(port: int) -> list[str]:
    """The command line of the server.

    Raises:
        RunError: The store is a server, which has pages of its own, or does not exist yet.
        InputError: The port is not free.
    """
    uri = store_uri()
    if uri.startswith(("http://", "https://")):
        raise RunError(f"MLFLOW_TRACKING_URI must name a store without pages of its own: open {without_password(uri)}")
    check_exists(uri)
    with socket.socket() as probe:
        # Else a port that a server has just left (TIME_WAIT) would count as taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise InputError(f"--port must be free on {HOST}, got {port}: {error.strerror}") from error
    # -P: without it Python would import an mlflow.py of the working directory in place of MLflow.
    serve = [sys.executable, "-P", "-m", "mlflow", "ui", "--host", HOST, "--port", str(port), "--workers", "1"]
    serve += ["--backend-store-uri", uri, "--registry-store-uri", uri]
    return serve if os.environ.get("DICE_RAY_VERBOSE") else [*serve, "--uvicorn-opts", "--log-level warning"]


def serve(port: int) -> NoReturn:
    """Replace this process by MLflow's server, which runs until it is interrupted; raises what `command` raises."""
    arguments = command(port)
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    os.environ["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"  # saves three processes that no page needs
    if not os.environ.get("DICE_RAY_VERBOSE"):
        os.environ.update(_QUIET)
    sys.stdout.flush()
    os.execv(arguments[0], arguments)
