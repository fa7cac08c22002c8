"""How sweeps and studies end."""

from __future__ import annotations

from pathlib import Path

import pytest

from dice_ray.api import planned
from dice_ray.api.presets import layers_of
from dice_ray.errors import RunError
from dice_ray.run.driver import TrialCounts
from dice_ray.tuning import plan_file
from dice_ray.tuning.ledger import Ledger, TrialOutcome
from dice_ray.tuning.study_plan import StudyPlan, Variant


def test_a_study_whose_asked_cells_all_failed_names_the_last_reason_in_one_line(tmp_path: Path) -> None:
    """The first end in the ledger may be that of an earlier call."""
    layers = tuple(layers_of("synthetic_pairs", ()))
    plan = StudyPlan(name="failed", layers=layers, arms={"ce": {}}, baseline="ce", seeds=(1, 2))
    ledger = Ledger(tmp_path / "ledger.jsonl")
    for cell, failure in zip(plan.grid().cells, ("an earlier one", "ValueError: one\nof two"), strict=True):
        ledger.append(cell)
        ledger.append(TrialOutcome(id=cell.id, state="failed", failure=failure))
    counts = TrialCounts(0, 0, 1, 0, 1, None, {}, 1.0)
    with pytest.raises(
        RunError, match=r"^all 1 trials of .* failed, the last one because ValueError: one of two \(out"
    ):
        planned._result(plan, tmp_path, counts, None)


@pytest.mark.usefixtures("uri")
def test_the_best_cell_of_a_study_may_be_of_a_variant_that_was_asked_for_earlier(tmp_path: Path) -> None:
    """A study that was extended by another variant ended with an error, and its outcome was not stored."""
    layers = tuple(layers_of("synthetic_pairs", ()))
    plans = [
        StudyPlan(
            name="grown",
            layers=(),
            variants={name: Variant(layers=layers, digest=name) for name in names},
            arms={"ce": {}},
            baseline="ce",
            seeds=(1,),
        )
        for names in (("a", "b"), ("b", "c"))
    ]
    for plan in plans:
        plan_file.store(plan, tmp_path)
    ledger = Ledger(tmp_path / "ledger.jsonl")
    for cell in (*plans[0].grid().cells, *plans[1].grid().cells[1:]):
        ledger.append(cell)
        score = 0.9 if cell.variant == "a" else 0.5
        ledger.append(TrialOutcome(id=cell.id, state="done", curve=((1, score),), metrics=({"dev/f1": score},)))
    result = planned._result(plans[1], tmp_path, TrialCounts(0, 2, 0, 0, 2, None, {}, 1.0), None)
    assert result.is_finished
