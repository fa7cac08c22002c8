"""What a sweep or study left, from Python: the best, the figures, a notebook's table, the report and its files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dice_ray
from dice_ray import api
from dice_ray.api.reports import store_outcome
from dice_ray.errors import InputError, RunError, ShadowedError, UnknownNameError
from dice_ray.tracking import schema
from dice_ray.tracking.reader import curves, read, texts
from dice_ray.tracking.spool import Spool
from dice_ray.tracking.writer import Writer

pytestmark = pytest.mark.usefixtures("uri")  # to make a store takes longer than a test
TRIALS = {"0001": ("dice", 0.5, 0.1), "0002": ("focal", 0.75, 2.0), "0003": ("focal", 0.25, 3.0)}
"""Loss, dev F1, gamma."""


@pytest.fixture
def sweep() -> api.Result:
    with Writer("search") as writer:
        writer.open("search", name="search", params={}, tags={schema.KIND: "sweep", schema.METRIC: "dev/f1"})
        writer.text("search", "plan.yaml", "name: search\n")
        for key, (loss, score, gamma) in TRIALS.items():
            chosen = {"loss": loss, f"loss.{loss}.gamma": gamma}
            tags = {schema.KIND: "trial", schema.SEARCHED: " ".join(chosen), schema.STATE: "done"}
            writer.open(key, name=key, params=chosen | {"training.lr": 0.1}, tags=tags, parent="search")
            writer.metrics(key, 1, {"dev/f1": score})
            writer.end(key, "FINISHED")
        writer.end("search", "FINISHED")
    return api.Result("search", "search")


def study(num_seeds: int) -> api.Result:
    """A study in which `dice` is better than `plain` with every seed."""
    with Writer("compare") as writer:
        tags = {schema.KIND: "study", schema.METRIC: "test/f1", schema.BASELINE: "plain"}
        writer.open("compare", name="compare", params={}, tags=tags)
        for arm, score in (("plain", 0.5), ("dice", 0.6)):
            for seed in range(1, num_seeds + 1):
                tags = {schema.KIND: "cell", schema.ARM: arm, schema.SEED: str(seed), schema.STATE: "done"}
                writer.open(f"{arm}{seed}", name=arm, params={}, tags=tags, parent="compare")
                writer.metrics(f"{arm}{seed}", 1, {"test/f1": score * (1 + seed / 100)})
                writer.end(f"{arm}{seed}", "FINISHED")
        writer.end("compare", "FINISHED")
    return api.Result("compare", "compare", is_study=True)


def test_the_best_of_a_sweep_is_a_run_with_what_was_searched(sweep: api.Result) -> None:
    assert sweep.best == api.Best("search/0002", "dev/f1", 0.75, {"loss": "focal", "loss.focal.gamma": 2.0})
    assert type(sweep.best.settings["loss.focal.gamma"]) is int  # not NumPy's, which YAML does not take
    assert repr(sweep).startswith("search: search/0002 has dev/f1 0.7500 with loss focal, loss.focal.gamma 2.\nin ")
    assert len(sweep.frame) == 4


def test_the_settings_of_the_best_trial_train_its_configuration() -> None:
    """A chosen `null` was left out, and a setting that only another trial chose must be."""
    trials: dict[str, dict[str, Any]] = {
        "0001": {"loss": "dice", "training.patience": None, "training.batch_size": 2048, "training.lr": 2e-5},
        "0002": {"loss": "focal", "loss.focal.gamma": 2.5, "training.patience": 2, "training.batch_size": 64},
    }
    with Writer("search") as writer:
        writer.open("search", name="search", params={}, tags={schema.KIND: "sweep", schema.METRIC: "dev/f1"})
        writer.text("search", "plan.yaml", "name: search\n")
        for key, chosen in trials.items():
            tags = {schema.KIND: "trial", schema.SEARCHED: " ".join(chosen), schema.STATE: "done"}
            writer.open(key, name=key, params={"training.lr": 0.1} | chosen, tags=tags, parent="search")
            writer.metrics(key, 1, {"dev/f1": 1 / int(key), "dev/constant_f1": 0.1})
            writer.end(key, "FINISHED")
        writer.end("search", "FINISHED")
    searched = api.Result("search", "search")
    assert searched.best.settings == trials["0001"]
    assert type(searched.best.settings["training.batch_size"]) is int
    assert "training.patience null, training.batch_size 2048, training.lr 2e-05" in searched.best.line
    (table,) = [table for table in api.report("search").tables if table.name == "best_trials"]
    assert table.shown["searched"].tolist() == [
        "training.patience=null, training.batch_size=2048, training.lr=2e-05",
        "loss.focal.gamma=2.5, training.patience=2, training.batch_size=64",
        "",
    ]


def test_the_best_of_a_study_is_its_winner() -> None:
    """Also where an earlier command left records for another store: the study had no verdict, as if MLflow was away."""
    compared = study(6)
    Spool(compared.folder, "compare", "http://127.0.0.1:9").close(is_sent=False)
    assert compared.waiting is None
    assert (compared.best.name, compared.best.metric) == ("dice", "test/f1")
    assert compared.best.score == pytest.approx(0.621)
    (headline,) = compared.headlines
    assert headline == compared.report().cards[0].sentences[0]
    assert headline.startswith("Better than plain")
    assert compared.more_seeds is None


def test_the_runs_of_a_study_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ablate --json` read them three times: to store the outcome, for the headline, and for the winner."""
    compared, reads = study(6), list[str]()

    def counted(experiment: str, uri: str | None = None) -> pd.DataFrame:
        reads.append(experiment)
        return read(experiment, uri)

    monkeypatch.setattr("dice_ray.tracking.reader.read", counted)
    store_outcome("compare", lambda: compared.findings)
    assert (len(compared.headlines), compared.best.name) == (1, "dice")
    assert reads == ["compare"]


