"""What tables and sentences say of the decision that is fitted on dev."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from analysis.decisions import DecisionFacts
from analysis.figures.differences import forests
from analysis.frames import Findings
from analysis.tables.study import comparison
from analysis.verdict import verdicts
from tests.analysis.cells import study

DECISION = "params.task.text_classification.decision"
NOISE = np.array([0.0, 0.011, -0.012, 0.008, 0.005, -0.009])


def made(
    tuned: dict[str, float], plain: dict[str, float], columns: dict[str, Any], metric: str = "f1", scale: float = 1.0
) -> Findings:
    """Six seeds of each arm around these means; without any column of a decision unless it is given."""
    draw = np.random.default_rng(0)
    of = {arm: (mean + scale * (NOISE + draw.normal(0, 0.002, 6))).tolist() for arm, mean in plain.items()}
    frame = study(of, f"test/{metric}", "cross_entropy", task="text_classification")
    values = [mean + scale * (NOISE + draw.normal(0, 0.002, 6)) for mean in tuned.values()]
    frame[f"metrics.test/{metric}_tuned"] = np.concatenate([[np.nan], *values])
    return Findings(frame.assign(**{"tags.threshold": "tuned"} | columns), lambda runs, file: {})


def sentences(found: Findings) -> tuple[str, ...]:
    (verdict,) = verdicts(found)
    return verdict.sentences


COST = {DECISION: "cost", f"{DECISION}.cost.false_positive": 1.0, f"{DECISION}.cost.false_negative": 20.0}


def test_the_verdict_says_what_the_decision_gains() -> None:
    """Finds a cost in percent, one that rises called a gain, and a threshold of another arm."""
    columns = COST | {"metrics.test/threshold": [np.nan, *[0.1, 0.14] * 3, *[0.3] * 6]}
    costs = {"cross_entropy": 31.0, "dice": 31.2}
    found = made(costs, {"cross_entropy": 74.2, "dice": 60.0}, columns, "cost", 20)
    headline, use, only, *_ = sentences(found)
    assert headline.startswith(
        "No arm is shown to be better than cross_entropy; worse: dice (tuned threshold) higher by"
    )
    assert re.fullmatch(
        r"Use cross_entropy with the threshold \.12: cost 3\d(\.\d+)? per 1,000 records \(at \.5: 74\.\d+\)\.", use
    )
    assert only == "dice is better at .5 only: a tuned threshold gives cross_entropy the same."
    untuned = {"cross_entropy": 74.2, "dice": 60.0, "dice, prior bias": 60.0}
    _, _, only, *_ = sentences(made(costs | {"dice, prior bias": 31.1}, untuned, COST, "cost", 20))
    assert only.startswith("dice; dice, prior bias are better untuned only")
    better = made({"cross_entropy": 31.0, "dice": 19.0}, dict.fromkeys(costs, 74.2), columns, "cost", 20)
    headline, use, *rest = sentences(better)
    assert re.match(r"Better than cross_entropy on .*: dice \(tuned threshold\) lower by 1[12](\.\d+)? \[", headline)
    assert use.startswith("Use dice with the threshold .3: cost 19")
    assert "--threshold" not in use
    used = better.frame["metrics.test/threshold"].where(better.frame["seed"] > 1, 0.5)
    _, use, *_ = sentences(Findings(better.frame.assign(**{"metrics.test/threshold_used": used}), better.texts))
    assert use.endswith("; for 2 of 6 runs, `predict` uses it only with `--threshold tuned`: dev shows no clear gain.")
    assert not any("at .5 only" in sentence for sentence in rest)
    assert comparison(better)[0].shown.columns[1] == "test/cost (per 1,000 records)"


def test_the_smallest_difference_that_matters_is_in_units_of_the_cost() -> None:
    """Finds a care of 5 per 1,000 records read as 5 percent."""
    found = made({"cross_entropy": 31.0, "dice": 31.5}, {"cross_entropy": 74.0, "dice": 74.0}, COST, "cost", 20)
    frame = found.frame.assign(**{"tags.care": "5"})
    assert sentences(Findings(frame, found.texts))[0] == "No arm matters: all are equal to cross_entropy within 5."


def test_an_arm_that_a_threshold_does_not_replace_is_not_called_better_at_half_only() -> None:
    """The plain score of the arm is above the tuned one of the baseline, and no test tells their tuned ones apart."""
    noisy = {"metrics.test/threshold": 0.3}
    found = made({"cross_entropy": 0.6, "dice": 0.599}, {"cross_entropy": 0.5, "dice": 0.7}, noisy)
    assert sentences(found)[0].startswith("No arm is shown to be better than cross_entropy")
    assert not any("only" in sentence for sentence in sentences(found))
    found = made({"cross_entropy": 0.7, "dice": 0.7}, {"cross_entropy": 0.5, "dice": 0.5}, noisy)
    assert not any("only" in sentence for sentence in sentences(found)), "it is not better at .5"


def test_a_task_without_a_threshold_has_a_decision() -> None:
    """Tags, classes and queries were said to be scored at a threshold."""
    found = made({"cross_entropy": 0.7, "dice": 0.697}, {"cross_entropy": 0.5, "dice": 0.6}, {}, "macro_f1")
    _, use, only, *_ = sentences(found)
    assert re.fullmatch(
        r"Use cross_entropy with its decision fitted on dev: macro_f1 \d\d\.\d\d % \(untuned: 5\d\.\d\d\)\.", use
    )
    assert only == "dice is better untuned only: a fitted decision gives cross_entropy the same."
    (table,), (forest,), (verdict,) = comparison(found), forests(found), verdicts(found)
    assert {*table.data["arm"]} >= {"dice", "dice (tuned decision)"}
    assert verdict.facts["metric"] == "test/macro_f1 with the decision fitted on dev"
    text = " ".join([table.text(), forest.caption, *table.tips.values(), *table.folds.values()])
    assert "Scores with the untuned decision are shown and not compared." in text
    assert "at the threshold" not in text


TARGETS = [
    ("recall", "at_least", 0.9, "precision", "recall", "recall (%), at least 90"),
    ("precision", "at_least", 0.8, "recall", "precision", "precision (%), at least 80"),
    ("rate", "at_most", 0.02, "recall", "flagged", "flagged (%), at most 2"),
]


@pytest.mark.parametrize(("kind", "limit", "value", "metric", "promised", "heading"), TARGETS)
def test_a_target_and_how_often_it_is_missed(
    kind: str, limit: str, value: float, metric: str, promised: str, heading: str
) -> None:
    """Finds the metric that is compared shown twice, and runs that miss the target left unsaid."""
    columns: dict[str, Any] = {DECISION: kind, f"{DECISION}.{kind}.{limit}": value, "metrics.test/threshold": 0.2}
    columns |= {f"metrics.test/{promised}_tuned": value + 0.001}
    found = made({"cross_entropy": 0.6, "dice": 0.4}, {"cross_entropy": 0.5, "dice": 0.5}, columns, metric)
    found.frame["metrics.test/target_missed"] = (found.frame["seed"] < 2).fillna(value=False).astype(float)
    (table,) = comparison(found)
    shown = {row["arm"]: row for row in table.shown.to_dict("records")}
    tuned, plain = shown["dice (tuned threshold)"], shown["dice"]
    assert (tuned[heading], tuned["missed in"]) == (f"{100 * (value + 0.001):.2f}", "2 of 6")
    assert (plain[heading], plain["missed in"]) == ("", "")
    words = f"{promised.replace('flagged', 'share flagged')} of {limit.replace('_', ' ')} {100 * value:g} %"
    assert f"{words} missed in 2 of 6 runs." in sentences(found)[1]
    (without,) = comparison(Findings(found.frame.drop(columns=DECISION), found.texts))
    assert "missed in" not in without.shown
    assert "missed" not in without.data


def test_cells_of_different_costs_have_none() -> None:
    """Finds the cost of one arm charged to another."""
    frame = made({"cross_entropy": 0.6, "dice": 0.4}, {"cross_entropy": 0.5, "dice": 0.5}, COST).frame
    assert DecisionFacts.of(frame, "test/f1").costs == (1.0, 20.0)
    frame.loc[3, f"{DECISION}.cost.false_negative"] = 5.0
    assert np.isnan(DecisionFacts.of(frame, "test/f1").costs or ()).any()
