"""Jobs on a real cluster: submitted, followed, stopped, continued; and what is refused before anything is sent."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import requests

from dice_ray import api
from dice_ray.errors import InputError, RunError, UnknownNameError
from dice_ray.run import ray_internals
from dice_ray.run.submit import _entrypoint, _ignored_by_git
from dice_ray.tuning.ledger import ledger_in
from tests.machines import Head, head

DICE_RAY = str(Path(sys.executable).with_name("dice-ray"))
RAY = str(Path(sys.executable).with_name("ray"))
LOSS = """
import os, time
from dice_ray.losses.cross_entropy import CrossEntropyLoss
import helper

def build(facts):
    while not os.path.exists(helper.GO):
        time.sleep(0.1)
    return CrossEntropyLoss(facts.link)

def rate(trial):
    trial.suggest_float("training.lr", helper.LEAST, 2e-3)
"""
SETTINGS = ("data.source.synthetic.size=100", "training.epochs=1", "loss.custom.target=mine:build")
TUNE = ["tune", "synthetic_pairs", *(word for each in SETTINGS for word in ("--set", each))]
TUNE += ["--space", "mine.py:rate", "--trials", "2", "--name", "search"]


def started(*command: str, **environment: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=os.environ | environment, stdout=pipe, stderr=pipe, text=True)


def output(process: subprocess.Popen[str]) -> str:
    """What it printed and its errors on one line, with single spaces."""
    with process:
        return " ".join(" ".join(process.communicate(timeout=300)).split())


def asked(path: str, cluster: Head) -> str:
    """What Ray's server answers."""
    token = {"Authorization": f"Bearer {cluster.token}"}
    return requests.get(f"{cluster.address}/api/jobs/{path}", headers=token, timeout=10).text


@pytest.mark.ray
@pytest.mark.slow
def test_a_job_is_submitted_followed_stopped_and_continued(tmp_path: Path) -> None:
    """Finds a plan that keeps paths of the folder into which Ray unpacks a job: with a further file, it is another.

    And a job that `ray job stop` kills as its default is, before it has ended by itself, or a token that is sent along.
    """
    Path("mine.py").write_text(LOSS)
    runs, go = tmp_path / "runs", tmp_path / "go"
    Path("helper.py").write_text(f"LEAST = 1e-3\nGO = {str(go)!r}\n")
    Path(".env").write_text("hidden")
    submit = (DICE_RAY, "submit", "--runs", str(runs), "--follow", "--")
    with tempfile.TemporaryDirectory(prefix="dr-") as scratch, head(Path(scratch)) as cluster:
        given = {**cluster.environment, "HF_TOKEN": "a secret"}
        with started(*submit, *TUNE, **given) as following:
            assert following.stdout is not None
            assert following.stdout.readline() == f"search: submitted as job search; results in {runs}/search\n"
            ledger = runs / "search/ledger.jsonl"
            wait_for(lambda: ledger.exists() or following.poll() is not None)
            assert ledger.exists(), following.communicate()
            following.send_signal(signal.SIGINT)
            assert following.communicate()[0].endswith("search goes on. To stop it:\n  ray job stop search\n")
            assert following.returncode == 130
        failing = started(*submit, "resume", "nothing", **given)
        busy = started(DICE_RAY, "submit", "--runs", str(runs), "--", *TUNE, **given)
        refused = output(started(*submit, "resume", "nothing", **{**given, "RAY_AUTH_TOKEN": "0" * 32}))
        assert "search must have one job, and search is running: `ray job stop search` ends it" in output(busy)
        stopped = output(started(RAY, "job", "stop", "search", **given))
        interrupted = asked("search/logs", cluster)
        failed = output(failing)
        go.touch()
        Path("more.txt").write_text("another package")
        continued = output(started(*submit, *TUNE, **given))
        listed = output(started(RAY, "job", "list", **given))
        stored = asked("", cluster)
    assert "Job 'search' was stopped" in stopped
    assert "Interrupted. To continue:" in interrupted
    assert continued.startswith(f"search: submitted as job search-2; results in {runs}/search ")
    assert "search-2 has succeeded after " in continued
    states = dict(re.findall(r"submission_id='([^']+)'.*?JobStatus\.(\w+)", re.sub(r"<|>", "", listed)))
    assert states == {"search-2": "SUCCEEDED", "nothing": "FAILED", "search": "STOPPED"}, listed
    assert "dice-ray: There is no sweep, study or run named 'nothing'." in failed
    assert failing.returncode == 2
    assert "(Authentication failed: Forbidden: Invalid authentication token)" in refused
    assert all(secret not in stored + continued + refused for secret in (cluster.token, "a secret"))
    assert {file.name for file in (runs / "search/submitted").iterdir()} >= {"mine.py", "helper.py", "more.txt"}
    assert not (runs / "search/submitted/.env").exists()
    assert [outcome.state for outcome in ledger_in(runs / "search").outcomes.values()] == ["done", "done"]
    assert (runs / "mlflow.db").exists()


def wait_for(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 200
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.1)


PROGRAM = """#!/bin/sh
[ "$1" = --version ] && echo dice-ray {version} || echo "$*; GPUs: $CUDA_VISIBLE_DEVICES; $(ls | xargs); $PWD"
"""


