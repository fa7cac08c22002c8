"""MLflow's pages: served on loopback only, of the store that is used, with an error if there is none."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from dice_ray import api
from dice_ray.cli.app import app
from dice_ray.errors import InputError, RunError
from dice_ray.tracking import server
from dice_ray.tracking.writer import Writer
from tests.tracking.stores import free_port


def test_errors_of_a_missing_store_a_server_and_a_taken_port(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:////nowhere/mlflow.db")
    with pytest.raises(RunError, match="nothing has been tracked in it yet"):
        server.command(5000)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:secret@127.0.0.1:5000")
    with pytest.raises(RunError, match=r"open http://\*\*\*@127\.0\.0\.1:5000"):
        server.command(5000)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match="--port must be free on"):
            server.command(taken.getsockname()[1])


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2"])
def test_others_may_use_the_pages_only_where_it_is_allowed(host: str) -> None:
    """MLflow's server asks for no password: whoever reaches it can delete all runs."""
    with pytest.raises(InputError, match=r"read, change and delete all runs .* give --allow-remote"):
        api.ui(5000, host)
    server._check_host(host, allow_remote=True)
    server._check_host("127.0.0.2", allow_remote=False)
    server._check_host("::1", allow_remote=False)


def test_a_page_is_announced_only_if_it_will_be_served() -> None:
    """`http://... shows the runs` was printed above the error."""
    result = CliRunner().invoke(app, ["ui"])
    assert isinstance(result.exception, RunError)
    assert result.output == ""


def test_the_host_is_an_address() -> None:
    """A name may resolve to any address, of which the check would know nothing."""
    with pytest.raises(InputError, match=r"--host must be an IP address of this machine, as 127\.0\.0\.1, got 'me'"):
        api.ui_page(5000, "me")


def test_the_pages_are_served_on_loopback_only_by_whatever_name_it_is_asked(tmp_path: Path) -> None:
    """With --allow-remote MLflow refused who uses the machine's name, and what the pages send. And `ps` shows no store.

    The test allows others and serves on loopback all the same, as no other machine may reach it.
    """
    with Writer("shown") as writer:
        writer.open("a", name="a", params={}, tags={})
    port = free_port()
    with (tmp_path / "log.txt").open("wb") as log:
        command = [str(Path(sys.executable).with_name("dice-ray")), "ui", "--port", str(port), "--allow-remote"]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 500
        while True:
            assert process.poll() is None, (tmp_path / "log.txt").read_text()
            assert time.monotonic() < deadline
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}", timeout=10) as page:
                    assert b"MLflow" in page.read()
                break
            except OSError:
                time.sleep(0.5)
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        listening = {
            connection.laddr
            for member in family
            for connection in member.net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN
        }
        assert {tuple(address) for address in listening} == {("127.0.0.1", port)}
        assert "sqlite" not in " ".join(word for member in family for word in member.cmdline())
        asked = urllib.request.Request(
            f"http://127.0.0.1:{port}/ajax-api/2.0/mlflow/experiments/search",
            data=b'{"max_results": 5}',
            headers={
                "Host": f"machine.example:{port}",
                "Origin": f"http://machine.example:{port}",
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(asked, timeout=60) as answer:
            assert b'"shown"' in answer.read()
        printed = (tmp_path / "log.txt").read_text()
        assert f"http://127.0.0.1:{port}/#/experiments?workflowType=machine_learning shows the runs" in printed
        assert "INFO" not in printed
    finally:
        process.terminate()
        process.wait(60)
