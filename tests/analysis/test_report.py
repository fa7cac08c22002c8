"""Reports of a study and of a sweep, from what MLflow holds to the files."""

from __future__ import annotations

import hashlib
import math
import os
import re
import resource
import shutil
import subprocess
from collections.abc import Callable, Hashable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.formats import ScoreFormat
from analysis.frames import Findings
from analysis.report import Report
from analysis.report import report as report_of
from analysis.statistics.intervals import t_interval
from analysis.tables import runs as sweep_tables
from dice_ray.errors import InputError, RunError
from dice_ray.tracking import schema
from dice_ray.tracking.reader import read
from dice_ray.tracking.writer import Writer
from tests.analysis.frames import ranked, study
from tests.analysis.tables.test_items import found as with_errors

NASTY = "<script>alert(1)</script> & 50 %"
F1 = {
    "cross_entropy": [0.70, 0.71, 0.69, 0.72, 0.70],
    "dice": [0.75, 0.77, 0.74, 0.76, 0.76],
    "focal": [0.70, 0.73, 0.68, math.nan, 0.71],
    NASTY: [0.0] * 5,
}
"""Test F1 by arm over seeds 0 to 4; NaN: the cell failed."""
TUNED = {
    "cross_entropy": [0.74, 0.73, 0.74, 0.73, 0.72],
    "dice": [0.76, 0.79, 0.74, 0.77, 0.78],
}
"""The same at the threshold tuned on dev, by the arms that have one."""


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('store')}/mlflow.db"


@pytest.fixture(scope="module")
def frames(uri: str) -> dict[str, pd.DataFrame]:
    """A study and a sweep as the reader gives them."""
    for name, tell in (("study", tell_study), ("sweep", tell_sweep)):
        writer = Writer(name, uri)
        tell(writer)
        writer.close()
    return {name: read(name, uri) for name in ("study", "sweep")}


@pytest.fixture(scope="module")
def reports(frames: dict[str, pd.DataFrame]) -> dict[str, Report]:
    """The reports of the study and the sweep as stored."""
    return {name: report(frame) for name, frame in frames.items()}


def report(frame: pd.DataFrame) -> Report:
    return report_of(ranked(Findings(frame)))


def tell_study(writer: Writer) -> None:
    tags = {schema.KIND: "study", schema.METRIC: "test/f1", schema.BASELINE: "cross_entropy"}
    tags[schema.THRESHOLD] = "untuned"
    writer.open("study", name="loss_comparison", params={}, tags=tags)
    for arm, scores in F1.items():
        for seed, score in enumerate(scores):
            key = f"{list(F1).index(arm)}-{seed}"
            tags = {schema.KIND: "cell", schema.ARM: arm, schema.SEED: str(seed)}
            tags |= {schema.DATA: "mrpc", schema.PUBLISHED: "mrpc"}
            writer.open(key, name=key, params={"loss": "dice"}, tags=tags, parent="study")
            if math.isnan(score):
                writer.metrics(key, 1, {"test/f1": 0.9, "test/f1_tuned": 0.9})
                writer.tags(key, {schema.STATE: "failed", schema.FAILURE: "the loss must be finite,\ngot nan | step 3"})
            else:
                metrics = {"test/f1": score, "test/constant_f1": 2 / 3, "test/collapsed": float(score == 0)}
                if arm in TUNED and not math.isnan(TUNED[arm][seed]):
                    metrics |= {"test/f1_tuned": TUNED[arm][seed], "test/threshold": 0.4}
                writer.metrics(key, 1, metrics)
                writer.tags(key, {schema.STATE: "done"})
            writer.end(key, "FINISHED")
    writer.end("study", "FINISHED")


TRIALS: dict[str, tuple[str, str, float | None, float | None]] = {
    "t0": ("dice", "done", 0.6, 0.01),
    "t1": ("dice", "pruned", 0.3, 0.5),
    "t2": ("dice", "failed", 0.9, 1.0),
    "t3": ("focal", "done", 0.7, 2.0),
    "t4": ("cross_entropy", "done", 0.5, None),
    "t5": ("tversky", "failed", None, 1.0),
}
"""Loss, state, best dev F1, gamma; what t2 reached before it failed does not count."""


