"""The writer stores every entry once, within MLflow's limits, or `close` raises."""

from __future__ import annotations

import math
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dice_ray.errors import RunError
from dice_ray.tracking import schema
from dice_ray.tracking.entries import MetricPoint, Open, Points
from dice_ray.tracking.runs import Runs
from dice_ray.tracking.store import quiet_client, sqlite_file
from dice_ray.tracking.writer import Writer


def rows(uri: str, query: str) -> list[Any]:
    file = sqlite_file(uri)
    assert file is not None
    with closing(sqlite3.connect(file)) as database:
        return database.execute(query).fetchall()


def test_a_sweep_and_its_trial(uri: str, tmp_path: Path) -> None:
    writer = Writer("sweep", uri)
    writer.open("sweep", name="first sweep", params={}, tags={schema.KIND: "sweep"})
    params = {"loss": "focal", "loss.focal.gamma": 2, "training.lr": 2e-5, "a": None, "b": True, "c": ["x", 1]}
    writer.open("t1", name="t1", params=params, tags={schema.KIND: "trial"}, parent="sweep")
    writer.metrics("t1", 10, {"dev/f1": 0.5, "train/loss": float("nan")})
    writer.metrics("t1", 20, {"dev/f1": 0.6, "train/loss": 0.2})
    writer.text("t1", "notes/config.yaml", "loss: größer\n")
    writer.tags("t1", {schema.STATE: "done"})
    writer.end("t1", "FINISHED")
    writer.end("sweep", "FINISHED")
    writer.close()

    client = quiet_client(uri)
    experiment = client.get_experiment_by_name("sweep")
    assert experiment is not None
    assert experiment.artifact_location == (tmp_path / "mlartifacts").as_uri()
    runs = {run.data.tags[schema.ID]: run for run in client.search_runs([experiment.experiment_id])}
    trial, sweep = runs["t1"], runs["sweep"]
    assert sweep.info.run_name == "first sweep"
    assert trial.data.tags[schema.PARENT] == sweep.info.run_id
    assert trial.data.params == {
        "loss": "focal",
        "loss.focal.gamma": "2",
        "training.lr": "2e-05",
        "a": "null",
        "b": "true",
        "c": '["x", 1]',
    }
    assert trial.data.tags[schema.STATE] == "done"
    assert trial.data.metrics == {"dev/f1": 0.6, "train/loss": 0.2}
    history = client.get_metric_history(trial.info.run_id, "dev/f1")
    assert [(point.step, point.value) for point in history] == [(10, 0.5), (20, 0.6)]
    assert trial.info.status == sweep.info.status == "FINISHED"
    assert trial.info.end_time >= trial.info.start_time
    stored = tmp_path / "mlartifacts" / trial.info.run_id / "artifacts/notes/config.yaml"
    assert stored.read_text(encoding="utf-8") == "loss: größer\n"
    assert rows(uri, "pragma journal_mode") == [("wal",)]


def test_a_run_opened_again_resumes(uri: str) -> None:
    def report(writer: Writer, steps: range) -> None:
        writer.open("it's", name="name", params={"seed": 1, "new": steps.stop}, tags={"steps": str(steps)})
        for step in steps:
            writer.metrics("it's", step, {"dev/f1": step / 10, "dev/recall": 0.5})

    first = Writer("again", uri)
    report(first, range(4))
    first.close()
    assert rows(uri, "select status from runs") == [("KILLED",)]
    second = Writer("again", uri)
    report(second, range(7))
    report(second, range(7))
    second.end("it's", "FINISHED")
    second.close()

    assert rows(uri, "select status from runs") == [("FINISHED",)]
    steps = rows(uri, "select step from metrics where key = 'dev/f1' order by step")
    assert steps == [(step,) for step in range(7)]
    assert rows(uri, "select value from params where key = 'new'") == [("4",)]
    assert rows(uri, "select value from tags where key = 'steps'") == [("range(0, 7)",)]


KEYS = (
    'it\'s "x"',
    "its _x_",
    'IT\'S "X"',
    "a\\b",
    "a\\\\b",
    "50 %",
    "50 _",
    "`a`; 'b' -- c",
    "zwei\nZeilen",
    "größer",
)


