"""Jobs on a real cluster: submitted, followed, stopped, continued; and what is refused before anything is sent."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import takewhile
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import requests

from dice_ray import api
from dice_ray.errors import InputError, RunError, UnknownNameError
from dice_ray.tuning.ledger import ledger_in
from tests.machines import head

DICE_RAY = str(Path(sys.executable).with_name("dice-ray"))
SPACE = """
import helper

def rate(trial):
    trial.suggest_float("training.lr", helper.LEAST, 2e-3)
"""
TUNE = ["tune", "synthetic_pairs", "--set", "data.source.synthetic.size=400", "--set", "training.epochs=8"]
TUNE += ["--space", "mine.py:rate", "--scheduler", "none", "--trials", "6", "--name", "search"]


def dice_ray(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [DICE_RAY, *words], env=os.environ | environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.ray
def test_a_job_is_submitted_followed_stopped_and_continued(tmp_path: Path) -> None:
    """Finds a plan that keeps paths of the folder into which Ray unpacks a job: with a further file, it is another."""
    Path("mine.py").write_text(SPACE)
    Path("helper.py").write_text("LEAST = 1e-3\n")
    Path(".env").write_text("hidden")
    runs = tmp_path / "runs"
    with tempfile.TemporaryDirectory(prefix="dr-") as scratch, head(Path(scratch)) as cluster:
        given = {**cluster.environment, "DICE_RAY_RUNS": str(runs), "HF_TOKEN": "a secret"}
        with subprocess.Popen(
            [DICE_RAY, "submit", "--follow", "--", *TUNE], env=os.environ | given, stdout=subprocess.PIPE, text=True
        ) as following:
            assert following.stdout is not None
            assert following.stdout.readline() == f"search: submitted as job search; results in {runs}/search\n"
            first = [*takewhile(lambda line: not re.search(" [1-5] done, ", line), following.stdout)]
            busy = dice_ray("submit", "--", *TUNE, **given)
            stopped = dice_ray("stop", "search", **given)
            rest = following.stdout.read()
            assert following.wait() == 1, first
        assert busy.stderr == (
            "dice-ray: search must have one job, and search is running: `dice-ray stop search` ends it\n"
        )
        assert stopped.returncode == 0, stopped.stderr
        assert f"submit --runs {runs} -- tune synthetic_pairs " in stopped.stdout
        assert "Interrupted. To continue:" in rest, "it ended by itself, and was not killed"

        Path("more.txt").write_text("another package")
        again = dice_ray("submit", "--follow", "--", *TUNE, **given)
        assert again.returncode == 0, again.stdout + again.stderr
        listed = dice_ray("jobs", "--json", **given).stdout
        stored = requests.get(
            f"{cluster.address}/api/jobs/", headers={"Authorization": f"Bearer {cluster.token}"}, timeout=10
        ).text
        ended = dice_ray("stop", "search", **given)
        unknown = dice_ray("stop", "serach", **given)
        refused = dice_ray("jobs", **{**given, "RAY_AUTH_TOKEN": "0" * 32})
    assert again.stdout.splitlines()[0] == f"search: submitted as job search-2; results in {runs}/search"
    assert [(job["id"], job["run"], job["state"]) for job in json.loads(listed)] == [
        ("search-2", "search", "succeeded"),
        ("search", "search", "stopped"),
    ]
    assert ended.stderr == "dice-ray: a job must be running to be stopped, and search has stopped\n"
    assert "There is no job named 'serach'; did you mean 'search'?" in unknown.stderr
    assert "Forbidden: Invalid authentication token" in refused.stderr
    for text in (stored, listed, rest, again.stdout, refused.stderr):
        assert cluster.token not in text
        assert "a secret" not in text
    assert {file.name for file in (runs / "search/submitted").iterdir()} >= {"mine.py", "helper.py", "more.txt"}
    assert not (runs / "search/submitted/.env").exists()
    ledger = ledger_in(runs / "search")
    assert len(ledger.outcomes) == 6
    assert {outcome.state for outcome in ledger.outcomes.values()} == {"done"}
    assert (runs / "mlflow.db").exists()


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


def test_what_is_no_cluster_is_told_in_one_line(no_ray: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", "")
    for address in ("127.0.0.1:8265", "head", "ray://head:10001", "http://", "http://head:port"):
        with pytest.raises(InputError, match="must be http://HOST:8265, that of its dashboard, got '"):
            api.jobs(address)
    with pytest.raises(
        RunError, match=r"^a Ray cluster must answer at http://127.0.0.1:9, and nothing does: .*refused"
    ):
        api.jobs("http://127.0.0.1:9")
    with pytest.raises(RunError, match=f"^the cluster must take the request at {no_ray}: Version check returned 404"):
        api.jobs(no_ray)


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
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    for folder in ("results", ".venv/lib", "dice_ray_runs", "ignored"):
        Path(folder).mkdir(parents=True)
        with Path(folder, "large").open("wb") as file:
            file.truncate(101 << 20)
    Path(".gitignore").write_text("ignored/\n")
    with pytest.raises(RunError, match="nothing does"):  # none of them counts
        submit()
    with Path("data.tsv").open("wb") as file:
        file.truncate(101 << 20)
    with pytest.raises(InputError, match="files that a job gets must be at most 100 MiB, and those of the working "):
        submit()