def tell_sweep(writer: Writer) -> None:
    writer.open("sweep", name="a sweep", params={}, tags={schema.KIND: "sweep", schema.METRIC: "dev/f1"})
    for key, (loss, state, score, gamma) in TRIALS.items():
        chosen: dict[str, Any] = {"loss": loss} | ({} if gamma is None else {f"loss.{loss}.gamma": gamma})
        tags = {schema.KIND: "trial", schema.SEARCHED: " ".join(chosen)}
        writer.open(key, name=key, params=chosen | {"training.epochs": 3}, tags=tags, parent="sweep")
        if score is not None:
            writer.metrics(key, 1, {"dev/f1": score, "dev/best_f1": score, "dev/constant_f1": 0.4})
            writer.metrics(key, 2, {"dev/f1": score - 0.1})
        writer.tags(key, {schema.STATE: state})
        writer.end(key, "FINISHED")


def rows(made: Report, name: str) -> dict[Any, dict[Hashable, Any]]:
    """The numbers of a table by its first column."""
    (table,) = [table for table in made.tables if table.name == name]
    return {row[table.data.columns[0]]: row for row in table.data.to_dict("records")}


def picked(row: dict[Hashable, Any], *names: str) -> list[Any]:
    return [row[name] for name in names]


def test_arms_by_their_mean_each_against_the_baseline(reports: dict[str, Report]) -> None:
    made = reports["study"]
    assert made.title == "loss_comparison"
    arms = rows(made, "comparison")
    assert list(arms) == [
        *("dice", "focal", "cross_entropy", "constant predictor"),
        *("dice (tuned threshold)", "cross_entropy (tuned threshold)", NASTY),
    ]
    # Holm's procedure tests it at .05/2: the other test is of the arm that collapsed; focal has too few seeds.
    low, high = stats.ttest_rel(F1["dice"], F1["cross_entropy"]).confidence_interval(1 - 0.05 / 2)
    expected = [np.mean(F1["dice"]), 0.052, low, high]
    assert picked(arms["dice"], "mean", "difference", "difference_low", "difference_high") == pytest.approx(expected)
    assert arms["constant predictor"]["mean"] == pytest.approx(2 / 3)
    assert math.isnan(arms["cross_entropy"]["difference"])


def test_a_study_whose_name_was_lost_has_a_report() -> None:
    """A damaged store ended it with a TypeError."""
    found = study({"arm": arm, "seed": seed, "metrics.test/f1": 0.5} for arm in ("plain", "dice") for seed in (1, 2))
    found.frame.loc[found.frame["kind"] == "study", "name"] = None
    assert report_of(found).title == "Runs"


def test_p_is_corrected_over_the_rows_with_enough_seeds(reports: dict[str, Report]) -> None:
    p = float(stats.ttest_rel(F1["dice"], F1["cross_entropy"]).pvalue)
    arms = rows(reports["study"], "comparison")
    # An arm that collapsed with each seed has a sign test in place of a t test. Not tested: the tuned threshold, and
    # focal, which has too few seeds.
    assert arms["dice"]["holm_p"] == pytest.approx(2 * p)
    assert pd.isna([arms[name]["holm_p"] for name in ("focal", NASTY, "dice (tuned threshold)")]).all()
    assert math.isnan(arms["cross_entropy"]["holm_p"])
    assert math.isnan(arms["constant predictor"]["holm_p"])


def test_a_tuned_threshold_is_compared_with_the_baseline_at_its_own(
    frames: dict[str, pd.DataFrame], reports: dict[str, Report]
) -> None:
    made = reports["study"]
    arms = rows(made, "comparison")
    dice, baseline = (arms[f"{name} (tuned threshold)"] for name in ("dice", "cross_entropy"))
    assert picked(dice, "mean", "difference", "shared_seeds") == pytest.approx([0.768, 0.768 - 0.732, 5])
    assert picked(baseline, "mean", "seeds") == pytest.approx([0.732, 5])
    assert pd.isna(picked(baseline, "difference", "shared_seeds", "holm_p")).all()
    assert "Scores at the threshold tuned on dev are shown and not compared." in made.text()
    without = frames["study"].drop(columns="metrics.test/f1_tuned")
    assert "tuned threshold" not in report(without).text()


