"""The tags of a run's environment: git in the working directory, versions, hardware, user."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import pytest

from dice_ray.tracking import record, schema
from dice_ray.tracking.store import quiet


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
    with mlflow.start_run() as run:
        assert record.active_run_tag() == {schema.PARENT: run.info.run_id}
        monkeypatch.setattr(record, "store_uri", lambda uri=None: uri or "http://elsewhere")
        assert record.active_run_tag() == {}
