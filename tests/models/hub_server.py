"""A hub on loopback: the part of its HTTP API that an upload by huggingface_hub uses, as seen of version 2.4."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "hf_ofThisTestAlone"


@dataclass
class Hub:
    """A hub, and what it was sent.

    Attributes:
        repositories: The visibility of each.
        files: The content of each file by repository and path.
        refused: Namespaces that the token cannot write to.
        keeps_large_files: Whether weights are sent apart from the commit, by git LFS.
    """

    endpoint: str = ""
    repositories: dict[str, str] = field(default_factory=dict)
    files: dict[tuple[str, str], bytes] = field(default_factory=dict)
    refused: tuple[str, ...] = ("others",)
    keeps_large_files: bool = False
    uploaded: dict[str, bytes] = field(default_factory=dict)

    def answer(self, path: str, body: bytes) -> tuple[int, Any]:
        """The status and the JSON document for a request to a path."""
        match path.split("/")[1:]:
            case ["api", "repos", "create"]:
                return self._create(**json.loads(body))
            case ["api", "models", namespace, name, "preupload", "main"]:
                paths = [file["path"] for file in json.loads(body)["files"]]
                return 200, {"files": [self._mode(each) for each in paths]}
            case ["api", "validate-yaml"]:
                return 200, {"warnings": [], "errors": []}
            case [_, _, "info", "lfs", "objects", "batch"]:
                return 200, {"objects": [self._action(each) for each in json.loads(body)["objects"]]}
            case ["lfs", oid]:
                self.uploaded[oid] = body
                return 200, {}
            case ["api", "models", namespace, name, "commit", "main"]:
                for line in map(json.loads, body.splitlines()):
                    self._commit(f"{namespace}/{name}", line["key"], line["value"])
                return 200, {"commitOid": "c" * 40, "commitUrl": f"{self.endpoint}/{namespace}/{name}/commit/main"}
        return 404, {"error": "Repository not found"}

    def _create(self, name: str, organization: str, visibility: str = "public") -> tuple[int, Any]:
        repository = f"{organization}/{name}"
        if organization in self.refused:
            return 403, {"error": f"You don't have the rights to create a model under the namespace {organization}"}
        status = 409 if repository in self.repositories else 200
        self.repositories.setdefault(repository, visibility)
        return status, {"url": f"{self.endpoint}/{repository}", "error": "You already created this model repo"}

    def _mode(self, path: str) -> dict[str, Any]:
        is_large = self.keeps_large_files and path.endswith(".safetensors")
        return {"path": path, "uploadMode": "lfs" if is_large else "regular", "shouldIgnore": False}

    def _action(self, file: dict[str, Any]) -> dict[str, Any]:
        return {**file, "actions": {"upload": {"href": f"{self.endpoint}/lfs/{file['oid']}"}}}

    def _commit(self, repository: str, key: str, value: dict[str, Any]) -> None:
        if key == "file":
            self.files[repository, value["path"]] = base64.b64decode(value["content"])
        elif key == "lfsFile":
            self.files[repository, value["path"]] = self.uploaded[value["oid"]]


@contextmanager
def hub_server() -> Iterator[Hub]:
    """A hub that takes TOKEN."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.headers.get("Authorization") == f"Bearer {TOKEN}" or self.path.startswith("/lfs/"):
                status, document = hub.answer(self.path, body)
            else:
                status, document = 401, {"error": "Invalid credentials in Authorization header"}
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_POST

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hub.endpoint = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()