@pytest.mark.parametrize(
    ("task", "threshold", "phrase"),
    [
        ("sentence_pair", 0.4, "at the threshold of .5"),
        ("extractive_qa", 0.4, "at the untuned no-answer threshold"),
        ("extractive_qa", math.nan, ""),
        ("tagging", math.nan, ""),
    ],
)
def test_a_threshold_is_named_only_of_a_task_that_has_one(task: str, threshold: float, phrase: str) -> None:
    """Tags are the most probable ones, and a question is unanswered above 0: both were said to be at .5."""
    findings = with_errors()
    f1 = findings.frame["metrics.test/f1"]
    metrics = {"precision": f1, "recall": f1, "threshold": threshold, "f1_tuned": f1 if phrase else math.nan}
    columns: dict[str, Any] = {f"metrics.test/{name}": of for name, of in metrics.items()}
    made = report_of(replace(findings, frame=findings.frame.assign(**columns, **{"tags.task": task})))
    texts = {table.name: " ".join((*table.notes, *table.tips.values())) for table in made.tables}
    texts |= {figure.name: figure.caption for figure in made.figures}
    for name in ("comparison", "classes", "confusion", "worst_items", "forest", "precision_recall"):
        assert set(re.findall(r"at the [^.]*threshold(?! tuned)(?: of \.5)?", texts[name])) == {phrase} - {""}
    others = "Scores at the threshold tuned on dev are shown and not compared."
    assert (others in texts["comparison"]) == bool(phrase)


def test_failed_and_collapsed_cells_are_counted_and_listed(reports: dict[str, Report]) -> None:
    made = reports["study"]
    arms = rows(made, "comparison")
    assert picked(arms["focal"], "seeds", "shared_seeds", "collapsed", "failed") == [4, 4, 0, 1]
    assert picked(arms[NASTY], "seeds", "collapsed", "failed") == [5, 5, 0]
    (failed,) = rows(made, "without_score").values()
    assert picked(failed, "arm", "seed", "state") == ["focal", 3, "failed"]
    assert "the loss must be finite, got nan | step 3" in made.text()


def test_a_cell_that_ran_again_counts_once(frames: dict[str, pd.DataFrame]) -> None:
    frame = frames["study"]
    again = frame[frame["id"] == "1-0"].copy()
    again["metrics.test/f1"] = 0.85
    made = report(pd.concat([frame, again], ignore_index=True))
    assert picked(rows(made, "comparison")["dice"], "mean", "seeds") == pytest.approx([0.776, 5])
    assert "Left out, since a later run has the same arm and seed: 1 run." in made.text()


@pytest.mark.parametrize(("state", "score"), [("failed", 0.9), (None, math.nan)])
def test_a_cell_with_a_score_is_not_replaced_by_one_without(
    frames: dict[str, pd.DataFrame], state: str | None, score: float
) -> None:
    frame = frames["study"]
    again = frame[frame["id"] == "1-0"].copy()
    again["metrics.test/f1"], again["state"] = score, state
    dice = rows(report(pd.concat([frame, again], ignore_index=True)), "comparison")["dice"]
    assert picked(dice, "mean", "seeds", "failed") == pytest.approx([np.mean(F1["dice"]), 5, 0])


def test_the_tag_says_which_cell_collapsed(frames: dict[str, pd.DataFrame]) -> None:
    frame = frames["study"].copy()
    frame["tags.collapsed"] = frame["id"].map({"0-0": "true", "3-0": "false", "3-1": "true"})
    arms = rows(report(frame), "comparison")
    assert [arms[name]["collapsed"] for name in ("cross_entropy", "dice", NASTY)] == [1, 0, 4]


def test_the_best_trials_show_what_was_searched(reports: dict[str, Report]) -> None:
    made = reports["sweep"]
    trials = rows(made, "best_trials")
    assert [picked(trial, "trial", "score") for trial in trials.values()] == [
        *(["t3", 0.7], ["t0", 0.6], ["t4", 0.5], ["t1", 0.3], ["constant predictor", 0.4])
    ]
    assert trials[1]["loss.focal.gamma"] == 2.0
    (best,) = [table for table in made.tables if table.name == "best_trials"]
    assert best.shown.to_numpy().tolist()[1] == ["2", "t0", "60.00", "done", "dice", "loss.dice.gamma=0.01"]
    assert best.shown.to_numpy().tolist()[4] == ["", "constant predictor", "40.00", "", "", ""]
    assert "The first" not in made.text()
    assert "training.epochs" not in made.text()


