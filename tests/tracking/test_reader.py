"""The reader: one tidy frame, the same by SQL and through MLflow, from a file and from a server."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from pandas.testing import assert_frame_equal

from dice_ray.errors import RunError, UnknownNameError
from dice_ray.tracking import schema, sources
from dice_ray.tracking.reader import COLUMNS, as_frame, curves, experiments, read, texts
from dice_ray.tracking.sources import Api, Database, opened
from dice_ray.tracking.store import quiet_client, sqlite_file
from dice_ray.tracking.writer import Writer


def fill(uri: str, experiment: str = "study") -> None:
    """A study of four cells: done, collapsed, failed, and one that was cut off."""
    writer = Writer(experiment, uri)
    tags = {schema.KIND: "study", schema.METRIC: "test/f1", schema.BASELINE: "ce"}
    writer.open("study", name="the study", params={}, tags=tags)
    for seed, (arm, state) in enumerate([("ce", "done"), ("dice", "done"), ("dice", "failed"), ("focal", None)]):
        key = f"c{seed}"
        params = {"loss": arm, "training.lr": 0.1, "training.seed": seed, "mining": None if seed else 0.5}
        tags = {schema.KIND: "cell", schema.ARM: arm, schema.SEED: str(seed), "mine": "12e5"}
        writer.open(key, name=key, params=params, tags=tags, parent="study")
        for step in range(3):
            writer.metrics(key, step, {"dev/f1": step / 7, "train/loss": float("nan") if step else 1.0})
        if state == "failed":
            writer.tags(key, {schema.FAILURE: "the loss must be finite,\ngot nan"})
        if state is not None:
            writer.tags(key, {schema.STATE: state})
            writer.end(key, "FAILED" if state == "failed" else "FINISHED")
    writer.end("study", "FINISHED")
    writer.close()


def test_the_frame_is_tidy(uri: str) -> None:
    fill(uri)
    frame = read("study", uri).set_index("id", drop=False)
    assert list(frame.columns) == [
        *COLUMNS,
        *("metrics.dev/f1", "metrics.train/loss"),
        *("params.loss", "params.mining", "params.training.lr", "params.training.seed"),
        *("tags.baseline", "tags.failure", "tags.metric", "tags.mine"),
    ]
    assert list(frame["id"]) == ["study", "c0", "c1", "c2", "c3"]
    assert list(frame["kind"]) == ["study"] + ["cell"] * 4
    assert list(frame.loc["c1", ["parent", "name", "arm", "seed", "state", "status"]]) == [
        *("study", "c1", "dice", 1, "done", "FINISHED")
    ]
    assert list(frame["status"]) == ["FINISHED", "FINISHED", "FINISHED", "FAILED", "KILLED"]
    assert frame["state"].isna().tolist() == [True, False, False, False, True]
    assert frame["metrics.dev/f1"].dropna().tolist() == [2 / 7] * 4
    assert frame["metrics.train/loss"].isna().all()
    assert frame["params.mining"].tolist()[1] == 0.5
    assert frame["params.mining"].isna().tolist() == [True, False, True, True, True]
    assert frame["params.training.lr"].dtype == "float64"
    assert frame["params.loss"].dropna().tolist() == ["ce", "dice", "dice", "focal"]
    assert frame.loc["c0", "tags.mine"] == "12e5"
    assert frame.loc["c2", "tags.failure"] == "the loss must be finite,\ngot nan"
    assert (frame["end"] >= frame["start"]).all()


def test_sql_and_mlflow_give_the_same(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(uri)
    with opened(uri) as source:
        assert isinstance(source, Database)
    by_sql = [read("study", uri), curves("study", uri)]
    monkeypatch.setattr(sources, "REVISION", "another")
    with opened(uri) as source:
        assert isinstance(source, Api)
    for expected, got in zip(by_sql, [read("study", uri), curves("study", uri)], strict=True):
        assert_frame_equal(got, expected)


def test_reading_beside_a_writer_sees_one_moment(uri: str) -> None:
    script = """
import sys
from dice_ray.tracking import schema
from dice_ray.tracking.writer import Writer
with Writer("beside", sys.argv[1]) as writer:
    for number in range(300):
        key = str(number)
        writer.open(key, name=key, params={"p": number}, tags={schema.KIND: "run"})
        writer.metrics(key, 1, {"dev/f1": 0.5})
        writer.end(key, "FINISHED")
