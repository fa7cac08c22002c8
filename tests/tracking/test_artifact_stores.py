"""A store of artifacts that fails in a way of its own, neither MLflow's nor the system's: it is away for now."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread

import pytest

from dice_ray.errors import RunError
from dice_ray.tracking.reader import curves, read, texts
from dice_ray.tracking.spool import left_in
from dice_ray.tracking.store import quiet_client
from dice_ray.tracking.writer import Writer


class Store(ThreadingTCPServer):
    """An FTP server on loopback, which lets no one in while it is away."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Session)
        self.folder, self.is_away = folder, False

    @property
    def uri(self) -> str:
        return f"ftp://127.0.0.1:{self.server_address[1]}/mine"


class Session(StreamRequestHandler):
    """As much of FTP as MLflow speaks to store a file."""

    server: Store

    def handle(self) -> None:
        here, data = self.server.folder, socket.create_server(("127.0.0.1", 0))
        self._say("220 hello")
        with data:
            while command := self.rfile.readline().decode().strip():
                verb, _, name = command.partition(" ")
                path = (self.server.folder if name.startswith("/") else here) / name.lstrip("/")
                match verb:
                    case "USER" if self.server.is_away:
                        self._say("421 Too many connections")
                    case "MKD":
                        path.mkdir(parents=True)
                        self._say(f'257 "{name}"')
                    case "CWD" if not path.is_dir():
                        self._say("550 There is no such folder")
                    case "CWD":
                        here = path
                        self._say("250 It is this folder now")
                    case "PASV":
                        port = data.getsockname()[1]
                        self._say(f"227 Come in (127,0,0,1,{port // 256},{port % 256})")
                    case "STOR":
                        self._say("150 Go on")
                        with data.accept()[0] as connection, connection.makefile("rb") as content:
                            path.write_bytes(content.read())
                        self._say("226 It is stored")
                    case _:
                        self._say("200 Well")

    def _say(self, line: str) -> None:
        with suppress(BrokenPipeError):
            self.wfile.write(f"{line}\r\n".encode())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    (tmp_path / "there").mkdir()
    with Store(tmp_path / "there") as store:
        thread = Thread(target=store.serve_forever)
        thread.start()
        yield store
        store.shutdown()
        thread.join()


def told(writer: Writer) -> Writer:
    with writer:
        writer.open("a", name="a", params={}, tags={})
        writer.metrics("a", 1, {"dev/f1": 0.1})
        writer.text("a", "config.yaml", "lr: 2")
        writer.metrics("a", 2, {"dev/f1": 0.2})
        writer.end("a", "FINISHED")
    return writer


def test_what_it_does_not_take_waits_and_is_sent_once(uri: str, store: Store, tmp_path: Path) -> None:
    quiet_client(uri).create_experiment("away", artifact_location=store.uri)
    store.is_away = True
    writer = told(Writer("away", uri, tmp_path / "run"))
    assert writer.failure == "421 Too many connections"
    assert len(list(left_in(tmp_path))) == 1
    with pytest.raises(RunError, match=r"the store of runs must answer, .* said: 421 Too many connections"):
        texts(read("away", uri), "config.yaml", uri)
    store.is_away = False
    Writer("away", uri, tmp_path / "run").close()
    assert list(left_in(tmp_path)) == []
    assert [file.read_text() for file in (tmp_path / "there").rglob("config.yaml")] == ["lr: 2"]
    assert read("away", uri)["status"].tolist() == ["FINISHED"]
    assert curves("away", uri)["step"].tolist() == [1, 2]


def test_without_a_folder_close_tells_what_is_lost(uri: str, store: Store) -> None:
    quiet_client(uri).create_experiment("away", artifact_location=store.uri)
    store.is_away = True
    with pytest.raises(RunError, match=r"'away' must be stored in .*, 3 entries were not: 421 Too many connections"):
        told(Writer("away", uri))


def test_a_client_that_is_not_installed_is_named(uri: str, tmp_path: Path) -> None:
    quiet_client(uri).create_experiment("away", artifact_location="sftp://127.0.0.1/mine")
    writer = told(Writer("away", uri, tmp_path / "run"))
    assert writer.failure is not None
    assert writer.failure.startswith("No module named 'p")
    assert len(list(left_in(tmp_path))) == 1
