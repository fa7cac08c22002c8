"""Where runs are stored."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dice_ray.tracking.entries import joined
from dice_ray.tracking.reader import read
from dice_ray.tracking.store import is_of_a_store, shown, sqlite_file, store_uri


def test_the_default_is_a_file_of_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert store_uri() == f"sqlite:///{tmp_path}/mlflow.db"
    assert sqlite_file(store_uri()) == tmp_path / "mlflow.db"


def test_the_environment_overrides_the_default_and_an_argument_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:5000")
    assert store_uri() == "http://127.0.0.1:5000"
    assert store_uri("sqlite:////a/b.db") == "sqlite:////a/b.db"
    assert sqlite_file("http://127.0.0.1:5000") is None


def test_no_password_is_shown() -> None:
    assert "secret" not in shown("mysql://me:secret@host:1/runs")
    assert shown("sqlite:////a/b@c.db") == "sqlite:////a/b@c.db"


def test_two_processes_make_a_new_store_at_once(tmp_path: Path) -> None:
    script = """
import sys
from dice_ray.tracking.store import quiet
from dice_ray.tracking.writer import Writer
quiet()
print("ready", flush=True)
sys.stdin.readline()
with Writer("together", sys.argv[1]) as writer:
    writer.open(sys.argv[2], name=sys.argv[2], params={}, tags={})
    writer.end(sys.argv[2], "FINISHED")
"""
    uri = f"sqlite:///{tmp_path}/new/mlflow.db"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script, uri, key],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for key in ("a", "b")
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
    for process in processes:
        _, said = process.communicate(timeout=200)
        assert (process.returncode, said) == (0, b"")
    assert set(read("together", uri)["id"]) == {"a", "b"}


def test_a_new_store_is_made_without_a_word(tmp_path: Path) -> None:
    script = """
from dice_ray.tracking.reader import read
from dice_ray.tracking.writer import Writer
writer = Writer("quiet")
writer.open("a", name="a", params={}, tags={})
writer.end("a", "FINISHED")
writer.close()
assert list(read("quiet").id) == ["a"]
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, timeout=200, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (tmp_path / "mlflow.db").is_file()


def test_errors_of_python_s_own_are_those_of_who_raised_them() -> None:
    with pytest.raises(ValueError, match="invalid literal") as of_a_client:
        int("no number")
    assert is_of_a_store(of_a_client.value)
    with pytest.raises(AttributeError) as of_ours:
        joined([None])  # type: ignore[list-item]
    assert not is_of_a_store(of_ours.value)
