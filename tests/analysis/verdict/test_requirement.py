"""A requirement of CI is met, not met, or cannot be judged: 0, 1, 3."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.verdict.requirement import ruling
from dice_ray.errors import InputError
from tests.analysis.frames import study

NOISE = (0.0, 0.002, -0.002, 0.001, -0.001)


def cells(gain: float, num: int = 5, data: str = "mrpc") -> list[dict[str, Any]]:
    return [
        {"arm": arm, "seed": seed, "metrics.test/f1": 0.6 + seed / 100 + of * (gain + NOISE[seed]), "tags.data": data}
        for arm, of in (("plain", 0), ("new", 1))
        for seed in range(num)
    ]


@pytest.mark.parametrize(
    ("requirement", "gain", "num", "status"),
    [
        ("better", 0.05, 5, 0),
        ("better", 0.0, 5, 1),
        ("better", -0.05, 5, 1),
        ("better", 0.05, 3, 3),
        ("different", -0.05, 5, 0),
        ("different", 0.0, 5, 1),
        ("different", 0.05, 3, 3),
        ("not-worse:1", 0.0, 5, 0),
        ("not-worse:1", -0.05, 5, 1),
        ("not-worse:10", -0.05, 5, 0),
        ("not-worse:0.01", 0.0, 5, 1),
        ("not-worse:1", 0.0, 3, 3),
    ],
)
def test_the_status_is_that_of_the_numbers(requirement: str, gain: float, num: int, status: int) -> None:
    """Finds a gate that passes for runs that show nothing, and a margin that is not in points."""
    made = ruling(study(cells(gain, num)), requirement)
    assert made.status == status
    assert made.sentences[0].startswith(requirement.partition(":")[0])


def test_a_lower_cost_is_no_worse() -> None:
    """Finds a difference that is read as a gain where lower is better."""
    costs = [cell | {"metrics.test/cost": 100 - 100 * cell["metrics.test/f1"]} for cell in cells(0.05)]
    assert ruling(study(costs, metric="test/cost"), "not-worse:1").status == 0
    assert ruling(study(costs, metric="test/cost"), "better").status == 0
    lost = [cell | {"metrics.test/cost": 100 * cell["metrics.test/f1"]} for cell in cells(0.005)]
    found = study(lost, metric="test/cost")  # higher by .5, and no percent
    assert [ruling(found, f"not-worse:{margin}").status for margin in (1, 0.1)] == [0, 1]


def test_an_arm_without_a_shared_seed_says_nothing() -> None:
    """Finds a gate that judges the tested arms alone."""
    alone = [cell | {"arm": "late", "seed": 7} for cell in cells(0.05, 1) if cell["arm"] == "new"]
    made = ruling(study([*cells(0.05), *alone]), "not-worse:1")
    assert (made.status, "Not tested: late" in made.sentences[0]) == (3, True)


def test_an_arm_that_is_ahead_by_the_same_with_each_seed_is_not_tested() -> None:
    """Finds a gate that takes what no test can show for a difference that is not there."""
    same = [
        {"arm": arm, "seed": seed, "metrics.test/f1": 0.5 + of / 8, "tags.data": "mrpc"}
        for of, arm in enumerate(("plain", "new"))
        for seed in range(5)
    ]
    assert ruling(study(same), "different").status == 3


@pytest.mark.parametrize(("num", "status"), [(0, 0), (3, 3), (8, 1)])
def test_an_arm_that_collapses_more_often_is_not_shown_to_be_no_worse(num: int, status: int) -> None:
    """A gate let eight of twenty collapsed runs pass: differences are of the other runs."""
    runs = [
        {
            "arm": arm,
            "seed": seed,
            "metrics.test/f1": 0.0 if (has_collapsed := of and seed < num) else 0.6 + of * NOISE[seed % 5],
            "metrics.test/collapsed": float(has_collapsed),
            "tags.data": "mrpc",
        }
        for of, arm in enumerate(("plain", "new"))
        for seed in range(20)
    ]
    made = ruling(study(runs), "not-worse:1")
    assert made.status == status
    assert (f"new ({num} of 20)" in made.sentences[0]) == (num > 0)


@pytest.mark.parametrize(("gain", "status"), [(0.0, 3), (-0.05, 1)])
def test_an_arm_with_a_failed_run_is_not_shown_to_be_no_worse(gain: float, status: int) -> None:
    """A gate let an arm pass by the runs that were left of it."""
    failed = [{"arm": "new", "seed": 5, "state": "failed", "tags.data": "mrpc"}]
    made = ruling(study([*cells(gain), *failed]), "not-worse:1")
    assert (made.status, "new (1)" in made.sentences[0]) == (status, status == 3)


def test_an_arm_that_always_failed_is_not_left_out_where_thresholds_are_tuned() -> None:
    """The gate passed by the other arms."""
    tuned = [cell | {"metrics.test/f1_tuned": cell["metrics.test/f1"]} for cell in cells(0.0)]
    failed = [{"arm": "lost", "seed": seed, "state": "failed", "tags.data": "mrpc"} for seed in range(5)]
    found = study([*tuned, *failed])
    found.frame.loc[found.frame["kind"] == "study", "tags.threshold"] = "tuned"
    made = ruling(found, "not-worse:1")
    assert (made.status, made.sentences) == (3, ("not-worse: cannot say. Not tested: lost.",))


def test_each_arm_must_be_no_worse() -> None:
    """Finds a gate that looks at the first arm alone."""
    third = [cell | {"arm": "third"} for cell in cells(-0.05) if cell["arm"] == "new"]
    made = ruling(study([*cells(0.0), *third]), "not-worse:1")
    assert (made.status, "third" in made.sentences[0], "new" in made.sentences[0]) == (1, True, False)


def test_a_study_that_has_not_reached_its_last_look_cannot_say() -> None:
    """Finds a gate that fails where more seeds were declared and may show the difference."""
    findings = study(cells(0.0))
    findings.frame.loc[0, "tags.looks"] = "5 10"
    assert ruling(findings, "different").status == 3


def test_a_declared_margin_is_taken() -> None:
    """Finds another margin than the study's own where none is given."""
    findings = study(cells(-0.02))
    findings.frame.loc[0, "tags.care"] = "5"
    assert ruling(findings, "not-worse").status == 0


def test_each_place_must_meet_it() -> None:
    """Finds a gate that looks at the first data set alone."""
    both = [*cells(0.05, data="a"), *cells(-0.05, data="b")]
    made = ruling(study(both), "better")
    assert (made.status, [each.partition(":")[0] for each in made.sentences]) == (1, ["On a", "On b"])
    few = [*cells(0.05, num=3, data="a"), *cells(-0.05, data="b")]
    assert ruling(study(few), "better").status == 1


def test_a_control_that_failed_says_nothing() -> None:
    """Finds a gate that passes though the same loss makes such a difference."""
    control = [each | {"tags.control": "new", "arm": "control"} for each in cells(0.05) if each["arm"] == "new"]
    made = ruling(study([*cells(0.05), *control]), "better")
    assert made.status == 3


@pytest.mark.parametrize("text", ["bettr", "better:1", "not-worse:0", "not-worse:x", "not-worse:-1", ""])
def test_another_requirement_is_refused(text: str) -> None:
    """Finds a slip that is taken for a requirement that is met."""
    with pytest.raises(InputError, match="must be better, different"):
        ruling(study(cells(0.0)), text)


def test_a_margin_is_needed_where_none_is_declared() -> None:
    """Finds a margin of 0, by which not-worse is better."""
    with pytest.raises(InputError, match="must have a margin"):
        ruling(study(cells(0.0)), "not-worse")
