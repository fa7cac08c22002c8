"""How sweeps and studies end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dice_ray.api import ablate, tune
from dice_ray.api import plans as of_plans
from dice_ray.api.presets import layers_of
from dice_ray.errors import InputError, RunError
from dice_ray.run.driver import Driver, TrialCounts
from dice_ray.tracking.reader import read
from dice_ray.tracking.writer import Writer
from dice_ray.tuning import plan_file
from dice_ray.tuning.cells import Variant
from dice_ray.tuning.ledger import Ledger, TrialOutcome, TrialSpec
from dice_ray.tuning.recorder import Recorder
from dice_ray.tuning.study import StudyPlan
from dice_ray.tuning.sweep import SweepPlan


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
        of_plans._result(plan, tmp_path, counts, None)


def test_the_published_settings_that_a_sweep_starts_from_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook was not told of them, nor which of their values the space leaves out."""
    driven: list[tuple[SweepPlan, Driver]] = []
    monkeypatch.setattr("dice_ray.api.search.run_plan", lambda plan, driver, **_: driven.append((plan, driver)))
    tune("mrpc", warm_start="published")
    ((plan, driver),) = driven
    told, *points = driver.notes
    assert told.startswith(f"The first trials are the preset's own settings and {len(points)} published ones.")
    assert len(plan.points) == 1 + len(points)
    assert points[0].startswith("  1 cross_entropy: ")
    assert "training.lr=2e-05" in points[0]


@pytest.mark.usefixtures("uri")
def test_a_sweep_for_several_objectives_registers_no_model_and_stores_no_best_one(tmp_path: Path) -> None:
    """The model that was registered as the best one was that with the highest score of the task."""
    layers = tuple(layers_of("synthetic_pairs", {"tracking.text": True}))
    plan = SweepPlan(
        name="front",
        layers=layers,
        space="a:b",
        trials=1,
        sampler="nsga2",
        scheduler="none",
        objectives=("precision", "recall"),
    )
    with pytest.raises(InputError, match="several objectives must leave out --register"):
        of_plans.run_plan(plan, Driver(), is_dry=False, register="pairs")
    plan_file.store(plan, tmp_path)
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.append(TrialSpec(id="0001", params={}, seed=0))
    ledger.append(TrialOutcome(id="0001", state="done", curve=((1, 0.5),), metrics=({"dev/f1": 0.5},)))
    # Its trial has no folder, from which predictions could be made.
    assert of_plans._result(plan, tmp_path, TrialCounts(0, 1, 0, 0, 1, None, {}, 1.0), None).is_finished


@pytest.mark.usefixtures("uri")
def test_the_best_cell_of_a_study_may_be_of_a_variant_that_was_asked_for_earlier(tmp_path: Path) -> None:
    """A study that was extended by another variant ended with an error, and its outcome was not stored."""
    layers = tuple(layers_of("synthetic_pairs", ()))
    plans = [
        StudyPlan(
            name="grown",
            layers=layers,
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
    result = of_plans._result(plans[1], tmp_path, TrialCounts(0, 2, 0, 0, 2, None, {}, 1.0), None)
    assert result.is_finished


@pytest.mark.usefixtures("uri")
def test_the_outcome_of_a_sweep_is_stored_where_its_best_trial_has_no_checkpoint_to_register(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A larger --top may rerun trials whose checkpoints are gone."""
    monkeypatch.setenv("DICE_RAY_RUNS", str(tmp_path))
    folder = tmp_path / "sweep"
    plan = SweepPlan(name="sweep", layers=tuple(layers_of("synthetic_pairs", ())), space="a:b", trials=1)
    plan_file.store(plan, folder)
    ledger = Ledger(folder / "ledger.jsonl")
    ledger.append(TrialSpec(id="0001", params={"loss": "dice"}, seed=0))
    ledger.append(TrialOutcome(id="0001", state="done", curve=((1, 0.5),), metrics=({"dev/f1": 0.5},)))
    (folder / "trials/0001").mkdir(parents=True)
    (folder / "trials/0001/task.json").write_text('{"data": "", "classes": [], "facts": []}')
    with Writer("sweep") as writer:
        recorder = Recorder(plan, ledger, writer, plan.ids)
        recorder.open(())
        recorder.close()
    with pytest.raises(RunError, match="the checkpoint of sweep/0001 was deleted before its reruns"):
        of_plans._result(plan, folder, TrialCounts(0, 1, 0, 0, 1, 0.5, {}, 1.0), "model")
    assert read("sweep").set_index("id").loc["sweep", "metrics.dev/best_f1"] == 0.5


def planned(monkeypatch: pytest.MonkeyPatch, *study: str, **asked: Any) -> StudyPlan:
    """The plan of a study, which is not run."""
    plans: list[StudyPlan] = []
    monkeypatch.setattr("dice_ray.api.study.run_plan", lambda plan, *_, **__: plans.append(plan))
    ablate(*study, **asked)
    return plans[0]


def test_a_study_grows_by_the_arms_that_drawn_settings_were_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What such an arm draws was not stored: asked for later, its settings were other ones, and all was refused."""
    first = planned(monkeypatch, "loss_budget", "synthetic_pairs", num_settings=5)
    two = planned(monkeypatch, "loss_budget", "synthetic_pairs", arms=["cross_entropy", "dice"], num_settings=6)
    assert {cell.arm for cell in two.grid().cells} == {"cross_entropy", "dice"}
    whole = planned(monkeypatch, "loss_budget", "synthetic_pairs", num_settings=6)
    assert whole.changed(two.merged_with(first)) == []


def test_a_command_of_crossed_settings_has_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that a report offers asked for 30 of them, and more seeds."""
    plan = planned(monkeypatch, "tuning_budget", "synthetic_pairs", num_settings=8, crossed=True, seeds=3)
    assert "--settings 8 --crossed" in plan.command
