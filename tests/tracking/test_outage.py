"""A real MLflow server stops and starts again: nothing is lost, stored twice or left running, and no call waits."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread, Timer

import pytest
from pandas.testing import assert_frame_equal

import dice_ray
from dice_ray import api
from dice_ray.errors import RunError, UnknownNameError
from dice_ray.tracking import schema
from dice_ray.tracking.reader import curves, read, texts
from dice_ray.tracking.spool import Spool, unsent_spools
from dice_ray.tracking.store import quiet_client
from dice_ray.tracking.writer import Writer
from tests.tracking.servers import Proxy, Server, until
from tests.tracking.stores import fill


@pytest.fixture
def proxy(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    server.start()
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with Proxy(server.uri) as proxy:
        Thread(target=proxy.serve_forever, daemon=True).start()
        yield proxy
        proxy.shutdown()


def test_a_server_that_starts_after_its_run_ended_gets_all_of_it(server: Server) -> None:
    fill(server.store)
    server.stop()
    writer = Writer("late", server.uri)
    writer.open("a", name="a", params={"loss": "dice"}, tags={schema.KIND: "run"})
    writer.metrics("a", 1, {"dev/f1": 0.5})
    writer.text("a", "notes.txt", "hello")
    writer.text("a", "test/items.csv", "id,tp,fp,fn\n")
    writer.end("a", "FINISHED")
    server.start()
    writer.close()
    runs = read("late", server.uri)
    (row,) = runs.to_dict("records")
    assert (row["id"], row["status"], row["metrics.dev/f1"]) == ("a", "FINISHED", 0.5)
    assert texts(runs, "test/items.csv", server.uri) == {"a": "id,tp,fp,fn\n"}
    assert texts(runs, "notes.txt", server.uri) == {"a": "hello"}
    assert texts(runs, "test/classes.csv", server.uri) == texts(runs, "no/notes.txt", server.uri) == {}
    assert_frame_equal(read("study", server.uri), read("study", server.store))
    assert_frame_equal(curves("study", server.uri), curves("study", server.store))
    (stored,) = (server.folder / "artifacts").rglob("notes.txt")
    assert stored.read_text() == "hello"


@pytest.mark.timeout(900)  # the server starts twice
def test_everything_is_stored_once_whenever_the_server_is_away(proxy: Proxy, server: Server, tmp_path: Path) -> None:
    writer = Writer("away", proxy.uri, tmp_path / "run")
    longest = 0.0

    def report(key: str, steps: range) -> None:
        nonlocal longest
        for step in steps:
            started = time.perf_counter()
            writer.metrics(key, step, {"dev/f1": step / 100})
            longest = max(longest, time.perf_counter() - started)

    def is_stored(key: str, step: int) -> bool:
        try:
            points = curves("away", server.uri)
        except UnknownNameError:
            return False
        return bool(((points["id"] == key) & (points["step"] == step)).any())

    writer.open("sweep", name="sweep", params={}, tags={})
    writer.open("a", name="a", params={"lr": 1}, tags={}, parent="sweep")
    report("a", range(5))
    until(lambda: is_stored("a", 4))
    server.stop()
    report("a", range(5, 10))
    writer.open(
        "b", name="b", params={"lr": 2}, tags={}, parent="sweep"
    )  # a run that is created while the server is away
    writer.text("b", "config.yaml", "lr: 2")
    report("b", range(3))
    until(lambda: writer.failure is not None)
    server.start()
    until(lambda: is_stored("b", 2))  # the same process sends it
    proxy.fault = "away"
    report("b", range(3, 6))
    writer.end("a", "FINISHED")
    writer.end("b", "FAILED")
    writer.open("c", name="c", params={}, tags={}, parent="sweep")
    writer.close()  # raises nothing: the spool keeps it
    assert longest < 0.5
    (spool,) = unsent_spools(tmp_path)
    assert spool.experiment == "away"

    proxy.fault = ""
    Writer("away", proxy.uri, tmp_path / "run").close()  # a later process
    assert list(unsent_spools(tmp_path)) == []
    runs = read("away", server.uri)
    assert runs.set_index("id")["status"].to_dict() == {
        "sweep": "KILLED",
        "a": "FINISHED",
        "b": "FAILED",
        "c": "KILLED",
    }
    steps = {key: list(points["step"]) for key, points in curves("away", server.uri).groupby("id")}
    assert steps == {"a": list(range(10)), "b": list(range(6))}
    assert texts(runs, "config.yaml", server.uri) == {"b": "lr: 2"}


def test_a_run_is_scored_while_the_server_is_away(
    proxy: Proxy, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Finds a password of the store's URI too, in whatever a run leaves on the disk, in MLflow and in messages."""
    uri = proxy.uri.replace("://", "://me:s3cret@")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    quick = {"data.source.synthetic.size": 100, "training.epochs": 1}
    dice_ray.train("synthetic_pairs", quick, name="mine")
    proxy.fault = "away"
    scored = dice_ray.evaluate("mine")
    assert scored.not_stored is not None
    assert re.match(r"MLflow is away \(.*\): the scores wait in dice_ray_runs/mine, `dice-ray runs`", scored.not_stored)
    busy = Spool(tmp_path / "dice_ray_runs/mine", "train", uri)  # as if its driver were running
    not_stored = dice_ray.evaluate("mine", "dev").not_stored or ""
    assert re.match(r"not stored in MLflow: .* 2 entries were not: ", not_stored)
    busy.close(is_sent=False)
    with pytest.raises(RunError, match=r"reading http://\*\*\*@127") as unread:
        read("train")
    waiting = b"".join(file.read_bytes() for file in (tmp_path / "dice_ray_runs").rglob("*") if file.is_file())
    proxy.fault = ""
    assert api.send_waiting() == {}
    (row,) = read("train").to_dict("records")
    assert {name: row[f"metrics.test/{name}"] for name in scored.scores.metrics} == scored.scores.metrics
    assert list(texts(read("train"), "test/items.csv")) == ["mine"]
    assert dice_ray.evaluate("mine", "dev").not_stored is None
    api.write_report(api.report("train"), ["train"])
    left = b"".join(
        file.read_bytes() for place in (tmp_path, server.folder) for file in place.rglob("*") if file.is_file()
    )
    assert b"dev/best_f1" in left, "the files hold the store and its artifacts"
    said = f"{scored.not_stored}{not_stored}{unread.value}{capfd.readouterr()}"
    assert b"s3cret" not in waiting + left
    assert "s3cret" not in said


