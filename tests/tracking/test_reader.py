"""The reader: one tidy frame, the same by SQL and through MLflow."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from pandas.testing import assert_frame_equal

from dice_ray.errors import RunError, UnknownNameError
from dice_ray.tracking import schema, sources
from dice_ray.tracking.reader import _COLUMNS, _as_frame, curves, experiments, read, texts
from dice_ray.tracking.sources import _Api, _Database, open_store
from dice_ray.tracking.store import quiet_client
from dice_ray.tracking.writer import Writer
from tests.tracking.stores import fill


def test_the_frame_is_tidy(uri: str) -> None:
    fill(uri)
    frame = read("study", uri).set_index("id", drop=False)
    assert list(frame.columns) == [
        *_COLUMNS,
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


def test_a_label_with_a_leading_zero_is_no_number(uri: str) -> None:
    """Finds the positive label "01" read as 1, which no row of the data has."""
    with Writer("study", uri) as writer:
        for key, label in (("a", "01"), ("b", "1"), ("c", None)):
            writer.open(key, name=key, params={"positive": label, "seed": 0, "lr": -0.5}, tags={})
    frame = read("study", uri)
    assert frame["params.positive"].dropna().tolist() == ["01", "1"]
    assert (frame["params.seed"].sum(), frame["params.lr"].sum()) == (0, -1.5)


def test_a_tag_of_the_user_never_takes_the_place_of_one_of_ours(uri: str) -> None:
    """`--tag baseline=v1` replaced the study's baseline, and `--tag failure=none` was shown where no run had failed."""
    with Writer("study", uri) as writer:
        ours = {schema.KIND: "study", schema.BASELINE: "ce", f"{schema.VERSION}.torch": "2.9"}
        theirs = {"baseline": "v1", "failure": "none", "version.torch": "mine", "version.numpy": "mine", "arm": "left"}
        writer.open("study", name="study", params={}, tags=ours | theirs | {"team": "support"})
    tags = read("study", uri).filter(like="tags.")
    assert tags.to_dict("records") == [
        {"tags.arm": "left", "tags.baseline": "ce", "tags.team": "support", "tags.version.torch": "2.9"}
    ]


def test_sql_and_mlflow_return_the_same_frames(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(uri)
    with open_store(uri) as source:
        assert isinstance(source, _Database)
    by_sql = [read("study", uri), curves("study", uri)]
    monkeypatch.setattr(sources, "_REVISIONS", frozenset())
    with open_store(uri) as source:
        assert isinstance(source, _Api)
    for expected, actual in zip(by_sql, [read("study", uri), curves("study", uri)], strict=True):
        assert_frame_equal(actual, expected)


def test_a_source_shows_one_moment_beside_a_writer(uri: str) -> None:
    """Without its transaction, each select would also show what was stored since the previous one."""
    fill(uri)
    with open_store(uri) as source:
        experiment = source.experiments()["study"]
        with Writer("study", uri) as writer:  # raises if the reader blocked it
            writer.open("late", name="late", params={"p": 1}, tags={schema.KIND: "cell"})
            writer.metrics("late", 1, {"dev/f1": 0.5})
        assert len(source.runs(experiment)) == 5
        assert {uuid for uuid, *_ in source.points(experiment)} <= source.runs(experiment).keys()
    assert len(read("study", uri)) == 6
    assert "late" in set(curves("study", uri)["id"])


def test_every_page_is_read(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(uri)
    monkeypatch.setattr(sources, "_PAGE", 2)
    api = _Api(uri)
    assert_frame_equal(_as_frame(api.runs(api.experiments()["study"])), read("study", uri))


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


def test_unknown_names_and_a_store_that_does_not_exist(uri: str, tmp_path: Path) -> None:
    fill(uri)
    assert experiments(uri) == ["first", "study"]
    with pytest.raises(UnknownNameError, match="did you mean 'study'"):
        read("studdy", uri)
    with pytest.raises(RunError, match=r"no\.db does not: nothing has been tracked"):
        read("study", f"sqlite:///{tmp_path}/no.db")
    assert not (tmp_path / "no.db").exists()


def test_an_experiment_without_runs_has_the_columns(uri: str) -> None:
    frame = read("first", uri)
    assert list(frame.columns) == list(_COLUMNS)
    assert frame.empty
    assert curves("first", uri).empty


def test_deleted_runs_and_those_of_other_programs_are_left_out(uri: str) -> None:
    fill(uri)
    fill(uri, "other")
    client = quiet_client(uri)
    other, experiment = (client.get_experiment_by_name(name) for name in ("other", "study"))
    assert experiment is not None
    assert other is not None
    client.delete_experiment(other.experiment_id)
    client.create_run(experiment.experiment_id, run_name="of another program")
    (deleted,) = client.search_runs([experiment.experiment_id], f"tags.`{schema.ID}` = 'c1'")
    client.delete_run(deleted.info.run_id)
    assert read("study", uri)["id"].tolist() == ["study", "c0", "c2", "c3"]
    assert "c1" not in curves("study", uri)["id"].tolist()
    assert experiments(uri) == ["first", "study"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("update runs set start_time = 'x' where name = 'c1'", "but start of a run is 'x'"),
        ("update runs set start_time = null where name = 'c1'", "but start of a run is None"),
        ("update runs set end_time = 1e300 where name = 'c1'", "but end of a run is 1e+300"),
        ("update params set value = x'80' where key = 'loss'", "but params.loss of a run is b'"),
        ("update latest_metrics set value = 'high'", "but metrics.dev/f1 of a run is 'high'"),
        ("update metrics set step = 'x' where key = 'dev/f1'", "but a point of a curve of a run is 'x'"),
        (
            "update tags set value = 'x' where key = 'dice_ray.seed'",
            "the tag dice_ray.seed of the run c0 must be a number",
        ),
        ("update tags set key = 'dice_ray.constant.x' where key = 'mine'", ""),
        ("update tags set value = cast(x'ff' as text) where key = 'mine'", "Could not decode to UTF-8"),
    ],
)
def test_a_value_that_mlflow_does_not_write_is_named(uri: str, change: str, message: str) -> None:
    """SQLite keeps any value in any column: each of these was a traceback of pandas or NumPy."""
    fill(uri)
    with closing(sqlite3.connect(uri.removeprefix("sqlite:///"))) as database, database:
        assert database.execute(change).rowcount
    if not message:
        assert read("study", uri)["metrics.x"].dropna().tolist() == [1.2e6] * 4
        return
    with pytest.raises(RunError, match=re.escape(message)):
        (read("study", uri), curves("study", uri))


def test_an_experiment_whose_name_is_no_text_is_none(uri: str) -> None:
    """SQLite stores bytes in a column of text, and names of both kinds cannot be sorted."""
    fill(uri)
    known = experiments(uri)
    with closing(sqlite3.connect(uri.removeprefix("sqlite:///"))) as database, database:
        strange = "insert into experiments (name, experiment_id, lifecycle_stage) values (x'80', 77, 'active')"
        assert database.execute(strange).rowcount
    assert experiments(uri) == known


def test_the_error_names_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_bytes(b"a text, long enough to be read as a header of a database" * 20)
    with pytest.raises(RunError, match=r"mlflow\.db failed: file is not a database"):
        read("study", f"sqlite:///{tmp_path}/mlflow.db")


def test_the_error_names_a_server_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(RunError, match=r"must answer, reading http://127\.0\.0\.1:9 failed: .*refused"):
        read("study", "http://127.0.0.1:9")