def test_runs_are_searched_only_where_they_may_be(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finds a search through all runs of the store for each new one, and one left out that would double a run."""
    client, searched = type(quiet_client(uri)), []
    search, create = client.search_runs, client.create_run

    def counted(self: Any, *arguments: Any, **named: Any) -> Any:
        searched.append(arguments[1])
        return search(self, *arguments, **named)

    def not_answered(self: Any, *arguments: Any, **named: Any) -> Any:
        create(self, *arguments, **named)
        raise TimeoutError

    monkeypatch.setattr(client, "search_runs", counted)
    new = Runs("sweep", uri)
    with monkeypatch.context() as context:
        context.setattr(client, "create_run", not_answered)
        with pytest.raises(TimeoutError):
            new.send(Open("t1", "t1", {}, {}, None, 1))
    assert not searched
    for key in ("t1", "t2", "t3"):
        new.send(Open(key, key, {}, {}, None, 1))
    assert len(searched) == 1  # that of the first, which was created already
    Runs("sweep", uri).send(Open("t1", "t1", {}, {}, None, 1))
    assert len(searched) == 2
    assert rows(uri, "select count(*) from runs") == [(3,)]


def test_of_several_values_of_a_step_the_first_counts(uri: str) -> None:
    """Also finds the last one where both are sent in one call."""
    runs = Runs("train", uri)
    runs.send(Open("mine", "mine", {}, {}, None, 1))
    runs.send(Points("mine", (MetricPoint("dev/f1", 0.1, 1, 1), MetricPoint("dev/f1", 0.9, 1, 1))))
    runs.send(Points("mine", (MetricPoint("dev/f1", 0.9, 1, 1),)))
    assert rows(uri, "select value from metrics") == [(0.1,)]


def test_a_finished_run_is_scored_again(uri: str) -> None:
    """Also finds a value that is NaN, and is stored anew each time since it does not equal itself."""
    with Writer("train") as writer:
        writer.open("mine", name="mine", params={}, tags={})
        writer.end("mine", "FINISHED")
    for value in (0.5, 0.6, 0.6):
        with Writer("train") as writer:
            writer.metrics("mine", 7, {"test/f1": value, "test/mcc": math.nan})
    client = quiet_client(uri)
    experiment = client.get_experiment_by_name("train")
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id])
    history = client.get_metric_history(run.info.run_id, "test/f1")
    assert [point.value for point in history] == [0.5, 0.6]
    assert run.data.metrics["test/f1"] == 0.6
    assert len(client.get_metric_history(run.info.run_id, "test/mcc")) == 1


def test_keys_with_any_characters_are_found(uri: str, tmp_path: Path) -> None:
    for step in range(2):
        with Writer("keys", uri) as writer:
            for key in KEYS:
                writer.open(key, name=key, params={}, tags={})
                writer.metrics(key, step, {"step": step})
                writer.text(key, 'it\'s "x".txt', key)
    assert sorted(rows(uri, "select value from tags where key = 'dice_ray.id'")) == sorted((key,) for key in KEYS)
    assert rows(uri, "select count(*) from metrics") == [(2 * len(KEYS),)]
    stored = [file.read_text(encoding="utf-8") for file in (tmp_path / "mlartifacts").rglob("*.txt")]
    assert sorted(stored) == sorted(KEYS)


def test_many_and_long_values_are_within_the_limits(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRUNCATE_LONG_VALUES", "false")
    writer = Writer("many", uri)
    params = {f"p{number}": "v" * 7000 for number in range(230)}
    writer.open("a", name="a", params=params, tags={f"t{number}": "v" * 9000 for number in range(130)})
    writer.metrics("a", 0, {f"m{number}": number for number in range(2300)})
    for step in range(1, 2300):
        writer.metrics("a", step, {"m0": step})
    writer.close()
    assert rows(uri, "select count(*), min(length(value)) from params") == [(230, 6000)]
    assert rows(uri, "select count(*), max(length(value)) from tags where key like 't%'") == [(130, 8000)]
    assert rows(uri, "select count(*) from metrics") == [(2300 + 2299,)]


def test_a_deleted_experiment_is_an_error_before_training(uri: str) -> None:
    Writer("gone", uri).close()
    client = quiet_client(uri)
    experiment = client.get_experiment_by_name("gone")
    assert experiment is not None
    client.delete_experiment(experiment.experiment_id)
    with pytest.raises(RunError, match=r"'gone' must be active.*mlflow experiments restore"):
        Writer("gone", uri)  # raises at once


def test_a_store_that_mlflow_does_not_have_is_an_error_before_training() -> None:
    for uri in ("127.0.0.1:5000", "./mlruns"):
        with pytest.raises(
            RunError, match=r"set MLFLOW_TRACKING_URI to a store that MLflow has, such as `sqlite:///FILE`"
        ):
            Writer("train", uri=uri)


def test_refused_entries_do_not_stop_the_others(uri: str) -> None:
    writer = Writer("refused", uri)
    writer.open("a", name="a", params={}, tags={})
    writer.open("b", name="b", params={}, tags={}, parent="never opened")
    writer.metrics("b", 1, {"dev/f1": 0.1})
    writer.metrics("c", 1, {"dev/f1": 0.1})
    writer.tags("a", {"bad\nname": "x"})
    writer.metrics("a", 1, {"dev/f1": 0.1})
    writer.end("a", "FINISHED")
    with pytest.raises(RunError, match=r"5 entries were not: the run 'never opened' must have been opened"):
        writer.close()
    assert rows(uri, "select name, status from runs") == [("a", "FINISHED")]
    assert rows(uri, "select count(*) from metrics") == [(1,)]


def test_the_error_names_a_store_that_is_away_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    writer = Writer("away", "http://me:secret@127.0.0.1:9")
    writer.open("a", name="a", params={}, tags={})
    writer.metrics("a", 1, {"dev/f1": 0.1})
    with pytest.raises(RunError, match=r"in http://\*\*\*@127\.0\.0\.1:9, 3 entries were not") as caught:
        writer.close()
    assert "secret" not in str(caught.value)


def test_the_error_names_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_bytes(b"a text, long enough to be read as a header of a database" * 20)
    writer = Writer("damaged", f"sqlite:///{tmp_path}/mlflow.db")
    started = time.monotonic()
    writer.open("a", name="a", params={}, tags={})
    with pytest.raises(RunError, match="not a database"):
        writer.close()
    assert time.monotonic() - started < 20


def test_close_raises_an_error_of_this_program(uri: str) -> None:
    writer = Writer("mistake", uri)
    writer.open("a", name="a", params={}, tags={"tag": 1})  # type: ignore[dict-item]
    with pytest.raises(TypeError):
        writer.close()