def test_trials_that_ran_again_are_ranked_by_the_mean_over_the_other_seeds(frames: dict[str, pd.DataFrame]) -> None:
    frame = frames["sweep"]
    again = []
    columns: dict[str, Any]
    for trial, seed, score in (("t0", 1001, 0.8), ("t0", 1002, 0.6), ("t3", 1001, 0.95), ("t3", 1002, math.nan)):
        row = frame[frame["id"] == trial].assign(id=f"{trial}-{seed}", kind="rerun", seed=seed)
        failed = "failed" if math.isnan(score) else "done"
        columns = {"tags.rerun_of": trial, "metrics.dev/best_f1": score, "state": failed}
        again.append(row.assign(**columns))
    made = report(pd.concat([frame, *again], ignore_index=True))
    trials = rows(made, "best_trials")
    assert [picked(trial, "trial", "score") for trial in list(trials.values())[:3]] == [
        *(["t0", 0.6], ["t3", 0.7], ["t4", 0.5])
    ]
    assert picked(trials[1], "mean_of_reruns", "reruns") == pytest.approx([0.7, 2])
    assert picked(trials[2], "mean_of_reruns", "reruns") == pytest.approx([0.95, 1]), "a failed rerun costs its rank"
    (best,) = [table for table in made.tables if table.name == "best_trials"]
    interval = ScoreFormat(percent=True).show_interval(t_interval([0.8, 0.6]))
    assert best.shown["with other seeds"].tolist()[:3] == [interval, "95.00", ""]
    assert best.shown["seeds"].tolist()[:3] == ["2", "1", ""]
    of_mcc = {name: str(name).replace("f1", "mcc") for name in frame}
    made = report(pd.concat([frame, *again], ignore_index=True).rename(columns=of_mcc).replace("dev/f1", "dev/mcc"))
    interval = ScoreFormat(percent=False).show_interval(t_interval([0.8, 0.6], limits=(-1, 1)))
    (best,) = [table for table in made.tables if table.name == "best_trials"]
    assert best.shown["with other seeds"].tolist()[0] == interval
    assert "t3-1002" in [row["run"] for row in rows(made, "without_score").values()] or "t3-1002" in made.text()
    assert rows(made, "losses")["dice"]["trials"] == rows(report(frame), "losses")["dice"]["trials"]


def test_the_pareto_front_holds_what_no_other_trial_beats(frames: dict[str, pd.DataFrame]) -> None:
    frame = frames["sweep"].copy()
    assert "pareto_front" not in [table.name for table in report(frame).tables]
    frame["tags.objectives"] = frame["kind"].map({"sweep": "dev/recall -train/seconds"})
    frame["metrics.dev/kept_recall"] = frame["id"].map({"t0": 0.5, "t3": 0.7, "t4": 0.5, "t1": 0.9})
    frame["metrics.dev/recall"] = 0.0
    frame["metrics.train/seconds"] = frame["id"].map({"t0": 3.0, "t3": 4.0, "t4": 3.5, "t1": 1.0})
    (front,) = [table for table in report(frame).tables if table.name == "pareto_front"]
    assert front.data[["trial", "dev/recall", "train/seconds"]].to_numpy().tolist() == [
        *(["t3", 0.7, 4.0], ["t0", 0.5, 3.0])  # t4 is beaten by t0, t1 was stopped early
    ]
    assert front.shown.to_numpy().tolist()[0] == ["t3", "70.00", "4", "focal", "loss.focal.gamma=2"]


def test_more_trials_than_are_shown(frames: dict[str, pd.DataFrame], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_tables, "_NUM_BEST", 2)
    (best,) = [table for table in report(frames["sweep"]).tables if table.name == "best_trials"]
    assert best.shown["trial"].tolist() == ["t3", "t0", "constant predictor"]
    assert len(best.data) == 5
    assert "The first 2 of 4." in best.notes


def test_a_sweep_whose_trials_all_failed(frames: dict[str, pd.DataFrame]) -> None:
    frame = frames["sweep"]
    failed = frame[(frame["kind"] == "sweep") | (frame["state"] == "failed")]
    assert [table.name for table in report(failed).tables] == ["losses", "without_score"]
    assert list(rows(report(failed), "losses")) == ["dice", "tversky", "constant predictor"]
    nameless = failed.assign(**{"params.loss": math.nan})
    assert [table.name for table in report(nameless).tables] == ["without_score"]