def test_entries_of_an_experiment_that_is_deleted_meanwhile_wait_until_it_is_restored(uri: str, tmp_path: Path) -> None:
    writer = Writer("gone", uri, tmp_path / "run")
    writer.open("a", name="a", params={}, tags={})
    writer.metrics("a", 1, {"dev/f1": 0.1})
    client = quiet_client(uri)
    until(lambda: client.get_experiment_by_name("gone") is not None and len(curves("gone", uri)) == 1)
    experiment = client.get_experiment_by_name("gone")
    assert experiment is not None
    client.delete_experiment(experiment.experiment_id)
    writer.metrics("a", 2, {"dev/f1": 0.2})
    writer.end("a", "FINISHED")
    with pytest.raises(RunError, match=r"2 entries were not \(they wait in .*\): .*'gone' must be active.*restore"):
        writer.close()
    with pytest.raises(RunError, match=r"'gone' must be active in .*, but was deleted: `mlflow experiments restore"):
        Writer("gone", uri, tmp_path / "run")
    client.restore_experiment(experiment.experiment_id)
    Writer("gone", uri, tmp_path / "run").close()
    assert read("gone", uri)["status"].tolist() == ["FINISHED"]
    assert curves("gone", uri)["step"].tolist() == [1, 2]


@pytest.mark.slow
def test_a_proxy_that_refuses_for_seconds_costs_no_point(proxy: Proxy, server: Server, tmp_path: Path) -> None:
    """A 404, 403 or 401 for seconds ended the run as if its experiment were deleted, with points missing."""
    proxy.status = 403  # already when the experiment is to be created
    writer = Writer("flapping", proxy.uri, tmp_path / "run")
    writer.open("sweep", name="sweep", params={}, tags={})
    writer.open("a", name="a", params={"lr": 1}, tags={}, parent="sweep")
    until(lambda: writer.failure is not None)
    proxy.status = 0
    until(lambda: writer.failure is None)
    proxy.fault = "empty"  # MLflow's client takes it for a run without an id
    writer.open("b", name="b", params={}, tags={}, parent="sweep")
    until(lambda: writer.failure is not None)
    proxy.fault = ""
    for step, status in enumerate((404, 403, 401)):
        proxy.status = 0
        writer.metrics("a", 2 * step, {"dev/f1": 0.1})
        until(lambda: writer.failure is None)
        proxy.status = status
        writer.metrics("a", 2 * step + 1, {"dev/f1": 0.1})
        writer.open(f"b{step}", name="b", params={}, tags={}, parent="sweep")
        until(lambda: writer.failure is not None)
    writer.text("a", "notes.txt", "hello")
    writer.end("a", "FINISHED")
    Timer(3, lambda: setattr(proxy, "status", 0)).start()  # it is still at it when the run has ended
    writer.close()
    assert list(unsent_spools(tmp_path)) == []
    runs = read("flapping", server.uri)
    killed = dict.fromkeys(("sweep", "b", "b0", "b1", "b2"), "KILLED")
    assert runs.set_index("id")["status"].to_dict() == {"a": "FINISHED"} | killed
    assert list(curves("flapping", server.uri)["step"]) == list(range(6))
    assert texts(runs, "notes.txt", server.uri) == {"a": "hello"}


