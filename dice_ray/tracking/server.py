"""MLflow's own pages of the store, served on this machine alone."""

from __future__ import annotations

import os
import socket
import sys
from typing import NoReturn

from dice_ray.errors import InputError, RunError
from dice_ray.tracking.store import shown, sqlite_file, store_uri

HOST = "127.0.0.1"


def command(port: int) -> list[str]:
    """What serves the pages.

    Raises:
        RunError: The store is a server, which has pages of its own, or there is none yet.
        InputError: The port is taken.
    """
    uri = store_uri()
    if uri.startswith(("http://", "https://")):
        raise RunError(f"MLFLOW_TRACKING_URI must name a store without pages of its own: open {shown(uri)}")
    file = sqlite_file(uri)
    if file is not None and not file.is_file():
        raise RunError(f"the store of runs must be there, and {file} is not: nothing has been tracked in it yet")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise InputError(f"--port must be free on {HOST}, got {port}: {error.strerror}") from error
    serve = [sys.executable, "-P", "-m", "mlflow", "ui", "--host", HOST, "--port", str(port), "--workers", "1"]
    return [*serve, "--backend-store-uri", uri]


def serve(port: int) -> NoReturn:
    """Become MLflow's server, until it is interrupted."""
    words = command(port)
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    os.environ["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"  # three more processes, for nothing that is shown
    sys.stdout.flush()
    os.execv(words[0], words)
