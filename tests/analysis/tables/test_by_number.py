"""The tables at equal tuning budget: the numbers of the record, the verdict's budget first, shares that sum to 1."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.budget import at_budget
from analysis.frames import Findings
from analysis.statistics.variance import deviations
from analysis.tables.by_number import at_equal_budget, variance_components
from analysis.verdict.equal_budget import equal_budget
from tests.analysis.cells import drawn_settings, study
from tests.analysis.test_budget import DEV, TEST

DRAWN = Findings(drawn_settings(DEV, TEST))


def test_the_budget_of_the_verdict_is_first_and_the_others_are_folded() -> None:
    """A reader who sees the best of 1 first takes it for the verdict."""
    (table,), (made,) = at_equal_budget(DRAWN), at_budget(DRAWN)
    assert list(zip(table.data["best_of"], table.data["arm"], strict=True)) == [
        (budget, arm) for budget in (3, 1, 4) for arm in ("dice", "cross_entropy")
    ]
    assert table.folds == {2: "At other budgets"}
    dice = made.arms[0].differences[3]
    row = table.data.iloc[0]
    assert list(row[["difference", "difference_low", "difference_high", "holm_p"]]) == [
        dice.interval.mean,
        dice.interval.low,
        dice.interval.high,
        dice.p,
    ]
    assert row["mean"] == made.arms[0].scores[2].mean
    assert not any(number == 0 for number, _ in table.marks), "significant, so not grey"


def test_the_constant_predictor_is_the_last_row_of_each_budget() -> None:
    """Without it, a reader does not see that no arm is better."""
    (table,) = at_equal_budget(Findings(DRAWN.frame.assign(**{"metrics.test/constant_f1": 0.546})))
    assert table.shown["arm"].tolist() == ["dice", "cross_entropy", "constant predictor"] * 3
    assert table.shown["test/f1 (%)"][2] == "54.60"
    assert table.folds == {3: "At other budgets"}


def test_what_is_not_significant_is_grey() -> None:
    """Finds a difference that looks like a finding and is none."""
    grey = {(0, "minus cross_entropy"), (0, "Holm p")}
    (table,) = at_equal_budget(Findings(drawn_settings(DEV[..., :4], TEST[..., :4])))
    assert grey <= set(table.marks)
    (table,) = at_equal_budget(Findings(drawn_settings(DEV[:, :5], TEST[:, :5])))
    assert table.data["holm_p"][0] < 0.05
    assert grey <= set(table.marks), "five settings are too few to call a difference significant"
    (table,) = at_equal_budget(Findings(drawn_settings(DEV[:, :1], TEST[:, :1])))
    assert "of the 1 setting (without replacement)" in table.notes[0]


def test_the_deviations_are_those_of_the_scores() -> None:
    """Finds a deviation beside another source, and the bound of an interval in its place."""
    (table,) = variance_components(DRAWN)
    expected = deviations(TEST)
    assert table.data["source"].tolist() == list(expected)
    assert table.data["standard_deviation"].tolist() == pytest.approx([each.mean for each in expected.values()])


def test_the_settings_are_named_by_what_they_vary() -> None:
    """Finds a loss, a seed or a shared value named as the cause, and an unnamed learning rate."""
    frame = drawn_settings(DEV, TEST)
    draw = frame["tags.variant"].astype("float64")
    own: dict[str, Any] = {
        "loss": frame["arm"],
        "training.seed": frame["seed"],
        "training.epochs": 3,
        "training.lr": draw / 1000,
    }
    frame = frame.assign(**{f"params.{path}": value for path, value in own.items()})
    (table,) = variance_components(Findings(frame))
    by_source = table.shown.set_index("source")["what varies"]
    assert by_source["settings"] == "the settings (training.lr), over all arms"
    assert "settings (training.lr) " in " ".join(equal_budget(at_budget(Findings(frame))[0]).sentences)
    several = Findings(frame.assign(**{"params.training.warmup": draw / 10}))
    assert "(training.lr, training.warmup)" in variance_components(several)[0].text()


def test_all_other_studies_have_no_such_table() -> None:
    other = Findings(study({"cross_entropy": [0.5], "dice": [0.6]}))
    assert at_equal_budget(other) == variance_components(other) == []