def test_a_trial_without_a_loss_makes_no_row_of_losses(frames: dict[str, pd.DataFrame]) -> None:
    frame = frames["sweep"].copy()
    frame.loc[frame["id"] == "t5", "params.loss"] = None
    assert list(rows(report(frame), "losses")) == ["focal", "dice", "cross_entropy", "constant predictor"]


def test_what_each_loss_reached(reports: dict[str, Report]) -> None:
    made = reports["sweep"]
    reached = rows(made, "losses")
    assert list(reached) == ["focal", "dice", "cross_entropy", "tversky", "constant predictor"]
    counts = picked(reached["dice"], "best", "median", "trials", "done", "pruned", "failed")
    assert counts == pytest.approx([0.6, 0.45, 3, 1, 1, 1])
    assert math.isnan(reached["tversky"]["best"])
    assert reached["constant predictor"]["best"] == 0.4
    assert list(rows(made, "without_score")) == ["t2", "t5"]


def test_the_files(reports: dict[str, Report], tmp_path: Path) -> None:
    made = reports["study"]
    written = made.write(tmp_path / "new" / "folder")
    assert [path.name for path in written] == [
        *("report.html", "report.md", "comparison.csv", "comparison.tex"),
        *("paper_table_7.csv", "paper_table_7.tex", "paper_table_2.csv", "paper_table_2.tex"),
        *("without_score.csv", "without_score.tex", "all_runs.csv", "forest.png", "forest.svg"),
    ]
    content = {path.name: path.read_text(encoding="utf-8") for path in written if path.suffix != ".png"}
    assert "<script>" not in content["report.md"]
    escaped = r"\textless{}script\textgreater{}alert(1)\textless{}/script\textgreater{} \& 50 \%"
    assert escaped in content["comparison.tex"]
    assert "<script>" not in content["forest.svg"]
    back = pd.read_csv(tmp_path / "new/folder/comparison.csv")
    assert back["mean"].tolist() == pytest.approx([arm["mean"] for arm in rows(made, "comparison").values()])


def test_all_runs_are_written_with_what_differs_between_them(reports: dict[str, Report], tmp_path: Path) -> None:
    reports["sweep"].write(tmp_path)
    runs = pd.read_csv(tmp_path / "all_runs.csv").set_index("id")
    assert "training.epochs" not in runs
    assert runs["state"].to_dict() == {key: state for key, (_, state, _, _) in TRIALS.items()}
    assert runs.loc["t1", "loss.dice.gamma"] == 0.5
    assert runs.loc["t1", "dev/best_f1"] == 0.3
    assert runs["loss.dice.gamma"].count() == 3


def test_the_files_of_figures_and_of_the_plan(tmp_path: Path) -> None:
    scored = {"metrics.test/f1": 0.5, "metrics.test/precision": 0.4, "metrics.test/recall": 0.7}
    found = study([{"arm": "plain", "seed": seed} | scored for seed in (1, 2)])
    plans = {"plan.yaml": {"study": "name: study\n"}}
    written = report_of(replace(found, texts=lambda runs, file: plans.get(file, {}))).write(tmp_path)
    names = [path.name for path in written]
    assert names[-3:] == ["study.plan.yaml", "precision_recall.png", "precision_recall.svg"]
    assert all(path.stat().st_size for path in written)
    assert (tmp_path / "study.plan.yaml").read_text() == "name: study\n"
    assert "](precision_recall.svg)" in (tmp_path / "report.md").read_text()


def test_a_report_deletes_what_the_one_before_left_and_nothing_else(
    frames: dict[str, pd.DataFrame], tmp_path: Path
) -> None:
    study, sweep = (report(frames[name]) for name in ("study", "sweep"))
    folder = tmp_path / "report"
    before = {file.name for file in study.write(folder)}
    assert {"comparison.csv", "comparison.tex", "without_score.csv"} <= before
    (folder / "mine.csv").write_text("a stranger's")
    (folder / "comparison.tex").write_text("changed by hand")
    (tmp_path / "outside.csv").write_text("a stranger's")
    notes = folder / "report.sha256"
    digest = hashlib.sha256(b"a stranger's").hexdigest()
    notes.write_text(f"{notes.read_text()}{digest}  ../outside.csv\n{digest}  {tmp_path}/outside.csv\n")
    after = {file.name for file in sweep.write(folder)}
    assert before - after > {"comparison.csv", "comparison.tex"}
    assert {file.name for file in folder.iterdir()} == after | {"mine.csv", "comparison.tex", "report.sha256"}
    assert (tmp_path / "outside.csv").is_file()
    assert subprocess.run(["sha256sum", "--check", "--quiet", notes.name], cwd=folder, check=False).returncode == 0


