"""The progress of a study: the best arm is the one with the highest mean, not the one with the highest cell."""

from __future__ import annotations

from pathlib import Path

from dice_ray.tuning.ledger import Ledger, TrialOutcome, TrialSpec
from dice_ray.tuning.progress import best_arm


def ended(ledger: Ledger, arm: str, seed: int, score: float | None, variant: str | None = None) -> str:
    """A cell that has ended; without a score it failed."""
    spec = TrialSpec(id=f"{arm}{seed}{variant}", params={}, seed=seed, arm=arm, variant=variant)
    ledger.append(spec)
    curve = () if score is None else ((1, score),)
    ledger.append(TrialOutcome(id=spec.id, state="done" if curve else "failed", curve=curve))
    return spec.id


def test_the_best_arm_is_that_of_the_highest_mean_of_the_asked_cells(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    cells = (("dice", 1, 0.5), ("dice", 2, 0.75), ("focal", 1, 0.875), ("focal", 2, 0.125), ("focal", 3, None))
    ids = [ended(ledger, *cell) for cell in cells]
    ended(ledger, "of_an_earlier_call", 1, 1.0)
    assert best_arm(ledger, [*ids, "not started"]) == (0.625, "dice", 2)
    assert best_arm(ledger, ids, controls={"dice"}) == (0.5, "focal", 2)
    assert best_arm(ledger, ids[4:]) is None


def test_scores_on_different_data_are_not_compared(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ids = [ended(ledger, "dice", 1, 0.5, variant) for variant in ("mrpc", "qqp")]
    assert best_arm(ledger, ids[:1]) == (0.5, "dice", 1)
    assert best_arm(ledger, ids) is None


def test_a_failed_cell_does_not_count(tmp_path: Path) -> None:
    """A cell that failed after an evaluation made its arm the best one."""
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ids = [ended(ledger, "plain", 1, 0.5), "dice1"]
    ledger.append(TrialSpec(id="dice1", params={}, seed=1, arm="dice"))
    ledger.append(TrialOutcome(id="dice1", state="failed", curve=((1, 0.9),)))
    assert best_arm(ledger, ids) == (0.5, "plain", 1)