def test_an_answer_that_lasts_is_believed_at_the_end_and_nothing_is_lost(
    proxy: Proxy, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dice_ray.tracking.writer._PATIENCE", 1)
    writer = Writer("refused", proxy.uri, tmp_path / "run")
    writer.open("a", name="a", params={}, tags={})
    until(lambda: writer.failure is None and not writer._unsent)
    proxy.status = 403
    writer.metrics("a", 1, {"dev/f1": 0.1})
    writer.end("a", "FINISHED")
    with pytest.raises(RunError, match=r"refused them for 1 s \(.*403.*\): \d entries wait in .* `dice-ray runs`"):
        writer.close()
    proxy.status = 0
    Writer("refused", proxy.uri, tmp_path / "run").close()
    assert read("refused", server.uri)["status"].tolist() == ["FINISHED"]
    assert curves("refused", server.uri)["step"].tolist() == [1]


def test_a_run_that_was_deleted_does_not_hold_up_the_others(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dice_ray.tracking.writer._PATIENCE", 1)
    writer = Writer("study", uri, tmp_path / "run")
    for key in "ab":
        writer.open(key, name=key, params={}, tags={})
        writer.metrics(key, 1, {"dev/f1": 0.1})
    client = quiet_client(uri)
    until(lambda: client.get_experiment_by_name("study") is not None and len(curves("study", uri)) == 2)
    database = sqlite3.connect(uri.removeprefix("sqlite:///"))
    with closing(database), database:
        (gone,) = database.execute("select run_uuid from tags where key = 'dice_ray.id' and value = 'a'").fetchone()
        for table in ("metrics", "latest_metrics", "tags", "runs"):
            database.execute(f"delete from {table} where run_uuid = ?", [gone])
    for key in "ab":
        writer.metrics(key, 2, {"dev/f1": 0.2})
        writer.end(key, "FINISHED")
    with pytest.raises(RunError, match="2 entries were not: "):
        writer.close()
    assert list(unsent_spools(tmp_path)) == []
    assert curves("study", uri)["step"].tolist() == [1, 2]
