"""Where runs came from: the plan, the commands, and the facts that are known."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from analysis.frames import Findings
from analysis.origin import Origin, origins
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


def test_without_a_plan_there_is_no_command() -> None:
    assert Origin("a", None, {}).commands == ()
    (origin,) = origins(sweep([{"params.loss": "dice"}]))
    assert origin.plan is None
    assert Origin("../../elsewhere", "plan", {}).file == ".._.._elsewhere.plan.yaml", "MLflow holds any name"
    assert origins(Findings(pd.DataFrame({"id": ["a"], "kind": ["run"], "parent": [None]}))) == ()
