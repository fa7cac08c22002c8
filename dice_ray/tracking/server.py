"""MLflow's web pages of the store, served on this machine only, unless the user allows others to use them."""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
from typing import NoReturn

from dice_ray.errors import InputError, RefusedError
from dice_ray.files import without_password
from dice_ray.tracking.store import check_exists, store_uri

PAGE = "#/experiments?workflowType=machine_learning"
"""The page of experiments; MLflow's first page is about agents and prompts."""


def _check_host(host: str, *, allow_remote: bool) -> None:
    """Raise an InputError unless the pages are served on loopback, or the user allows that others use them."""
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError as error:
        raise InputError(f"--host must be an IP address of this machine, as 127.0.0.1, got {host!r}") from error
    if not is_loopback and not allow_remote:
        raise InputError(
            f"--host {host} lets everybody who reaches this machine read, change and delete all runs and "
            "the texts stored with them, without a password: give --allow-remote if that is meant, or forward the port "
            "by `ssh -L`"
        )


def command(port: int, host: str = "127.0.0.1", *, allow_remote: bool = False) -> list[str]:
    """The command line of the server.

    Raises:
        RunError: The store is a server, which has pages of its own, or does not exist yet.
        InputError: Others could use the pages, and `allow_remote` is not given; or the port is not free.
    """
    _check_host(host, allow_remote=allow_remote)
    uri = store_uri()
    if uri.startswith(("http://", "https://")):
        raise RefusedError(
            f"MLFLOW_TRACKING_URI must name a store without pages of its own: open {without_password(uri)}"
        )
    check_exists(uri)
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        # Else a port that a server has just left (TIME_WAIT) would count as taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise InputError(f"--port must be free on {host}, got {port}: {error.strerror}") from error
    # -P: without it Python would import an mlflow.py of the working directory in place of MLflow.
    serve = [sys.executable, "-P", "-m", "mlflow", "ui", "--host", host, "--port", str(port), "--workers", "1"]
    return serve if os.environ.get("DICE_RAY_VERBOSE") else [*serve, "--uvicorn-opts", "--log-level warning"]


def serve(port: int, host: str, *, allow_remote: bool) -> NoReturn:
    """Replace this process by MLflow's server, which runs until it is interrupted; raises what `command` raises."""
    arguments, uri = command(port, host, allow_remote=allow_remote), store_uri()
    # As variables: all users of the machine see the arguments of a process, and the URI may hold a password.
    os.environ |= {"MLFLOW_BACKEND_STORE_URI": uri, "MLFLOW_REGISTRY_STORE_URI": uri}
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    os.environ["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"  # saves three processes that no page needs
    if allow_remote:
        # By default MLflow refuses others that use this machine's name, and what their pages send (3.17).
        os.environ.setdefault("MLFLOW_SERVER_ALLOWED_HOSTS", "*")
        os.environ.setdefault("MLFLOW_SERVER_CORS_ALLOWED_ORIGINS", f"http://*:{port}")
    if not os.environ.get("DICE_RAY_VERBOSE"):
        os.environ |= {"MLFLOW_LOGGING_LEVEL": "WARNING", "PYTHONWARNINGS": "ignore"}
    sys.stdout.flush()
    os.execv(arguments[0], arguments)
