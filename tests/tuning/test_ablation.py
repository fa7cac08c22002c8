"""A study on a real Ray: the cells that the ledger lacks, each once, scored on test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dice_ray
from dice_ray.cli.screen import TerminalScreen
from dice_ray.config.load import Layer, resolve, values_layer
from dice_ray.errors import RunError
from dice_ray.run.driver import Driver
from dice_ray.tracking.reader import read
from dice_ray.tuning import plan_file, runner
from dice_ray.tuning.estimate import estimate
from dice_ray.tuning.ledger import History, Ledger, TrialOutcome
from dice_ray.tuning.runner import _once_each
from dice_ray.tuning.study import StudyPlan, Variant


def test_cells_that_failed_or_never_ended_are_missing(layers: tuple[Layer, ...]) -> None:
    plan = StudyPlan(name="study", layers=layers, arms={"ce": {}}, baseline="ce", seeds=(1, 2, 3, 4))
    cells = done, failed, begun, new = plan.grid().cells
    history = History({cell.id: cell for cell in (done, failed, begun)})
    history.outcomes = {done.id: TrialOutcome(id=done.id, state="done")}
    history.outcomes |= {failed.id: TrialOutcome(id=failed.id, state="failed", failure="no memory")}
    assert plan._missing(cells, history) == [failed, begun, new]


def test_what_all_variants_read_is_said_once() -> None:
    """Finds a study over drawn settings, all of one data set, that begins with the same lines for each of them."""
    text = "data: 9 train\n  1 dropped"
    assert _once_each({"01": text, "02": text}) == _once_each({None: text}) == ["data: 9 train", "  1 dropped"]
    several = _once_each({"tweets": text, "news": "data: 8 train", "tweets again": text})
    assert several == ["tweets, tweets again: data: 9 train", "  1 dropped", "news: data: 8 train"]
    assert _once_each({"tweets": "", "news": "Warning: few"}) == ["news: Warning: few"]


@pytest.mark.usefixtures("uri")
def test_cells_that_are_done_are_not_run_again_where_the_files_were_moved(tmp_path: Path) -> None:
    """They have the ids of the folder that the study was started with."""
    columns = {"pair": {"first": "a", "second": "b", "label": "label"}}
    plans = {}
    for folder in (tmp_path / "old", tmp_path / "new"):
        folder.mkdir()
        for split in ("train", "test"):
            rows = (f"{split} {number}\tx {number}\t{number % 2}\n" for number in range(40))
            (folder / f"{split}.tsv").write_text("a\tb\tlabel\n" + "".join(rows))
        reader = {"tables": {"quoting": False, "columns": columns}}
        files = {"folder": str(folder), "train": "train.tsv", "test": "test.tsv", "reader": reader}
        values = {"task": "sentence_pair", "data.source.files": files, "training.batch_size": 8}
        layers = (values_layer("preset", values),)
        digest = resolve(layers).splits().digest
        plans[folder.name] = StudyPlan(
            name="study", layers=layers, arms={"ce": {}}, baseline="ce", seeds=(1,), digest=digest
        )
    plan_file.store(plans["old"], folder := tmp_path / "study")
    ledger = Ledger(folder / "ledger.jsonl")
    (cell,) = plans["old"].grid().cells
    ledger.append(cell)
    ledger.append(TrialOutcome(id=cell.id, state="done", curve=((5, 0.75),), metrics=({"dev/f1": 0.75},)))
    with pytest.raises(RunError, match="must have something left to run, and all of it has ended"):
        estimate(plans["new"], folder, Driver())
    progress = runner.run(plans["new"], folder, Driver())
    assert (progress.done, progress.total) == (1, 1)
    assert list(Ledger(folder / "ledger.jsonl").specs) == [cell.id]


@pytest.mark.usefixtures("uri")
def test_what_earlier_calls_read_of_other_variants_stays_with_the_study(
    tmp_path: Path, layers: tuple[Layer, ...]
) -> None:
    """The report had no sizes and no warning of few items for the variants of an earlier call."""
    folder = tmp_path / "study"
    for names in ({"a": 40, "b": 60}, {"b": 60, "c": 80}):
        variants = {
            name: Variant(layers=(*layers, values_layer(name, {"data.source.synthetic.size": size})))
            for name, size in names.items()
        }
        plan = StudyPlan(name="study", layers=layers, variants=variants, arms={"ce": {}}, baseline="ce", seeds=(1,))
        digests: dict[str | None, str] = {name: plan.base(name).splits().digest for name in names}
        plan_file.store(plan := plan.with_digests(digests), folder)
        ledger = Ledger(folder / "ledger.jsonl")
        for cell in plan._missing(plan.grid().cells, ledger):
            ledger.append(cell)
            ledger.append(TrialOutcome(id=cell.id, state="done", curve=((5, 0.75),), metrics=({"dev/f1": 0.75},)))
        assert runner.run(plan, folder, Driver()).is_finished
    (run,) = read("study").query("kind == 'study'").to_dict("records")
    (artifact,) = tmp_path.glob("mlartifacts/*/artifacts/data.json")
    assert list(json.loads(artifact.read_text())) == ["a", "b", "c"]
    assert [line.partition(":")[0] for line in run["tags.few_items"].splitlines()] == ["a", "b", "c"]


@pytest.mark.ray
@pytest.mark.usefixtures("on_kept_ray", "uri")
def test_a_study_runs_what_is_missing_and_retries_what_failed(tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    arms = {"ce": {"loss": "cross_entropy"}, "focal": {"loss": "focal"}}
    digest = resolve(layers).splits().digest
    plan = StudyPlan(name="study", layers=layers, arms=arms, baseline="ce", seeds=(1, 2), digest=digest)
    done, failed, *missing = (cell.id for cell in plan.grid().cells)
    folder = tmp_path / "study"
    folder.mkdir()
    ledger = Ledger(folder / "ledger.jsonl")
    for cell in plan.grid().cells[:2]:
        ledger.append(cell)
    there = {"test/f1": 0.125, "test/collapsed": 1.0}
    earlier = TrialOutcome(id=done, state="done", curve=((5, 0.75),), metrics=({"dev/f1": 0.75},), test=there)
    ledger.append(earlier)
    ledger.append(TrialOutcome(id=failed, state="failed", failure="no memory"))

    progress = runner.run(plan, folder, Driver(num_cpus=2))
    assert (progress.done, progress.failed, progress.total) == (4, 0, 4)
    ledger = Ledger(folder / "ledger.jsonl")
    assert ledger.outcomes[done] == earlier
    assert {path.name for path in (folder / "trials").iterdir()} == {failed, *missing}

    rows = read("study").set_index("id")
    cells = rows[rows["kind"] == "cell"]
    there_are = sorted(zip(cells["arm"], cells["seed"], strict=True))
    assert there_are == [("ce", 1), ("ce", 2), ("focal", 1), ("focal", 2)]
    assert (cells["state"] == "done").all()
    assert rows.loc[done, "metrics.test/f1"] == 0.125
    assert rows.loc[done, "tags.collapsed"] == "true"
    assert rows.loc[failed, "metrics.test/f1"] == ledger.outcomes[failed].test["test/f1"]
    assert not rows.loc[failed, "tags.failure"]
    assert rows.loc["study", "tags.baseline"] == "ce"


STUDY = """
ARMS = {"ce": {}, "asymmetric": {"loss": "asymmetric"}}
BASELINE = "ce"
VARIANTS = {
    "fewer": {"data.imbalance": "drop_negative", "task.sentence_pair.link": "sigmoid"},
    "as read": {},
    "more": {"data.imbalance": "add_positive"},
}
"""


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("on_kept_ray", "uri")
def test_variants_are_run_on_their_own_data_and_what_does_not_go_together_is_left_out(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    two = STUDY.replace('    "more": {"data.imbalance": "add_positive"},\n', "")
    quick = {"data.source.synthetic.size": 200, "training.epochs": 1}
    (tmp_path / "mine.py").write_text(two)
    dice_ray.ablate("mine.py", settings=quick, seeds=1, show=TerminalScreen)
    said = capfd.readouterr().out
    assert "fewer: data: 40 train, 100 dev, 100 test records\n  train: 20 negatives and 20 positives by" in said
    assert "as read: data: 200 train, 100 dev, 100 test records" in said
    assert "left out: asymmetric on as read, because loss: must take the softmax link" in said

    before = (tmp_path / "dice_ray_runs/mine/ledger.jsonl").read_text()
    (tmp_path / "mine.py").write_text(STUDY)
    study = dice_ray.ablate("mine.py", settings=quick, seeds=1)
    after = (tmp_path / "dice_ray_runs/mine/ledger.jsonl").read_text()
    assert after.startswith(before), "a variant added later costs itself alone"
    assert (before.count('"end"'), after.count('"end"')) == (3, 4)

    cells = study.frame[study.frame["kind"] == "cell"]
    there_are = sorted(zip(cells["tags.variant"], cells["arm"], cells["params.data.imbalance"], strict=True))
    assert there_are == [
        ("as read", "ce", "none"),
        ("fewer", "asymmetric", "drop_negative"),
        ("fewer", "ce", "drop_negative"),
        ("more", "ce", "add_positive"),
    ]
    assert cells["metrics.test/f1"].notna().all()
    (file,) = tmp_path.rglob("artifacts/left_out.json")
    assert [(each["variant"], each["arm"]) for each in json.loads(file.read_text())] == [
        ("as read", "asymmetric"),
        ("more", "asymmetric"),
    ]
    assert sorted(dice_ray.evaluate("mine/fewer/asymmetric/1").scores.metrics)[0] == "accuracy"


DRAWN = """
from search_spaces.draws import draws

def space(trial):
    trial.suggest_float("training.lr", 1e-3, 4e-3, log=True)

ARMS = {"ce": {}, "dice": {"loss": "dice"}}
BASELINE = "ce"
SETTINGS = draws(space, 2)
"""


@pytest.mark.ray
@pytest.mark.usefixtures("on_kept_ray", "uri")
def test_drawn_settings_are_reported_as_one_comparison(tmp_path: Path) -> None:
    """The tag gets from the study's file to the report, or each setting is taken for a data set."""
    (tmp_path / "drawn.py").write_text(DRAWN)
    study = dice_ray.ablate("drawn.py", settings={"data.source.synthetic.size": 200, "training.epochs": 1}, seeds=1)
    cells = study.frame[study.frame["kind"] == "cell"]
    assert cells.groupby("tags.variant")["params.training.lr"].nunique().to_dict() == {"01": 1, "02": 1}
    assert cells["params.training.lr"].nunique() == 2
    assert study.frame.set_index("id").loc["drawn", "tags.variants_are"] == "settings"
    assert len(study.headlines) == 1
    assert "at_equal_budget" in {table.name for table in study.report().tables}
    with pytest.raises(RunError, match="compares arms over drawn settings, and has no single best one"):
        _ = study.best
