"""A server of Amazon's S3 on loopback, with one bucket."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyarrow.fs import FileSystem

from tests.tracking.stores import free_port

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"}


@contextmanager
def s3(folder: Path) -> Iterator[str]:
    """The URL of a folder of the bucket; a process that uses it must have `CREDENTIALS`. The log is in `folder`."""
    port = free_port()
    with (folder / "s3.log").open("w") as log:
        server = subprocess.Popen([sys.executable, "-m", "moto.server", "-p", str(port)], stdout=log, stderr=log)
    options = f"endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
    try:
        until = time.monotonic() + 60
        while not _answers(port):
            assert server.poll() is None, (folder / "s3.log").read_text()
            assert time.monotonic() < until, "the server must start"
            time.sleep(0.2)
        filesystem, _ = FileSystem.from_uri(f"s3://bucket/?{options}&allow_bucket_creation=true")
        filesystem.create_dir("bucket")
        yield f"s3://bucket/runs?{options}"
    finally:
        server.terminate()
        server.wait(30)


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def requests(log: Path, method: str, path: str) -> int:
    """How many requests of a kind, for a path below the bucket, the server has answered."""
    return log.read_text().count(f"{method} /bucket{path} ")
