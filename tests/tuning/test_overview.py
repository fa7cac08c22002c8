"""Runs side by side: best first, named as commands name them, with what differs alone."""

from __future__ import annotations

from typing import Any

import pytest

from dice_ray.errors import UnknownNameError
from dice_ray.tracking import schema
from dice_ray.tracking.reader import read
from dice_ray.tracking.writer import Writer
from dice_ray.tuning.overview import compared, overview


def ended(
    writer: Writer, id_: str, parent: str, params: dict[str, Any], scores: dict[str, float], tags: dict[str, str]
) -> None:
    """Write a run that has ended with these scores; with the seed 0 and the state done if no tag says otherwise."""
    tags = {schema.SEED: "0", schema.STATE: "done"} | tags
    writer.open(id_, name=id_, params=params, tags=tags, parent=parent)
    writer.metrics(id_, 5, scores)
    writer.end(id_, "FAILED" if tags[schema.STATE] == "failed" else "FINISHED")


def test_trials_of_a_sweep(uri: str) -> None:
    with Writer("losses", uri) as writer:
        writer.open("losses", name="losses", params={}, tags={schema.KIND: "sweep", schema.METRIC: "dev/f1"})
        trials: dict[str, tuple[str, dict[str, Any], float]] = {
            "0001": ("focal", {"loss.focal.gamma": 2.0}, 0.25),
            "0002": ("dice", {"training.batch_size": 16}, 0.5),
            "0003": ("dice", {}, 0),
        }
        for id_, (loss, own, score) in trials.items():
            params = {"loss": loss, "training.lr": 1e-3, "training.seed": 0, **own}
            ended(writer, id_, "losses", params, {"dev/f1": 0.1, "dev/best_f1": score}, {schema.KIND: "trial"})
        failed = {schema.KIND: "trial", schema.STATE: "failed", schema.FAILURE: "too high"}
        ended(writer, "0004", "losses", {"loss": "dice", "training.lr": 1e-3}, {"dev/best_f1": 0.9}, failed)
        writer.end("losses", "FINISHED")
    rows = compared("losses", read("losses", uri))
    assert [(row.run, row.state, row.score, row.params) for row in rows] == [
        ("losses/0002", "done", 0.5, {"loss": "dice", "training.batch_size": 16}),
        ("losses/0001", "done", 0.25, {"loss": "focal", "loss.focal.gamma": 2.0}),
        ("losses/0003", "done", 0.0, {"loss": "dice"}),
        ("losses/0004", "failed", None, {"loss": "dice"}),
    ]
    assert "16.0" not in repr(rows), "a whole number beside missing ones was printed as 16.0"
    assert [row.failure for row in rows] == [None, None, None, "too high"]
    (line,) = overview(["losses"], uri)
    assert (line.kind, line.metric, line.best) == ("sweep", "dev/f1", 0.5)
    assert line.runs == {"FINISHED": 3, "FAILED": 1}


def test_a_sweep_for_several_objectives_has_no_best_value(uri: str) -> None:
    with Writer("front", uri) as writer:
        tags = {schema.KIND: "sweep", schema.METRIC: "dev/f1", schema.OBJECTIVES: "dev/precision dev/recall"}
        writer.open("front", name="front", params={}, tags=tags)
        ended(writer, "0001", "front", {}, {"dev/best_f1": 0.5}, {schema.KIND: "trial"})
    (line,) = overview(["front"], uri)
    assert (line.kind, line.best) == ("sweep", None)


def test_reruns_are_no_trials_and_the_best_is_that_of_the_report(uri: str) -> None:
    """Trial 0001 has the highest score of its own, and 0002 the highest mean over its reruns."""
    with Writer("again", uri) as writer:
        writer.open("again", name="again", params={}, tags={schema.KIND: "sweep", schema.METRIC: "dev/f1"})
        runs: list[tuple[str, float, str | None]] = [("0001", 0.9, None), ("0002", 0.7, None)]
        runs += [(f"{of}-{seed}", score, of) for of, score in (("0001", 0.4), ("0002", 0.6)) for seed in (1001, 1002)]
        for id_, score, rerun_of in runs:
            kind = {schema.KIND: "rerun", schema.RERUN_OF: rerun_of} if rerun_of else {schema.KIND: "trial"}
            ended(writer, id_, "again", {}, {"dev/best_f1": score}, {schema.SEED: id_[-4:], **kind})
        writer.end("again", "FINISHED")
    rows = compared("again", read("again", uri))
    assert [(row.run, row.score, row.reruns) for row in rows[:2]] == [("again/0002", 0.6, 2), ("again/0001", 0.4, 2)]
    assert {(row.rerun_of, row.reruns) for row in rows[2:]} == {("again/0001", 0), ("again/0002", 0)}
    (line,) = overview(["again"], uri)
    assert line.best == 0.6


