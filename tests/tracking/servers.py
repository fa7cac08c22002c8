"""A real MLflow server on loopback that can be killed and started again, and a proxy that disturbs its answers."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from tests.tracking.stores import free_port

SERVE = """
import os, sys
import mlflow.server as server
os.environ[server.BACKEND_STORE_URI_ENV_VAR] = sys.argv[2]
os.environ[server.ARTIFACT_ROOT_ENV_VAR] = "mlflow-artifacts:/"
os.environ[server.SERVE_ARTIFACTS_ENV_VAR] = "true"
os.environ[server.ARTIFACTS_DESTINATION_ENV_VAR] = sys.argv[3]
import uvicorn
from mlflow.server.fastapi_app import app
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]))
"""
"""The worker of `mlflow server`, without the processes around it."""


class Server:
    """MLflow's server on loopback, which can be killed and started again on the same store."""

    def __init__(self, folder: Path, store: str) -> None:
        self.port, self.folder, self.store = free_port(), folder, store
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        if self.process is not None:
            return
        arguments = [str(self.port), self.store, str(self.folder / "artifacts")]
        environment = os.environ | {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        with (self.folder / "server.log").open("ab") as log:
            command = [sys.executable, "-c", SERVE, *arguments]
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        until(self._answers)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.process = None

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.uri}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def until(holds: Callable[[], bool], seconds: float = 200) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


class Proxy(ThreadingHTTPServer):
    """A proxy before a server, which answers with its own `status`, or with a `fault`, where one of them is set.

    Attributes:
        fault: One of `away` (no answer; to stop the server would take 5 s), `hang` (no answer until it is over), `half`
            (the answer breaks off), `late error` (the server has done what it was asked for, and the answer is 500),
            `no JSON`, `empty` (the server is not asked).
    """

    daemon_threads = True

    def __init__(self, target: str, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Forward)
        self.target, self.status, self.fault = target, 0, ""

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that are gone."""


NO_JSON: Final = (b"<html>", b"null", b"[]", b'{"run": ', b"3", b'"run"')


class _Forward(BaseHTTPRequestHandler):
    server: Proxy

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, fault = self.server.status, self.server.fault
        content = b"<html>the proxy's own page</html>"
        while self.server.fault == fault == "hang":
            time.sleep(0.1)
        if fault == "empty":
            status, content = 200, b""
        if not status and fault not in ("away", "hang"):
            status, content = self._forwarded(body)
        if fault in ("away", "hang"):
            self.close_connection = True
            return
        if fault == "late error":
            status = 500
        if fault == "no JSON" and self.path.startswith("/api/"):
            content = random.choice(NO_JSON)
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if fault == "half":
            content, self.close_connection = content[: len(content) // 2], True
        self.wfile.write(content)

    do_POST = do_PUT = do_PATCH = do_GET

    def _forwarded(self, body: bytes) -> tuple[int, bytes]:
        headers = {"Content-Type": self.headers.get("Content-Type", "application/json")}
        request = urllib.request.Request(self.server.target + self.path, body or None, headers, method=self.command)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()
        except OSError:
            return 502, b"the server is away"

    def log_message(self, format: str, *arguments: object) -> None:
        pass
