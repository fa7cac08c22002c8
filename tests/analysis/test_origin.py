"""Where runs came from: the plan, the commands, and the facts that are known."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from analysis.frames import Findings
from analysis.origin import Origin, origins
from dice_ray.files import runs_folder
from tests.analysis.frames import study, sweep

TIMED = {"metrics.train/seconds": 1800.0}
CELLS = [
    {"arm": "plain", "seed": seed, "tags.data": "mrpc", "tags.version.torch": "2.13.0", **TIMED} for seed in (1, 2)
]


def test_the_plan_is_that_of_the_parent_and_the_facts_are_those_of_its_runs() -> None:
    def texts(runs: pd.DataFrame, file: str) -> dict[str, str]:
        return {str(id_): f"{file} of {id_}" for id_ in runs["id"]}

    (origin,) = origins(replace(study(CELLS), texts=texts))
    assert (origin.name, origin.plan, origin.file) == ("study", "plan.yaml of study", "study.plan.yaml")
    assert origin.facts == {
        "started": "2024-05-01 12:00 UTC",
        "training time": "1.00 hours in 2 runs",
        "data": "mrpc",
        "versions": "torch 2.13.0",
    }
    assert origins(study(CELLS[:1]))[0].facts["training time"] == "0.50 hours in 1 run"


@pytest.mark.parametrize("runs", ["", "/elsewhere/my runs", "s3://bucket/runs"])
def test_the_commands_put_the_plan_where_resume_looks_for_it(
    runs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They said `dice_ray_runs/` whatever DICE_RAY_RUNS was."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DICE_RAY_RUNS", f"{tmp_path}{runs}" if runs.startswith("/") else runs)
    *commands, resume, report = Origin("a study", "the plan", {}).commands
    assert (resume, report) == ("dice-ray resume 'a study'", "dice-ray report 'a study'")
    (tmp_path / "a_study.plan.yaml").write_text("the plan")
    subprocess.run(["sh", "-euc", "\n".join(commands)], check=True)
    assert (runs_folder() / "a study/plan.yaml").read_text() == "the plan"


def test_without_a_plan_there_is_no_command() -> None:
    assert Origin("a", None, {}).commands == ()
    (origin,) = origins(sweep([{"params.loss": "dice"}]))
    assert origin.plan is None
    assert Origin("../../elsewhere", "plan", {}).file == ".._.._elsewhere.plan.yaml", "MLflow holds any name"
    assert origins(Findings(pd.DataFrame({"id": ["a"], "kind": ["run"], "parent": [None]}))) == ()
