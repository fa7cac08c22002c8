"""What MLflow shows of a whole study or sweep: names that it accepts for each arm, and the note with the verdict."""

from __future__ import annotations

import pytest
from mlflow.utils.validation import _validate_metric

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


def named(*arms: str, data: tuple[str, ...] = ("a",)) -> list[str]:
    """The names of the means of a study of the arms, each of which MLflow must accept."""
    cells = [cell | {"arm": arm, "tags.data": name} for arm in arms for name in data for cell in CELLS[:5]]
    found = metrics(study(cells))
    for name, value in found.items():
        _validate_metric(name, value, 0, 0)
    return sorted(name for name in found if name.startswith("test/f1/"))


def test_arms_that_differ_only_in_what_mlflow_refuses_have_metrics_of_their_own() -> None:
    """`gamma<1` and `gamma>1` were one metric, `gamma1`, with the score of one of them."""
    assert named("plain", "gamma<1", "gamma>1", "a/b", "dice, 1 hard") == [
        "test/f1/a/b",
        "test/f1/dice 1 hard",
        "test/f1/gamma 1. a3134ffa",
        "test/f1/gamma 1. a702e5b5",
        "test/f1/plain",
    ]
    assert "test/f1/gamma1" in named("plain", "gamma<1", "gamma1"), "a name without such characters stays"


def test_no_name_of_an_arm_or_data_set_makes_mlflow_refuse_the_outcome() -> None:
    """A study that had ended could not be stored, nor its report written, for an arm such as `lr//2`."""
    assert named("plain", "a/../b", "lr//2", "dice/", "<>") == [
        "test/f1/. fe314575",
        "test/f1/a b. 684c7f58",
        "test/f1/dice. 8c80b520",
        "test/f1/lr 2. 8ad3ade3",
        "test/f1/plain",
    ]
    assert len(named("plain", "..", ".", f"{'a/' * 200}b", f"{'a/' * 200}c")) == 5
    assert len(named("plain", "a" * 170, "a" * 169 + "b", data=("/home/" + "c" * 170, "/home/" + "d" * 170))) == 6


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


def test_a_parent_whose_runs_are_not_stored_yet_has_only_the_users_note() -> None:
    """It ended the command that had run the search."""
    assert note(sweep([]), "sweep") == ""
