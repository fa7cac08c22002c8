"""The best of a search again with other seeds: which, with which seeds, and how their mean ranks them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dice_ray.config.load import Layer
from dice_ray.tracking.schema import State
from dice_ray.tuning import ranking
from dice_ray.tuning.ledger import Ledger, TrialOutcome, TrialSpec, ledger_in
from dice_ray.tuning.sweep import SweepPlan


def note(ledger: Ledger, trial: TrialSpec, score: float | None, state: State = "done") -> None:
    ledger.append(trial)
    curve = () if score is None else ((5, score / 2), (10, score))
    ledger.append(TrialOutcome(id=trial.id, state=state, curve=curve, metrics=({},) * len(curve)))


@pytest.fixture
def plan(layers: tuple[Layer, ...]) -> SweepPlan:
    return SweepPlan(name="sweep", layers=layers, space="a:b", trials=6, seeds=2, top=3)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """The second trial is the best; the fifth runs what the second does; the sixth failed after a high score."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    scores = {1: 0.5, 2: 0.9, 3: 0.8, 4: 0.7, 5: 0.9, 6: 0.95}
    for number, score in scores.items():
        trial = TrialSpec(id=f"000{number}", params={"training.lr": 2 if number == 5 else number}, seed=0)
        note(ledger, trial, score, "failed" if number == 6 else "pruned" if number == 3 else "done")
    return ledger


def test_the_best_that_differ_run_again(plan: SweepPlan, ledger: Ledger) -> None:
    cells = plan.reruns(ledger)
    assert [cell.id for cell in cells] == [
        *("0002-1001", "0003-1001", "0004-1001"),
        *("0002-1002", "0003-1002", "0004-1002"),
    ]
    assert [(cell.params["training.lr"], cell.seed, cell.rerun_of) for cell in cells[:2]] == [
        (2, 1001, "0002"),
        (3, 1001, "0003"),
    ]
    assert len(plan.placeholder_ids()) == len(cells)
    assert len(plan.model_copy(update={"trials": 2}).placeholder_ids()) == 4, "two seeds for each of two trials"
    assert list(plan.model_copy(update={"seed": 4}).rerun_seeds()) == [1005, 1006]
    assert {plan.config(cell).training.seed for cell in cells} == {1001, 1002}


def test_a_rerun_changes_neither_what_runs_again_nor_what_the_search_knows(
    plan: SweepPlan, ledger: Ledger, tmp_path: Path
) -> None:
    before = ledger.searched()
    cells = plan.reruns(ledger)
    for cell in cells[:4]:
        note(ledger, cell, 0.99)
    assert plan.reruns(ledger) == cells
    assert ledger.searched() == before
    assert plan.remaining(ledger_in(tmp_path), None)[0] == 2


def test_the_mean_over_the_other_seeds_ranks(plan: SweepPlan, ledger: Ledger) -> None:
    assert [one.id for one in ranking.ranked_in(ledger)] == ["0002", "0005", "0003", "0004", "0001"]
    for cell, score in zip(plan.reruns(ledger), (0.6, 0.7, 0.65, 0.4, 0.6, 0.75), strict=True):
        note(ledger, cell, score)
    found = ranking.ranked_in(ledger)
    assert [one.id for one in found] == ["0004", "0003", "0002", "0005", "0001"]
    assert [one.mean for one in found] == pytest.approx([0.7, 0.65, 0.5, 0.9, 0.5])


def test_a_rerun_that_failed_is_no_seed_to_leave_out(plan: SweepPlan, ledger: Ledger) -> None:
    for cell in plan.reruns(ledger):
        failed = cell.id == "0002-1002"
        note(ledger, cell, None if failed else 0.9 if cell.rerun_of == "0002" else 0.5, "failed" if failed else "done")
    assert [one.id for one in ranking.ranked_in(ledger)] == ["0003", "0004", "0002", "0005", "0001"]


def test_a_sweep_grows_by_seeds(plan: SweepPlan) -> None:
    assert not plan.model_copy(update={"seeds": 3, "top": 5}).changed(plan)
    assert plan.model_copy(update={"seeds": 1, "trials": 9}).changed(plan)
    assert plan.model_copy(update={"seed": 1, "trials": 9}).changed(plan)


def test_what_is_missing_before_the_search_has_ended(plan: SweepPlan, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    assert plan.remaining(ledger_in(tmp_path), None)[0] == 12
    note(ledger, TrialSpec(id="0001", params={}, seed=0), 0.5)
    assert plan.remaining(ledger_in(tmp_path), None)[0] == 11