def test_cells_of_a_study_and_runs_alone(uri: str) -> None:
    with Writer("study", uri) as writer:
        writer.open("study", name="study", params={}, tags={schema.KIND: "study", schema.METRIC: "test/f1"})
        for arm, score in (("plain", 0.5), ("strong", 0.75)):
            scores = {"test/f1": score, "dev/best_f1": 1 - score}
            tags = {schema.KIND: "cell", schema.ARM: arm, schema.SEED: "1"}
            ended(writer, f"id {arm}", "study", {"loss": arm}, scores, tags)
    found = [(row.run, row.seed, row.metric, row.score) for row in compared("study", read("study", uri))]
    assert found == [("study/strong/1", 1, "test/f1", 0.75), ("study/plain/1", 1, "test/f1", 0.5)]
    (line,) = overview(["study"], uri)
    assert (line.metric, line.best) == ("test/f1", None), "the best cell is not the best arm"
    with Writer("tuned", uri) as writer:
        tags = {schema.KIND: "study", schema.METRIC: "test/f1", schema.THRESHOLD: "tuned"}
        writer.open("tuned", name="tuned", params={}, tags=tags)
        for arm, score in (("plain", 0.5), ("strong", 0.75)):  # at .5 all is 0
            tags = {schema.KIND: "cell", schema.ARM: arm, schema.SEED: "1"}
            ended(writer, f"id {arm}", "tuned", {"loss": arm}, {"test/f1": 0.0, "test/f1_tuned": score}, tags)
    found = [(row.run, row.seed, row.metric, row.score) for row in compared("tuned", read("tuned", uri))]
    assert found == [("tuned/strong/1", 1, "test/f1_tuned", 0.75), ("tuned/plain/1", 1, "test/f1_tuned", 0.5)]
    with Writer("varied", uri) as writer:
        tags = {schema.KIND: "cell", schema.ARM: "plain", schema.SEED: "1", schema.VARIANT: "- negative"}
        writer.open("id varied", name="a", params={}, tags=tags)
    assert [row.run for row in compared("varied", read("varied", uri))] == ["varied/- negative/plain/1"]
    with Writer("train", uri) as writer:
        for key, metric in (("pairs", "dev/f1"), ("texts", "dev/macro_f1")):
            writer.open(key, name=key, params={}, tags={schema.KIND: "run", schema.METRIC: metric, schema.SEED: "1"})
            writer.metrics(key, 9, {schema.sibling(metric, "best"): 0.5})
    alone = compared("train", read("train", uri))
    assert {(row.run, row.metric, row.state) for row in alone} == {
        ("pairs", "dev/f1", "killed"),
        ("texts", "dev/macro_f1", "killed"),
    }
    assert [line.name for line in overview(["study", "train"], uri)] == ["train", "study"]
    with pytest.raises(UnknownNameError, match="did you mean 'study'"):
        read("studdy", uri)


@pytest.mark.parametrize(("kind", "child"), [("study", "cell"), ("sweep", "trial")])
def test_runs_without_a_metric_come_without_a_score(kind: str, child: str, uri: str) -> None:
    """A tag may have been deleted in MLflow."""
    with Writer("runs", uri) as writer:
        writer.open("runs", name="runs", params={}, tags={schema.KIND: kind})
        writer.open("a", name="a", params={}, tags={schema.KIND: child}, parent="runs")
    assert [(row.metric, row.score) for row in compared("runs", read("runs", uri))] == [(None, None)]


def test_an_experiment_without_runs(uri: str) -> None:
    Writer("empty", uri).close()
    assert compared("empty", read("empty", uri)) == []
    (line,) = overview(["empty"], uri)
    assert (line.runs, line.best, line.began) == ({}, None, None)