"""
    Writer("beside", uri).close()
    with subprocess.Popen([sys.executable, "-c", script, uri]) as writing:
        num_reads, numbers = 0, {0}
        while writing.poll() is None:
            numbers.add(len(read("beside", uri)))
            curves("beside", uri)
            num_reads += 1
    assert writing.returncode == 0
    assert len(read("beside", uri)) == 300
    assert len(numbers) > 20, f"{num_reads} reads must have met a store that grows"


def test_every_page_is_read(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(uri)
    monkeypatch.setattr(sources, "PAGE", 2)
    api = Api(uri)
    assert_frame_equal(as_frame(api.runs(api.experiments()["study"])), read("study", uri))


def test_curves(uri: str) -> None:
    fill(uri)
    frame = curves("study", uri)
    assert list(frame.columns) == ["id", "step", "metric", "value"]
    assert len(frame) == 4 * 3 * 2
    f1 = frame[(frame["id"] == "c1") & (frame["metric"] == "dev/f1")]
    assert f1["step"].tolist() == [0, 1, 2]
    assert f1["value"].tolist() == [0, 1 / 7, 2 / 7]
    loss = frame[(frame["id"] == "c1") & (frame["metric"] == "train/loss")]
    assert loss["value"].isna().tolist() == [False, True, True]


def test_texts_of_the_runs_that_have_them(uri: str) -> None:
    with Writer("a study: 100 %", uri) as writer:
        for key in ("a", "b", "c"):
            writer.open(key, name=key, params={}, tags={schema.KIND: "cell"})
            if key != "b":
                writer.text(key, "test/items.csv", f"of {key}, été\n")
    runs = read("a study: 100 %", uri)
    assert texts(runs, "test/items.csv", uri) == {"a": "of a, été\n", "c": "of c, été\n"}
    assert texts(runs[runs["id"] == "c"], "test/items.csv", uri) == {"c": "of c, été\n"}
    assert texts(runs, "items.csv", uri) == {}


def test_names_that_are_not_there(uri: str, tmp_path: Path) -> None:
    fill(uri)
    assert experiments(uri) == ["first", "study"]
    with pytest.raises(UnknownNameError, match="did you mean 'study'"):
        read("studdy", uri)
    with pytest.raises(RunError, match=r"no\.db is not: nothing has been tracked"):
        read("study", f"sqlite:///{tmp_path}/no.db")
    assert not (tmp_path / "no.db").exists()


def test_an_experiment_without_runs_has_the_columns(uri: str) -> None:
    frame = read("first", uri)
    assert list(frame.columns) == list(COLUMNS)
    assert frame.empty
    assert curves("first", uri).empty


def test_what_is_deleted_or_not_ours_is_left_out(uri: str) -> None:
    fill(uri)
    fill(uri, "other")
    client = quiet_client(uri)
    other, experiment = (client.get_experiment_by_name(name) for name in ("other", "study"))
    assert experiment is not None
    assert other is not None
    client.delete_experiment(other.experiment_id)
    client.create_run(experiment.experiment_id, run_name="a stranger")
    (deleted,) = client.search_runs([experiment.experiment_id], f"tags.`{schema.ID}` = 'c1'")
    client.delete_run(deleted.info.run_id)
    assert read("study", uri)["id"].tolist() == ["study", "c0", "c2", "c3"]
    assert "c1" not in curves("study", uri)["id"].tolist()
    assert experiments(uri) == ["first", "study"]


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_bytes(b"a text, long enough to be read as a header of a database" * 20)
    with pytest.raises(RunError, match=r"mlflow\.db said: file is not a database"):
        read("study", f"sqlite:///{tmp_path}/mlflow.db")


def test_a_server_that_is_away_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(RunError, match=r"must answer, http://127\.0\.0\.1:9 said: .*refused"):
        read("study", "http://127.0.0.1:9")


@contextmanager
def server(file: Path, artifacts: Path, port: int) -> Iterator[None]:
    """A server of MLflow's own, until it answers."""
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{file}", "--artifacts-destination", str(artifacts)]
    environment = os.environ | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    with (file.parent / "server.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        until = time.monotonic() + 90
        while not answers(port):
            assert process.poll() is None, (file.parent / "server.log").read_text()
            assert time.monotonic() < until, "the server must answer within 90 s"
            time.sleep(0.1)
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def answers(port: int) -> bool:
    with closing(socket.socket()) as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def test_a_server_that_comes_late_loses_nothing(uri: str, tmp_path: Path) -> None:
    fill(uri)
    with closing(socket.socket()) as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    remote = f"http://127.0.0.1:{port}"
    writer = Writer("late", remote)
    writer.open("a", name="a", params={"loss": "dice"}, tags={schema.KIND: "run"})
    writer.metrics("a", 1, {"dev/f1": 0.5})
    writer.text("a", "notes.txt", "hello")
    writer.text("a", "test/items.csv", "id,tp,fp,fn\n")
    writer.end("a", "FINISHED")
    file = sqlite_file(uri)
    assert file is not None
    with server(file, tmp_path / "artifacts", port):
        writer.close()
        (late,) = read("late", remote).to_dict("records")
        assert (late["id"], late["status"], late["metrics.dev/f1"]) == ("a", "FINISHED", 0.5)
        late_runs = read("late", remote)
        assert texts(late_runs, "test/items.csv", remote) == {"a": "id,tp,fp,fn\n"}
        assert texts(late_runs, "notes.txt", remote) == {"a": "hello"}
        assert texts(late_runs, "test/classes.csv", remote) == texts(late_runs, "no/notes.txt", remote) == {}
        assert_frame_equal(read("study", remote), read("study", uri))
        assert_frame_equal(curves("study", remote), curves("study", uri))
    (stored,) = (tmp_path / "artifacts").rglob("notes.txt")
    assert stored.read_text() == "hello"
