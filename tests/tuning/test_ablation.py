"""A study on a real Ray: the cells that the ledger lacks, each once, scored on test."""

from __future__ import annotations

from pathlib import Path

import pytest

from dice_ray.config.load import Layer
from dice_ray.tracking.reader import read
from dice_ray.tuning import ablation
from dice_ray.tuning.ledger import Ended, Ledger
from dice_ray.tuning.plan import StudyPlan


@pytest.mark.ray
def test_a_study_runs_what_is_missing_and_retries_what_failed(tmp_path: Path, layers: tuple[Layer, ...]) -> None:
    arms = {"ce": {"loss": "cross_entropy"}, "focal": {"loss": "focal"}}
    plan = StudyPlan(name="study", layers=layers, arms=arms, baseline="ce", seeds=(1, 2))
    done, failed, *missing = (cell.id for cell in plan.cells())
    folder = tmp_path / "study"
    folder.mkdir()
    ledger = Ledger(folder / "ledger.jsonl")
    for cell in plan.cells()[:2]:
        ledger.append(cell)
    there = {"test/f1": 0.125, "test/collapsed": 1.0}
    earlier = Ended(id=done, state="done", curve=((5, 0.75),), metrics=({"dev/f1": 0.75},), test=there)
    ledger.append(earlier)
    ledger.append(Ended(id=failed, state="failed", failure="no memory"))

    progress = ablation.run(plan, folder, num_cpus=2)
    assert (progress.done, progress.failed, progress.total) == (4, 0, 4)
    ledger = Ledger(folder / "ledger.jsonl")
    assert ledger.ended[done] == earlier
    assert {path.name for path in (folder / "trials").iterdir()} == {failed, *missing}

    rows = read("study").set_index("id")
    cells = rows[rows["kind"] == "cell"]
    there_are = sorted(zip(cells["arm"], cells["seed"], strict=True))
    assert there_are == [("ce", 1), ("ce", 2), ("focal", 1), ("focal", 2)]
    assert (cells["state"] == "done").all()
    assert rows.loc[done, "metrics.test/f1"] == 0.125
    assert rows.loc[done, "tags.collapsed"] == "true"
    assert rows.loc[failed, "metrics.test/f1"] == ledger.ended[failed].test["test/f1"]
    assert not rows.loc[failed, "tags.failure"]
    assert rows.loc["study", "tags.baseline"] == "ce"
