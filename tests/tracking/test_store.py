"""Where runs are stored."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import make_url

from dice_ray.errors import RunError
from dice_ray.tracking.entries import merge_points
from dice_ray.tracking.reader import read
from dice_ray.tracking.store import (
    check_answers,
    is_store_error,
    quiet_client,
    sqlite_file,
    store_uri,
)
from tests.tracking.stores import free_port


def test_the_default_is_a_file_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert store_uri() == f"sqlite:///{tmp_path}/mlflow.db"
    assert sqlite_file(store_uri()) == tmp_path / "mlflow.db"
    (tmp_path / "100%25 a?b #c").mkdir()
    monkeypatch.chdir(tmp_path / "100%25 a?b #c")
    assert sqlite_file(store_uri()) == Path.cwd() / "mlflow.db"
    assert make_url(store_uri()).database == str(Path.cwd() / "mlflow.db")


def test_the_environment_overrides_the_default_and_an_argument_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:5000")
    assert store_uri() == "http://127.0.0.1:5000"
    assert store_uri("sqlite:////a/b.db") == "sqlite:////a/b.db"
    assert sqlite_file("http://127.0.0.1:5000") is None


def test_two_processes_create_a_store_at_once_and_print_nothing(tmp_path: Path) -> None:
    script = """
import sys
from dice_ray.tracking.reader import read
from dice_ray.tracking.store import quiet
from dice_ray.tracking.writer import Writer
quiet()
print("ready", flush=True)
sys.stdin.readline()
with Writer("together") as writer:
    writer.open(sys.argv[1], name=sys.argv[1], params={}, tags={})
    writer.end(sys.argv[1], "FINISHED")
assert sys.argv[1] in list(read("together").id)
"""
    environment = os.environ | {"MLFLOW_TRACKING_URI": "sqlite:///new/mlflow.db"}
    pipe = subprocess.PIPE
    processes = [
        subprocess.Popen([sys.executable, "-c", script, key], env=environment, stdin=pipe, stdout=pipe, stderr=pipe)
        for key in ("a", "b")
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"start\n")
        process.stdin.flush()
    for process in processes:
        printed = process.communicate(timeout=200)
        assert (process.returncode, *printed) == (0, b"", b"")
    assert set(read("together", f"sqlite:///{tmp_path}/new/mlflow.db")["id"]) == {"a", "b"}


def test_a_store_is_asked_and_its_artifacts_written_and_nothing_stays(uri: str, tmp_path: Path) -> None:
    """Finds a check that passes though artifacts cannot be stored, leaves its file behind, or asks another's store."""
    artifacts = tmp_path / "mlartifacts"
    quiet_client(uri).create_experiment("newest", artifact_location="nowhere://of/another")
    assert check_answers(uri) == f"{uri}, artifacts in {artifacts.as_uri()}"
    assert list(artifacts.iterdir()) == []
    # As a server has it, which chooses the place by itself.
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as database, database:
        database.execute("update experiments set artifact_location = ? where experiment_id = 0", [f"{tmp_path}/chosen"])
    assert check_answers(f"{uri}?timeout=9") == f"{uri}?timeout=9, artifacts in {tmp_path}/chosen"
    artifacts.rmdir()
    artifacts.write_text("in the way")
    with pytest.raises(RunError, match=rf"MLflow's artifacts must be writable at {artifacts.as_uri()}: .* --serve-art"):
        check_answers(uri)


def test_a_store_that_does_not_answer_is_named_with_what_to_do(tmp_path: Path) -> None:
    """Finds an absent store that passes, a password that is printed, and a file that is created by the check."""
    with pytest.raises(
        RunError, match=r"MLflow must answer at http://\*\*\*@127.0.0.1:\d+: .* start it, or set MLFLOW_TRAC"
    ):
        check_answers(f"http://me:secret@127.0.0.1:{free_port()}")
    assert check_answers(f"sqlite:///{tmp_path}/new.db").endswith("new.db, created by the first run")
    assert list(tmp_path.iterdir()) == []


def test_python_errors_belong_to_the_module_that_raised_them() -> None:
    with pytest.raises(ValueError, match="invalid literal") as of_a_client:
        int("no number")
    assert is_store_error(of_a_client.value)
    with pytest.raises(AttributeError) as of_ours:
        merge_points([None])  # type: ignore[list-item]
    assert not is_store_error(of_ours.value)