def test_a_report_replaces_only_files_that_a_report_has_written(reports: dict[str, Report], tmp_path: Path) -> None:
    """A training file `labels.csv` was replaced by the table of that name, as was what the user had changed."""
    made = replace(reports["study"], figures=())
    (tmp_path / "comparison.csv").write_text("the user's")
    (tmp_path / "report.md").mkdir()
    with pytest.raises(InputError, match=r"files that it has not written, .* has report\.md, comparison\.csv: move"):
        made.write(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["comparison.csv", "report.md"]
    assert (tmp_path / "comparison.csv").read_text() == "the user's"
    folder = tmp_path / "report"
    made.write(folder)
    replace(made, title="another").write(folder)
    (folder / "report.md").write_text("the user's")
    with pytest.raises(InputError, match=r"has report\.md: move them away"):
        made.write(folder)
    assert "<title>another" in (folder / "report.html").read_text()


def test_a_report_that_was_killed_while_it_replaced_files_can_be_written_again(
    reports: dict[str, Report], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of both reports are left, each of which a report has written."""
    made = replace(reports["study"], figures=())
    made.write(tmp_path)

    def replaced(file: Path, target: Path, replace_file: Callable[[Path, Path], Path] = Path.replace) -> Path:
        if target.name == "report.md":
            raise KeyboardInterrupt
        return replace_file(file, target)

    monkeypatch.setattr(Path, "replace", replaced)
    with pytest.raises(KeyboardInterrupt):
        replace(made, title="another").write(tmp_path)
    monkeypatch.undo()
    assert "<title>another" in (tmp_path / "report.html").read_text()
    made.write(tmp_path)
    assert (tmp_path / "report.md").read_text() == made.markdown()


def test_a_full_disk_leaves_the_previous_report_whole(reports: dict[str, Report], tmp_path: Path) -> None:
    reports["study"].write(tmp_path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before["report.md"]), hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            replace(reports["study"], title="a new report").write(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.slow
def test_the_latex_of_tables_compiles(frames: dict[str, pd.DataFrame], tmp_path: Path) -> None:
    """By a TeX, which Debian has as texlive-latex-base, and booktabs in texlive-latex-recommended."""
    assert shutil.which("pdflatex"), "it takes pdflatex: `apt-get install texlive-latex-base texlive-latex-recommended`"
    scored = {"metrics.test/f1": 0.5, "metrics.test/precision": 0.4, "metrics.test/recall": 0.7, "tags.data": NASTY}
    drawn = study([{"arm": arm, "seed": seed} | scored for arm in ("plain", NASTY) for seed in (1, 2)])
    experiments = {name: Findings(frame) for name, frame in frames.items()} | {"drawn": drawn}
    for name, made in {name: report_of(found) for name, found in experiments.items()}.items():
        made.write(tmp_path / name)
        tables = "".join(rf"\input{{{table.name}.tex}}" for table in made.tables)
        packages = r"\documentclass{article}\usepackage{booktabs,xcolor}\usepackage[margin=2cm,landscape]{geometry}"
        document = rf"{packages}\begin{{document}}{tables}\end{{document}}"
        (tmp_path / name / "report.tex").write_text(document)
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "report.tex"]
        folders = {name: str(tmp_path) for name in ("HOME", "TEXMFVAR", "TEXMFCONFIG", "TEXMFHOME")}
        done = subprocess.run(
            command, cwd=tmp_path / name, env=os.environ | folders, capture_output=True, timeout=200, check=False
        )
        assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]


def test_nothing_to_compare(frames: dict[str, pd.DataFrame]) -> None:
    frame = frames["study"]
    with pytest.raises(RunError, match="must have runs, trials of a sweep or cells of a study"):
        report(frame[frame["kind"] == "study"])
    with pytest.raises(RunError, match=r"must carry the tag dice_ray\.metric"):
        report(frame[frame["kind"] == "cell"])
