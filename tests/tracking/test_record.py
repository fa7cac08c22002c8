"""What one run stores: the same metrics, tags and artifacts for a run alone and for a trial or cell."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dice_ray.settings import Branch
from dice_ray.tracking import record, schema
from dice_ray.tracking.reader import curves, read, texts
from dice_ray.tracking.record import _NUM_STEP_POINTS, RunRecord
from dice_ray.tracking.store import quiet, quiet_client
from dice_ray.tracking.writer import Writer

CURVE = [(5, 0.25), (10, 0.5), (15, 0.5), (20, 0.4)]
METRICS = [{"dev/f1": score, "dev/recall": step / 100, "dev/collapsed": float(step != 10)} for step, score in CURVE]
"""The evaluation at step 10 is the only one that has not collapsed."""
BEST = (10, METRICS[1])


class Source(Branch):
    name = "files"
    folder: str


def row(uri: str) -> dict[str, Any]:
    """What is stored of the only run, without what is missing."""
    return {str(name): value for name, value in read("alone", uri).iloc[0].dropna().items()}


def test_a_run_alone_from_start_to_end(uri: str) -> None:
    with Writer("alone", uri) as writer:
        record = RunRecord(writer, "mine")
        record.opened("mine", {"loss": "dice"}, {schema.KIND: "run"}, "loss: dice\n")
        record.data("a task", "abc", Source(folder="data"))
        for (step, _), metrics in zip(CURVE, METRICS, strict=True):
            record.evaluated(step, metrics)
        record.ended("FINISHED", objective="dev/f1", best=BEST)
    stored = row(uri)
    assert (stored["id"], stored["name"], stored["kind"], stored["status"]) == ("mine", "mine", "run", "FINISHED")
    assert stored["params.loss"] == "dice"
    assert {name: value for name, value in stored.items() if name.startswith("metrics.")} == {
        "metrics.dev/f1": 0.4,
        "metrics.dev/recall": 0.2,
        "metrics.dev/collapsed": 1.0,
        "metrics.dev/best_f1": 0.5,
    }
    assert stored["tags.collapsed"] == "false"
    points = curves("alone", uri)
    assert points[points["metric"] == "dev/best_f1"]["step"].tolist() == [10], "stored at the best evaluation"
    assert texts(read("alone", uri), schema.CONFIG_FILE, uri) == {"mine": "loss: dice\n"}
    client = quiet_client(uri)
    experiment = client.get_experiment_by_name("alone")
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.inputs is not None
    (used,) = run.inputs.dataset_inputs
    assert (used.dataset.name, used.dataset.digest, used.dataset.source_type) == ("a task", "abc", "files")
    assert used.dataset.source == '{"folder": "data"}'


def test_a_metric_that_never_changes_is_a_tag_that_is_read_as_a_metric(uri: str) -> None:
    with Writer("alone", uri) as writer:
        record = RunRecord(writer, "mine")
        record.opened("mine", {}, {schema.KIND: "run"})
        for step in (5, 10):
            record.evaluated(step, {"dev/f1": step / 100, "dev/constant_f1": 0.125, "dev/threshold_support": 12.0})
    client = quiet_client(uri)
    experiment = client.get_experiment_by_name("alone")
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.data.metrics == {"dev/f1": 0.1}
    stored = row(uri)
    assert (stored["metrics.dev/constant_f1"], stored["metrics.dev/threshold_support"]) == (0.125, 12.0)
    assert not [name for name in stored if "tags.constant" in name]


def test_a_cell_stores_kept_metrics_its_test_scores_and_artifacts(uri: str) -> None:
    with Writer("alone", uri) as writer:
        writer.open("study", name="study", params={}, tags={})
        record = RunRecord(writer, "c1")
        record.opened("ce seed 1", {}, {schema.KIND: "cell", schema.ARM: "ce"}, parent="study")
        record.ended(
            "FINISHED",
            objective="dev/f1",
            best=BEST,
            kept=["dev/recall", "dev/unknown"],
            test={"test/f1": 0.3, "test/collapsed": 1.0},
            tags={schema.STATE: "done"},
            texts={f"test/{schema.ITEMS_FILE}": "id,tp,fp,fn\n"},
        )
    runs = read("alone", uri).set_index("id", drop=False)
    cell = {str(name): value for name, value in runs.loc["c1"].dropna().items()}
    assert (cell["parent"], cell["arm"], cell["state"]) == ("study", "ce", "done")
    assert {name: value for name, value in cell.items() if name.startswith("metrics.")} == {
        "metrics.dev/best_f1": 0.5,
        "metrics.dev/kept_recall": 0.1,
        "metrics.test/f1": 0.3,
        "metrics.test/collapsed": 1.0,
    }
    assert cell["tags.collapsed"] == "true", "on test, where the cell is scored"
    steps = curves("alone", uri).set_index("metric")["step"]
    assert steps["test/f1"] == steps["dev/best_f1"] == 10, "MLflow's latest value is that of the highest step"
    assert texts(runs, "test/items.csv", uri) == {"c1": "id,tp,fp,fn\n"}
    assert texts(runs, schema.CONFIG_FILE, uri) == {}, "its settings could not be resolved"


@pytest.mark.parametrize("tags", [None, {schema.STATE: "failed", schema.FAILURE: "no such file"}])
def test_a_run_that_fails_before_an_evaluation(uri: str, tags: dict[str, str] | None) -> None:
    with Writer("alone", uri) as writer:
        record = RunRecord(writer, "mine")
        record.opened("mine", {}, {})
        record.ended("FAILED", objective="dev/f1", best=None, tags=tags)
    stored = row(uri)
    assert stored["status"] == "FAILED"
    assert stored.get("tags.failure") == (tags and "no such file")
    assert not [name for name in stored if name.startswith("metrics.") or name == "tags.collapsed"]


@pytest.mark.parametrize(("num_steps", "expected"), [(10, 10), (200, 200), (1000, 200), (1999, 199)])
def test_steps_are_thinned(uri: str, num_steps: int, expected: int) -> None:
    values = {"loss": 0.5, "lr": 0.1, "padding": 0.2, "tokens_per_second": 9.0, "epoch": 1.0}
    with Writer("alone", uri) as writer:
        record = RunRecord(writer, "mine")
        record.opened("mine", {}, {})
        for step in range(1, num_steps + 1):
            record.steps(step, num_steps, values)
    points = curves("alone", uri)
    assert set(points["metric"]) == {"step/loss", "step/lr", "step/padding", "step/tokens_per_second"}
    steps = points[points["metric"] == "step/loss"]["step"].tolist()
    assert len(steps) == expected <= _NUM_STEP_POINTS
    assert steps[0] == max(1, -(-num_steps // _NUM_STEP_POINTS))


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_commit_of_the_working_directory_and_whether_it_was_changed(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    assert schema.GIT_COMMIT not in record.environment_tags()  # there is no commit yet
    (tmp_path / "preset.yaml").write_text("loss: dice")
    git(tmp_path, "add", "preset.yaml")
    git(tmp_path, "commit", "--quiet", "-m", "first")
    (tmp_path / "dice_ray_runs").mkdir()
    (tmp_path / "dice_ray_runs/left.txt").write_text("untracked files are no change")
    clean = record.environment_tags()
    assert clean[schema.GIT_COMMIT] == git(tmp_path, "rev-parse", "HEAD")
    assert clean[schema.GIT_DIRTY] == "false"
    (tmp_path / "preset.yaml").write_text("loss: focal")
    assert record.environment_tags()[schema.GIT_DIRTY] == "true"


def test_without_git_there_are_no_git_tags(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not {schema.GIT_COMMIT, schema.GIT_DIRTY} & record.environment_tags().keys()
    monkeypatch.setenv("PATH", "/nowhere")
    assert not {schema.GIT_COMMIT, schema.GIT_DIRTY} & record.environment_tags().keys()


def test_versions_hardware_and_user(monkeypatch: pytest.MonkeyPatch) -> None:
    import ray
    import torch

    monkeypatch.setenv("LOGNAME", "me")
    tags = record.environment_tags()
    packages = {"dice_ray", "torch", "transformers", "ray", "optuna", "mlflow", "python"}
    assert {name for name in tags if name.startswith("dice_ray.version.")} == {
        f"dice_ray.version.{package}" for package in packages
    }
    assert tags["dice_ray.version.torch"] == torch.__version__
    assert tags["dice_ray.version.ray"] == ray.__version__
    assert tags["dice_ray.version.python"] == platform.python_version()
    assert tags[schema.CORES] == str(os.cpu_count())
    assert tags[schema.CPU]
    assert (tags[schema.GPU] == "none") == (torch.cuda.device_count() == 0)
    assert tags[schema.USER] == "me"


def test_a_run_nests_below_the_active_one_of_the_same_store(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet()
    import mlflow

    assert record.active_run_tag() == {}
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    with mlflow.start_run(experiment_id="0") as run:
        assert record.active_run_tag() == {schema.PARENT: run.info.run_id}
        monkeypatch.setattr(record, "store_uri", lambda uri=None: uri or "http://elsewhere")
        assert record.active_run_tag() == {}