def test_the_outcome_of_more_runs_is_at_a_later_step(sweep: api.Result) -> None:
    """Two values of `dev/best_f1` at step 0, of which MLflow's pages draw one above the other."""
    store_outcome("search", lambda: sweep.findings)
    with Writer("search") as writer:
        tags = {schema.KIND: "trial", schema.STATE: "done"}
        writer.open("0004", name="0004", params={"loss": "dice"}, tags=tags, parent="search")
        writer.metrics("0004", 1, {"dev/f1": 0.875})
        writer.end("0004", "FINISHED")
    store_outcome("search", lambda: api.Result("search", "search").findings)
    points = curves("search")
    points = points[points["id"] == "search"]
    assert list(zip(points["metric"], points["step"], points["value"], strict=True)) == [
        ("dev/best_f1", 3, 0.75),
        ("dev/best_f1", 4, 0.875),
    ]


def test_a_study_of_two_seeds_has_no_best_and_asks_for_more() -> None:
    compared = study(2)
    with pytest.raises(RunError, match=r"compare has none: Too few seeds"):
        _ = compared.best
    assert compared.more_seeds is not None
    assert (compared.more_seeds.num, compared.more_seeds.arms) == (5, ())


def test_a_run_of_one_class_is_told_what_helps_it() -> None:
    """Nothing else finds advice to train longer where the fitted threshold already decides."""
    plain = api.Best("mine", "dev/f1", 0.0, is_collapsed=True)
    tuned = replace(plain, metric="dev/f1_tuned", score=0.5)
    assert "0.0000. It predicts one class only: try more epochs" in plain.line
    assert "0.5000. Untuned, it predicts one class only: try more epochs" in tuned.line
    assert replace(tuned, threshold=0.1234).line == (
        "mine has dev/f1_tuned 0.5000 (threshold 0.12). "
        "At .5 it predicts one class only; predictions use the threshold fitted on dev."
    )
    assert ". It predicts one class only: try" in replace(tuned, threshold=0.5).line, "none was fitted"


def test_without_a_score_there_is_no_best() -> None:
    with Writer("empty") as writer:
        writer.open("empty", name="empty", params={}, tags={schema.KIND: "sweep", schema.METRIC: "dev/f1"})
        writer.open("0001", name="0001", params={}, tags={schema.KIND: "trial"}, parent="empty")
    with pytest.raises(RunError, match="the best trial must have a score, and no trial of empty has one"):
        _ = api.Result("empty", "empty").best


def test_a_figure_by_its_name(sweep: api.Result) -> None:
    assert sweep.figure().name == sweep.figure("best_so_far").name == "best_so_far"
    assert sweep.figure()._repr_svg_().startswith("<svg")
    with pytest.raises(UnknownNameError, match="no figure of search named 'bets_so_far'; did you mean 'best_so"):
        sweep.figure("bets_so_far")


def test_a_notebook_shows_the_table(sweep: api.Result) -> None:
    shown = sweep._repr_html_()
    assert shown is not None
    assert "The best of 3 trials is 0002" in shown
    assert "<td" in shown
    assert "<html" not in shown


def test_a_notebook_shows_a_result_that_mlflow_does_not_know() -> None:
    """A finished run ended in a traceback while MLflow was away."""
    trained = api.Result("mine", "train", trained=api.Best("mine", "dev/f1", 0.5))
    assert trained._repr_html_() is None
    assert repr(trained).startswith("mine: mine has dev/f1 0.5000")


def test_a_trained_run_needs_no_analysis(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package `analysis` of the user's own made printing a trained run fail, on the terminal and in a notebook."""

    def shadowed(package: str) -> Path:
        raise ShadowedError(f"Python finds another {package} first")

    monkeypatch.setattr("dice_ray.api.library.folder_of", shadowed)
    trained = api.Result("mine", "train", trained=api.Best("mine", "dev/f1", 0.5))
    assert (trained.headlines, trained.more_seeds) == ((), None)
    assert repr(trained).startswith("mine: mine has dev/f1 0.5000")
    assert trained._repr_html_() is None


def test_the_report_is_written_and_kept_with_its_run(sweep: api.Result) -> None:
    made = dice_ray.report("search")
    written = api.write_report(made, ["search"])
    assert written[0] == Path("dice_ray_runs/search/report/report.html")
    assert "name: search" in Path("dice_ray_runs/search/report/search.plan.yaml").read_text()
    frame = read("search")
    parent = frame[frame["id"] == "search"]
    assert texts(parent, "report/report.html") == {"search": made.html()}
    assert texts(parent, "report/best_so_far.svg")
    assert parent["status"].tolist() == ["FINISHED"]
    assert parent["metrics.dev/best_f1"].tolist() == [sweep.best.score]


def test_several_are_reported_side_by_side(sweep: api.Result) -> None:
    study(2)
    made = dice_ray.report("search", "compare")
    assert made.title == "search, compare"
    assert api.write_report(made, ["search", "compare"])[0] == Path(
        "dice_ray_runs/search_and_compare/report/report.html"
    )
    # The names joined would be longer than a folder's may be.
    long = ["search", *(f"{letter * 120}" for letter in "ab")]
    page = api.write_report(replace(made, figures=()), long)[0]
    assert page == Path("dice_ray_runs/search_and_2_more/report/report.html")
    for names in ((), ("search", "search")):
        with pytest.raises(InputError, match="a report must be of one or more different experiments"):
            dice_ray.report(*names)
