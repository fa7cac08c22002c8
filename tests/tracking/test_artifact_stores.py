"""An artifact store whose client raises errors of its own class counts as a store that is away."""

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
from dice_ray.tracking.spool import unsent_spools
from dice_ray.tracking.store import quiet_client
from dice_ray.tracking.writer import Writer


class FtpServer(ThreadingTCPServer):
    """An FTP server on loopback, which accepts no login while it is away."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Session)
        self.folder, self.is_away = folder, False

    @property
    def uri(self) -> str:
        return f"ftp://127.0.0.1:{self.server_address[1]}/mine"


class Session(StreamRequestHandler):
    """The part of FTP that MLflow uses to store a file."""

    server: FtpServer

    def handle(self) -> None:
        here, data = self.server.folder, socket.create_server(("127.0.0.1", 0))
        self._reply("220 ready")
        with data:
            while command := self.rfile.readline().decode().strip():
                verb, _, name = command.partition(" ")
                path = (self.server.folder if name.startswith("/") else here) / name.lstrip("/")
                match verb:
                    case "USER" if self.server.is_away:
                        self._reply("421 Too many connections")
                    case "MKD":
                        path.mkdir(parents=True)
                        self._reply(f'257 "{name}"')
                    case "CWD" if not path.is_dir():
                        self._reply("550 No such folder")
                    case "CWD":
                        here = path
                        self._reply("250 Changed")
                    case "PASV":
                        port = data.getsockname()[1]
                        self._reply(f"227 Entering passive mode (127,0,0,1,{port // 256},{port % 256})")
                    case "STOR":
                        self._reply("150 Send")
                        with data.accept()[0] as connection, connection.makefile("rb") as content:
                            path.write_bytes(content.read())
                        self._reply("226 Stored")
                    case _:
                        self._reply("200 OK")

    def _reply(self, line: str) -> None:
        with suppress(BrokenPipeError):
            self.wfile.write(f"{line}\r\n".encode())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FtpServer]:
    (tmp_path / "stored").mkdir()
    with FtpServer(tmp_path / "stored") as store:
        thread = Thread(target=store.serve_forever)
        thread.start()
        yield store
        store.shutdown()
        thread.join()


def report(writer: Writer) -> Writer:
    with writer:
        writer.open("a", name="a", params={}, tags={})
        writer.metrics("a", 1, {"dev/f1": 0.1})
        writer.text("a", "config.yaml", "lr: 2")
        writer.metrics("a", 2, {"dev/f1": 0.2})
        writer.end("a", "FINISHED")
    return writer


def test_entries_wait_while_it_is_away_and_are_sent_once(uri: str, store: FtpServer, tmp_path: Path) -> None:
    quiet_client(uri).create_experiment("away", artifact_location=store.uri)
    store.is_away = True
    writer = report(Writer("away", uri, tmp_path / "run"))
    assert writer.failure == "421 Too many connections"
    assert len(list(unsent_spools(tmp_path))) == 1
    with pytest.raises(RunError, match=r"the store of runs must answer, .* failed: 421 Too many connections"):
        texts(read("away", uri), "config.yaml", uri)
    store.is_away = False
    Writer("away", uri, tmp_path / "run").close()
    assert list(unsent_spools(tmp_path)) == []
    assert [file.read_text() for file in (tmp_path / "stored").rglob("config.yaml")] == ["lr: 2"]
    assert read("away", uri)["status"].tolist() == ["FINISHED"]
    assert curves("away", uri)["step"].tolist() == [1, 2]


def test_without_a_folder_close_raises_with_the_number_of_lost_entries(uri: str, store: FtpServer) -> None:
    quiet_client(uri).create_experiment("away", artifact_location=store.uri)
    store.is_away = True
    with pytest.raises(RunError, match=r"'away' must be stored in .*, 3 entries were not: 421 Too many connections"):
        report(Writer("away", uri))


def test_the_failure_names_a_client_that_is_not_installed(uri: str, tmp_path: Path) -> None:
    quiet_client(uri).create_experiment("away", artifact_location="sftp://127.0.0.1/mine")
    writer = report(Writer("away", uri, tmp_path / "run"))
    assert writer.failure is not None
    assert writer.failure.startswith("No module named 'p")
    assert len(list(unsent_spools(tmp_path))) == 1
