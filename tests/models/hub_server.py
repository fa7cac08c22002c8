"""A hub on loopback: the part of its HTTP API by which huggingface_hub 2.4 sends and fetches files."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

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

    def file(self, path: str, *, has_token: bool) -> tuple[int, bytes, dict[str, str]]:
        """The status, the content and the headers for the request of a file."""
        repository, _, file = path.strip("/").partition("/resolve/main/")
        if repository not in self.repositories or (self.repositories[repository] == "private" and not has_token):
            return 401, b"", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository Not Found"}
        if (repository, file) not in self.files:
            return 404, b"", {"X-Error-Code": "EntryNotFound", "X-Error-Message": "Entry not found"}
        content = self.files[repository, file]
        return 200, content, {"X-Repo-Commit": "c" * 40, "ETag": f'"{hashlib.sha1(content).hexdigest()}"'}

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
        def do_GET(self) -> None:
            if "/resolve/" not in self.path:
                return self.do_POST()
            has_token = self.headers.get("Authorization") == f"Bearer {TOKEN}"
            status, content, headers = hub.file(self.path, has_token=has_token)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)
            return None

        do_HEAD = do_GET

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

        do_PUT = do_POST

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


@contextmanager
def logged_in(patch: pytest.MonkeyPatch, folder: Path) -> Iterator[Hub]:
    """A hub that this process is logged in to, with files of its own in a folder."""
    from huggingface_hub import constants

    with hub_server() as server:
        patch.setattr(constants, "HF_HUB_OFFLINE", False)
        patch.setattr(constants, "ENDPOINT", server.endpoint)
        patch.setattr(constants, "HF_TOKEN_PATH", str(folder / "token"))
        patch.setattr(constants, "AGENT_HARNESSES_PATH", str(folder / "harnesses.json"))
        patch.setenv("HF_TOKEN", TOKEN)
        yield server
