"""What `dice-ray submit` refuses before anything is asked; jobs themselves are in `tests/run/test_submit.py`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dice_ray import api
from dice_ray.cli.app import app, main
from dice_ray.run.folder import store_config
from dice_ray.run.submit import Job


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", "Missing argument 'COMMAND'"),
        ("-- report search", "a job must be one of train, tune, ablate, resume, got 'report'"),
        ("-- tune mrpc --trails 3", "No such option: --trails"),
        ("tune mrpc --trials 0", "Invalid value for '--trials'"),
        ("-- resume", "Missing argument 'name'"),
        ("-- tune mrpc --address head:6379", "leave out its own --address"),
    ],
)
def test_a_command_that_cannot_be_submitted_is_a_wrong_usage(words: str, told: str) -> None:
    """Also its options, which would otherwise be found wrong on the cluster, where nobody looks."""
    result = CliRunner().invoke(app, ["submit", *words.split()])
    assert result.exit_code == 2
    assert told in " ".join(result.output.replace("│", " ").split())


def test_debug_and_verbose_behind_a_submitted_command_are_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were taken out of the command, so that the job printed no traceback and logged what it was to print."""
    submitted: list[list[str]] = []

    def submit(command: list[str], run: str, runs: Path, *given: object, **reserves: Any) -> Job:
        submitted.append(command)
        return Job(run, runs / run, "pending", 0.0, None)

    monkeypatch.setattr("dice_ray.run.submit.submit", submit)
    monkeypatch.delenv("DICE_RAY_VERBOSE", raising=False)
    monkeypatch.setenv("DICE_RAY_RUNS", str(tmp_path))
    words = ["train", "synthetic_pairs", "-v", "--name", "lone", "--debug"]
    for before in (["submit"], ["submit", "--"], ["--debug", "submit", "--runs", str(tmp_path), "--"]):
        monkeypatch.setattr("sys.argv", ["dice-ray", *before, *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 0
    assert [[each for each in command if each in ("-v", "--debug")] for command in submitted] == [["-v", "--debug"]] * 3
    assert "DICE_RAY_VERBOSE" not in os.environ


LONE = ["train", "synthetic_pairs", "--name", "lone"]


@pytest.mark.parametrize(
    ("words", "reserved"),
    [
        ([*LONE, "--gpus-per-worker", "1"], (1, 1)),
        ([*LONE, "--set", "launch.gpus=auto", "--gpus-per-worker", "1", "--set", "launch.threads=3"], (3, 1)),
        ([*LONE, "--workers", "4", "--gpus-per-worker", "1"], (0, 0)),
        (["resume", "lone"], (2, 0.5)),
        (["resume", "elsewhere"], (0, 0)),
    ],
)
def test_a_job_reserves_what_its_run_takes(
    words: list[str], reserved: tuple[int, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--gpus-per-worker 1` reserved no GPU, and a resumed run no CPU either: it trained on the head."""
    submitted: list[tuple[int, float]] = []

    def submit(command: list[str], run: str, runs: Path, *given: object, **reserves: Any) -> Job:
        submitted.append((reserves["num_cpus"], reserves["num_gpus"]))
        return Job(run, runs / run, "pending", 0.0, None)

    monkeypatch.setattr("dice_ray.run.submit.submit", submit)
    (tmp_path / "runs/lone").mkdir(parents=True)
    store_config(api.validate("synthetic_pairs", ["launch.threads=2", "launch.gpus=0.5"]), tmp_path / "runs/lone")
    result = CliRunner().invoke(app, ["submit", "--runs", str(tmp_path / "runs"), "--", *words])
    assert result.exit_code == 0, result.output
    assert submitted == [reserved]
