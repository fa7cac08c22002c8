"""What MLflow shows of a whole study or sweep: names that it accepts for each arm, and the note with the verdict."""

from __future__ import annotations

import pytest

from analysis.outcome import metrics, note
from tests.analysis.frames import study, sweep

CELLS = [
    {"arm": arm, "seed": seed, "metrics.test/f1": 0.5 + added + seed / 1000 * (1 + added)}
    for arm, added in (("plain", 0.0), ("dice, 1 hard", 0.1))
    for seed in range(1, 6)
]


def test_each_arm_of_a_study_is_a_metric_with_its_interval() -> None:
    found, arms = metrics(study(CELLS)), ("plain", "dice 1 hard")
    assert set(found) == {f"test/f1{bound}/{arm}" for bound in ("", "_low", "_high") for arm in arms}
    assert found["test/f1/plain"] == pytest.approx(0.503)
    assert found["test/f1_low/plain"] < 0.503 < found["test/f1_high/plain"]
    on_two = metrics(study([cell | {"tags.data": data} for cell in CELLS for data in ("a", "b")]))
    means = {name for name in on_two if name.startswith("test/f1/")}
    assert means == {f"test/f1/{data}/{arm}" for data in ("a", "b") for arm in arms}


def test_the_best_trial_of_a_sweep_is_a_metric_as_it_is_of_a_trial() -> None:
    trials = [{"metrics.dev/best_f1": score, "tags.loss": "dice"} for score in (0.25, 0.75)]
    assert metrics(sweep(trials)) == {"dev/best_f1": 0.75}


def test_the_note_has_the_users_own_before_the_verdict() -> None:
    made = study(CELLS)
    headline = note(made, "study").splitlines()[0]
    assert headline.startswith("**Winner: dice, 1 hard")
    assert "\n- All 10 runs finished." in note(made, "study")
    made.frame.loc[made.frame["id"] == "study", "tags.note"] = "mine"
    assert note(made, "study").split("\n\n")[:2] == ["mine", headline]