def test_the_shell_of_a_job_works_in_the_folder_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of an earlier job stay there; and dice_ray must be of the same version."""
    program = tmp_path / "bin" / "dice-ray"
    program.parent.mkdir()
    program.write_text(PROGRAM.format(version=version("dice-ray")))
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    folder = tmp_path / "my runs" / "search" / "submitted"
    Path("sent").mkdir()
    monkeypatch.chdir("sent")
    Path("mine.yaml").touch()
    for renamed, hides_gpus, seen in (
        ("mine.yaml", False, "GPUs: 0,1; mine.yaml"),
        ("more.yaml", True, "GPUs: ; mine.yaml more.yaml"),
    ):
        Path("mine.yaml").replace(renamed)
        shell = _entrypoint(["train", "mine.yaml", "--set", "loss=focal"], folder, hides_gpus=hides_gpus)
        run = started("sh", "-c", shell, CUDA_VISIBLE_DEVICES="0,1")
        assert output(run) == f"train mine.yaml --set loss=focal; {seen}; {folder}"
        assert run.returncode == 0
    monkeypatch.setattr("dice_ray.run.submit.version", lambda name: "99")
    run = started("sh", "-c", _entrypoint(["list"], folder))
    assert output(run) == f"dice-ray: the cluster must have dice-ray 99, and has dice-ray {version('dice-ray')}"
    assert run.returncode == 2


class NoRay(BaseHTTPRequestHandler):
    """A server that is none of Ray's."""

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *given: object) -> None:
        """Nothing."""


@pytest.fixture
def no_ray() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), NoRay)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_what_is_no_cluster_is_told_in_one_line(no_ray: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def submit(address: str) -> None:
        api.submit(["resume"], name="a", runs=tmp_path / "runs", address=address)

    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", "")
    for address in ("127.0.0.1:8265", "head", "ray://head:10001", "http://", "http://head:port"):
        with pytest.raises(InputError, match="must be http://HOST:8265, that of its dashboard, got '"):
            submit(address)
    with pytest.raises(
        RunError, match=r"^a Ray cluster must answer at http://127.0.0.1:9, and nothing does: .*refused"
    ):
        submit("http://127.0.0.1:9")
    with pytest.raises(RunError, match=f"^the cluster must take the request at {no_ray}: Version check returned 404"):
        submit(no_ray)


def test_what_git_ignores_by_a_file_above_the_folder_is_not_sent(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("*.pem\n")
    folder = tmp_path / "work"
    folder.mkdir()
    for name in ("a [1].pem", "kept.py"):
        (folder / name).touch()
    sent: list[str] = []
    ray_internals.visit_packed(folder, _ignored_by_git(folder), lambda path: sent.append(path.name))
    assert sent == ["work", "kept.py"]


def test_what_a_job_cannot_have_is_refused_before_it_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def submit(*presets: str, **given: Any) -> None:
        api.submit(["tune"], presets, **{"name": "a", "address": "http://127.0.0.1:9", **given})

    monkeypatch.setenv("DICE_RAY_RUNS", "here")
    with pytest.raises(InputError, match=r"all machines of the cluster see: give its absolute path .*, got here"):
        submit()
    monkeypatch.setenv("DICE_RAY_RUNS", str(tmp_path / "results"))
    with pytest.raises(UnknownNameError, match="did you mean 'mrpc'"):
        submit("mprc")
    with pytest.raises(InputError, match="a name must be"):
        submit(name="a/b")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "postgresql://me:word@host/runs")
    with pytest.raises(InputError, match=re.escape("got postgresql://***@host/runs: set MLFLOW_TRACKING_USERNAME")):
        submit()
    for store in ("sqlite:///mlflow.db", "sqlite:///mlflow.db?timeout=9", "file:mlruns", "./mlruns"):
        monkeypatch.setenv("MLFLOW_TRACKING_URI", store)  # each job would have one of its own
        with pytest.raises(InputError, match=f"same store in every folder: .*, got {re.escape(store)}"):
            submit()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:////runs/mlflow.db")
    monkeypatch.setenv("DICE_RAY_DATA", "here/../../data")
    with pytest.raises(InputError, match=r"lie in the working directory, which is sent, got \.\./data"):
        submit()
    monkeypatch.setenv("DICE_RAY_DATA", "data")
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    with pytest.raises(InputError, match=r"launch.gpus .* must be a number, got auto: give --gpus-per-worker"):
        api.submit(["train"], ["synthetic_pairs"], ["launch.gpus=auto"])
    with pytest.raises(InputError, match=r"launch.accelerator_type .* must be null, .*, got L4$"):
        api.submit(["train"], ["synthetic_pairs"], ["launch.accelerator_type=L4", "launch.gpus=1"])
    for folder in ("results", ".venv/lib", "dice_ray_runs", "ignored"):
        Path(folder).mkdir(parents=True)
        with Path(folder, "large").open("wb") as file:
            file.truncate(101 << 20)
    Path(".gitignore").write_text("ignored/\n")
    with pytest.raises(RunError, match="nothing does"):  # none of them counts
        submit()
    for target in (Path("/home/me/key.pem"), Path("..")):
        Path("link").symlink_to(target)
        with pytest.raises(
            InputError, match=f"must lie in the working .* and link is a link to {target.resolve()}: name"
        ):
            submit()
        Path("link").unlink()
    with Path("data.tsv").open("wb") as file:
        file.truncate(101 << 20)
    told = output(started(DICE_RAY, "submit", "--", "resume", "search"))
    assert told.startswith("dice-ray: the files that a job gets must be at most 100 MiB, and those of the working "), (
        "and Ray says nothing of its own"
    )
