"""The records of scores by imbalance ratio and by tuning budget, and the table of ratios."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from analysis.budget import at_budget
from analysis.comparison import CONSTANT, comparisons
from analysis.figures.by_number import (
    _ScoreByNumber,
    _side_by_side,
    gain_by_ratio,
    score_by_budget,
    score_by_ratio,
    tversky_alpha,
)
from analysis.frames import Findings
from analysis.ratios import PR_AUC, ByRatio
from analysis.report import report
from analysis.statistics.intervals import t_interval
from analysis.tables.by_number import scores_by_ratio
from tests.analysis.cells import drawn_settings
from tests.analysis.frames import study
from tests.analysis.test_budget import DEV, NUM, TEST

RATIO, ALPHA = "params.data.imbalance.ratio.negatives", "params.loss.tversky.alpha"
AT_HALF, AT_TUNED = "at the threshold of .5", "at the threshold tuned on dev"


def cell(arm: str, seed: int, f1: float, **columns: Any) -> dict[str, Any]:
    return {"arm": arm, "seed": seed, "metrics.test/f1": f1, **columns}


def at(ratio: int, of_cell: dict[str, Any]) -> dict[str, Any]:
    """The cell on the variant of this ratio."""
    return of_cell | {"tags.variant": f"1:{ratio}", RATIO: ratio, "metrics.test/threshold": 0.4}


def test_gain_is_paired_by_seed_on_the_same_training_set() -> None:
    cells = [
        *(at(ratio, cell("plain", seed, 0.5 + seed / 10)) for ratio in (1, 10) for seed in (1, 2)),
        *(at(ratio, cell("dice", seed, 0.49 + seed / 9 + ratio / 100)) for ratio in (1, 10) for seed in (1, 2)),
        at(10, cell("dice", 3, 0.99)),
        cell("dice", 1, 0.9),
    ]
    (figure,) = gain_by_ratio(study(cells))
    assert isinstance(figure, _ScoreByNumber)
    assert [panel.name for panel in figure.panels] == [AT_HALF]
    (line,) = figure.panels[0].lines
    assert (line.name, line.x) == ("dice", (1.0, 10.0))
    assert line.y == pytest.approx((0.5 / 30, 0.5 / 30 + 0.09))
    assert not any(map(math.isnan, (*line.low, *line.high)))
    assert figure.alt.endswith(": dice from +1.67 to +10.67."), "in the format of the tables"
    easier = [each | {"tags.data": "b", "metrics.test/f1": each["metrics.test/f1"] / 2} for each in cells]
    first, second = gain_by_ratio(study([*(each | {"tags.data": "a"} for each in cells), *easier]))
    assert (first.name, first.title) == ("gain_by_ratio_1", "Gain against imbalance on a")
    assert isinstance(first, _ScoreByNumber)
    assert isinstance(second, _ScoreByNumber)
    assert first.panels[0].lines[0].y == pytest.approx(line.y)
    assert second.panels[0].lines[0].y == pytest.approx([y / 2 for y in line.y])
    of_table = [arm.difference.interval for each in comparisons(study(cells)) for arm in each.arms if arm.difference]
    assert (line.low, line.high) == (
        tuple(each.low for each in of_table if each.num > 1),
        tuple(each.high for each in of_table if each.num > 1),
    ), "the figure and the table of a ratio show the same interval"
    assert [*gain_by_ratio(study([each for each in cells if each.get(RATIO) != 1]))] == []
    assert [*gain_by_ratio(study([cell("plain", 1, 0.5)]))] == []
    assert [*gain_by_ratio(study([each for each in cells if each["arm"] == "plain"]))] == []


def test_the_gain_at_tuned_thresholds_is_over_the_baseline_at_its_own() -> None:
    """Finds a gain over the baseline at .5, which a threshold alone would give."""
    (figure,) = gain_by_ratio(study(CELLS))
    assert isinstance(figure, _ScoreByNumber)
    half, tuned = figure.panels
    assert (half.name, tuned.name) == (AT_HALF, AT_TUNED)
    assert [line.name for line in tuned.lines] == ["dice", "late"]
    assert tuned.lines[0].y == pytest.approx(half.lines[0].y)


def two_classes(arm: str, seed: int, f1: float) -> dict[str, Any]:
    """A cell with a tuned threshold, PR-AUC and the constant predictor."""
    other = {"f1_tuned": f1 + 0.1, "pr_auc": f1 + 0.2, "constant_f1": 0.3}
    return cell(arm, seed, f1, **{f"metrics.test/{name}": value for name, value in other.items()})


SEEDS = range(1, 7)
CELLS = [
    *(at(ratio, two_classes("plain", seed, 0.5 - ratio / 1000 + seed / 200)) for ratio in (1, 30) for seed in SEEDS),
    *(at(ratio, two_classes("dice", seed, 0.5 + ratio / 1000 + seed / 199)) for ratio in (30, 1) for seed in SEEDS),
    at(30, two_classes("late", 1, 0.4)),
]


def test_the_score_is_shown_at_half_at_the_tuned_threshold_and_as_pr_auc() -> None:
    """Finds a panel with the scores of another one, or with other intervals than the tables."""
    (figure,) = score_by_ratio(study(CELLS))
    assert isinstance(figure, _ScoreByNumber)
    assert (figure.name, figure.title) == ("score_by_ratio", "Score against imbalance")
    assert [panel.name for panel in figure.panels] == [AT_HALF, AT_TUNED, PR_AUC]
    for panel, more in zip(figure.panels, (0, 0.1, 0.2), strict=True):
        plain, dice, late = panel.lines[:3]
        assert [line.name for line in panel.lines[3:]] == ([CONSTANT] if panel.name == AT_HALF else [])
        assert [line.name for line in (plain, dice, late)] == ["plain", "dice", "late"]
        expected = [t_interval([0.5 + more - ratio / 1000 + seed / 200 for seed in SEEDS]) for ratio in (1, 30)]
        assert plain.x == (1.0, 30.0)
        assert plain.y == pytest.approx([each.mean for each in expected])
        assert plain.low == pytest.approx([each.low for each in expected])
        assert plain.high == pytest.approx([each.high for each in expected])
        assert late.x == (30.0,)
        assert late.y == pytest.approx((0.4 + more,))
        assert math.isnan(late.low[0])
    assert figure.panels[0].lines[3].y == (0.3, 0.3)


def test_tasks_without_a_threshold_have_one_panel_and_one_ratio_is_no_figure() -> None:
    cells = [at(ratio, cell(arm, seed, 0.5)) for ratio in (1, 30) for arm in ("plain", "dice") for seed in (1, 2)]
    without = [{name: value for name, value in each.items() if "threshold" not in name} for each in cells]
    (figure,) = score_by_ratio(study(without))
    assert isinstance(figure, _ScoreByNumber)
    assert [panel.name for panel in figure.panels] == ["test/f1"]
    assert not [*score_by_ratio(study(cells[:4]))]
    assert not scores_by_ratio(study(cells[:4]))


MCC = [
    {"arm": arm, "seed": seed, "metrics.test/mcc": mean + seed / 1000, "tags.variant": f"1:{ratio}", RATIO: ratio}
    | {"metrics.test/threshold": 0.4}
    for arm, of_arm in {"plain": {1: 0.3, 100: 0.2}, "dice": {1: 0.35, 100: -0.02}, "focal": {1: 0.1, 100: 0.1}}.items()
    for ratio, mean in of_arm.items()
    for seed in SEEDS
]


def test_significantly_worse_is_not_marked_as_significantly_better_is() -> None:
    """Finds an arm below the baseline in bold, which marks the better ones."""
    scores = {"plain": 0.5, "dice": 0.6, "focal": 0.4, "late": 0.4}
    of_arm = {
        arm: [cell(arm, seed, mean * (1 + seed / 100)) for seed in ((1,) if arm == "late" else SEEDS)]
        for arm, mean in scores.items()
    }
    (table,) = scores_by_ratio(study(at(ratio, each) for ratio in (1, 30) for of in of_arm.values() for each in of))
    shown = table.shown.set_index("arm")
    for ratio in ("1:1", "1:30"):
        assert {name: text.split(" ", 1)[0] for name, text in shown[ratio].items()}["focal"] == "41.40"
        assert [name for name, text in shown[ratio].items() if text.endswith("] (worse)")] == ["focal"]
    dice = table.shown["arm"].tolist().index("dice")
    assert table.marks == {(dice, "1:1"): "bold", (dice, "1:30"): "bold"}
    marked = dict(zip(table.data["arm"], table.data["significantly"], strict=True))
    assert (marked["dice"], marked["focal"]) == ("better", "worse")
    assert pd.isna(marked["plain"])
    assert pd.isna(marked["late"])


def test_what_this_test_set_shows_and_new_data_do_not_is_not_marked() -> None:
    """Bold said `significantly better` above a verdict that said the opposite."""
    by_ratio = {}
    for ratio in (1.0, 30.0):
        (compared,) = comparisons(
            study(
                cell(arm, seed, f1 * (1 + seed / 100)) for arm, f1 in (("plain", 0.5), ("dice", 0.6)) for seed in SEEDS
            )
        )
        arms = [replace(arm, new_data=arm.difference and arm.difference.untested) for arm in compared.arms]
        assert any(arm.difference and arm.difference.is_significant for arm in arms)
        by_ratio[ratio] = replace(compared, arms=tuple(arms))
    (reading,) = ByRatio("", "test/f1", "plain", by_ratio).readings
    assert not reading.significantly


def test_a_negative_score_has_its_cell_and_its_point() -> None:
    """Finds a negative score left out as if there were none."""
    findings = study(MCC, metric="test/mcc")
    (table,), (figure,) = scores_by_ratio(findings), score_by_ratio(findings)
    shown = {row["arm"]: row for row in table.shown.to_dict("records")}
    assert shown["dice"]["1:100"].startswith("-0.0165 [")
    assert shown["dice"]["score"] == "test/mcc, at the threshold of .5"
    assert isinstance(figure, _ScoreByNumber)
    (dice,) = (line for line in figure.panels[0].lines if line.name == "dice")
    assert dice.y == pytest.approx((0.3535, -0.0165))
    assert "<title>dice, 100 negatives: -0.0165 [" in figure.svg()


def test_gains_are_in_percent_only_if_the_scores_of_all_ratios_are() -> None:
    """Finds a gain of 5.00 beside a table that shows +0.05, because each difference is small."""
    (of_f1,), (of_mcc,) = gain_by_ratio(study(CELLS)), gain_by_ratio(study(MCC, metric="test/mcc"))
    assert "<title>dice, 30 negatives: +6." in of_f1.svg()
    assert "<!-- gain in test/f1 (%) -->" in of_f1.svg()
    assert "<title>dice, 1 negatives: +0.05</title>" in of_mcc.svg()
    assert "<!-- gain in test/mcc -->" in of_mcc.svg()


def test_without_a_score_there_is_neither_table_nor_figure() -> None:
    """Finds a report that is not written while no run has ended, or fails at a place where all runs failed."""
    frame = study(MCC, metric="test/mcc").frame.assign(**{"tags.data": "a"})
    failed = frame.assign(**{"state": "failed", "tags.data": "b"})
    cells = failed["kind"] == "cell"
    for make in (scores_by_ratio, score_by_ratio, gain_by_ratio):
        assert [*make(Findings(failed))] == []
        (part,) = make(Findings(pd.concat([frame, failed[cells]], ignore_index=True)))
        assert part.title.endswith(" on a")
    assert report(Findings(failed)).tables


def test_scores_at_one_ratio_only_are_drawn() -> None:
    """Finds a figure that asks for the distance of two ratios while only the runs of one have ended."""
    cells = [cell | {"metrics.test/mcc": math.nan} if cell[RATIO] == 100 else cell for cell in MCC]
    for make in (score_by_ratio, gain_by_ratio):
        (figure,) = make(study(cells, metric="test/mcc"))
        assert "<title>dice, 1 negatives: " in figure.svg()
    assert _side_by_side([0.0], ["plain", "dice"])["dice"] > 0


def test_arms_stand_side_by_side_within_their_ratio() -> None:
    """Finds marks nearer to another ratio than to their own, so that a reader takes an arm for one of that ratio."""
    names = [f"{number}" for number in range(7)]
    offsets = [_side_by_side([0, 1, 3], names)[name] for name in names]
    assert offsets == sorted(offsets)
    assert offsets[3] == 0
    assert offsets[-1] - offsets[0] == pytest.approx(0.4)


def test_the_table_has_a_row_for_each_arm_and_score_and_marks_what_differs() -> None:
    (table,) = scores_by_ratio(study(CELLS))
    of_half = ["test/f1, at the threshold of .5 (%)"] * 4
    assert table.shown["score"].tolist()[:4] == of_half
    assert table.shown["arm"].tolist()[:4] == ["plain", "dice", "late", CONSTANT]
    assert table.shown["1:30"].tolist()[1].startswith("54.76 [")
    assert table.shown["1:1"].tolist()[2:4] == ["", "30.00"]
    of_table = {
        (arm.name, float(each.cells[RATIO].iloc[0]))
        for each in comparisons(study(CELLS))
        for arm in each.arms
        if arm.difference and arm.difference.is_significant
    }
    assert of_table == {("dice", 1.0), ("dice", 30.0)}
    assert set(table.marks) == {(1, f"1:{ratio}") for ratio in (1, 30)}, "only the declared threshold is tested"
    (late,) = table.data[(table.data["arm"] == "late") & (table.data["score"] == PR_AUC)].to_dict("records")
    assert (late["negatives"], late["mean"], late["seeds"]) == (30.0, pytest.approx(0.6), 1)


def test_a_score_that_needs_no_threshold_is_one_row_of_its_own_name() -> None:
    """Finds areas under curves "at the threshold of .5", and the same areas again in rows that nothing tests."""
    made = study(
        [
            at(ratio, {"arm": arm, "seed": seed, "metrics.test/pr_auc": 0.5 + (arm == "dice") / 5 + seed / 100})
            for ratio in (1, 10)
            for arm in ("plain", "dice")
            for seed in range(6)
        ],
        metric="test/pr_auc",
    )
    (table,) = scores_by_ratio(made)
    assert table.shown["score"].tolist() == ["test/pr_auc (%)"] * 2
    assert not any("threshold" in note or "not tested" in note for note in table.notes)
    ((panel,),) = (figure.panels for figure in gain_by_ratio(made) if isinstance(figure, _ScoreByNumber))
    assert panel.name == "test/pr_auc"


def test_sets_that_share_a_ratio_are_not_drawn_by_ratio() -> None:
    """The last of them took the place of the others without a word."""
    cells = [at(ratio, cell(arm, seed, 0.5)) for ratio in (1, 10) for arm in ("plain", "dice") for seed in (1, 2)]
    other = [each | {"tags.variant": "1:10 oversampled"} for each in cells if each[RATIO] == 10]
    assert [*score_by_ratio(study(cells))]
    assert not [*score_by_ratio(study([*cells, *other]))]
    assert not scores_by_ratio(study([*cells, *other]))


def test_each_arm_has_its_line_by_the_budget() -> None:
    """Finds lines that are shifted by one setting, bounds of another arm, and arms that learnt nothing among others."""
    frame = drawn_settings(DEV, TEST)
    (figure,), (made,) = score_by_budget(Findings(frame)), at_budget(Findings(frame))
    assert isinstance(figure, _ScoreByNumber)
    assert (figure.baseline, figure.marked, figure.is_first) == ("cross_entropy", made.budget, True)
    for line, arm in zip(figure.panels[0].lines, made.arms, strict=True):
        assert (line.name, line.x) == (arm.name, tuple(range(1, NUM + 1)))
        assert line.y == tuple(score.mean for score in arm.scores)
        assert line.low[:4] == tuple(score.low for score in arm.scores[:4])
    assert figure.alt.startswith("Score by tuning budget. dice from 67.47 to ")
    assert "constant" not in figure.alt + figure.caption
    assert [*score_by_budget(study([cell("plain", 1, 0.5)]))] == []
    (figure,) = score_by_budget(Findings(frame.assign(**{"metrics.test/constant_f1": 0.25})))
    assert figure.alt.endswith(", constant predictor from 25.00 to 25.00.")
    assert figure.caption.endswith("and the constant predictor.")


def tversky(alpha: float, seed: int, scope: str, precision: float) -> dict[str, Any]:
    at = {ALPHA: alpha, "params.loss.tversky.scope": scope}
    scores = {"metrics.test/precision": precision, "metrics.test/recall": 1 - precision}
    return cell(f"{scope} {alpha}", seed, precision / 2, **scores, **at)


def test_precision_and_recall_by_alpha_a_panel_a_scope() -> None:
    cells = [tversky(alpha, seed, "batch", alpha + seed / 100) for alpha in (0.1, 0.5, 0.9) for seed in (1, 2, 3)]
    few = [tversky(alpha, 1, "example", 0.5) for alpha in (0.1, 0.9)]
    (figure,) = tversky_alpha(study([*cells, *few, cell("plain", 1, 0.5)]))
    twins = [each | {"arm": f"{each['arm']} again", "metrics.test/precision": 0.9} for each in cells]
    assert [*tversky_alpha(study([*cells, *twins]))] == [], "two arms of one alpha: the second replaced the first"
    beta = "params.loss.tversky.beta"
    of_paper = [each | {beta: 1 - each[ALPHA]} for each in cells]
    assert [*tversky_alpha(study([*of_paper, *(each | {beta: 0.2} for each in twins)]))] == [figure]
    assert isinstance(figure, _ScoreByNumber)
    (panel,) = figure.panels
    assert panel.name == "scope: batch"
    precision, recall, f1 = panel.lines
    assert [line.name for line in panel.lines] == ["precision", "recall", "f1"]
    assert precision.x == (0.1, 0.5, 0.9)
    assert precision.y == pytest.approx((0.12, 0.52, 0.92))
    assert recall.y == pytest.approx((0.88, 0.48, 0.08))
    assert (f1.low[0], f1.high[0]) == pytest.approx(
        (t_interval([0.055, 0.06, 0.065]).low, t_interval([0.055, 0.06, 0.065]).high)
    )
    assert [*tversky_alpha(study(few))] == []
    running = [{name: value for name, value in each.items() if "metrics" not in name} for each in cells]
    assert [*tversky_alpha(study(running))] == [], "no run has a score yet: its words ended in an IndexError"
    own = [each | {"tags.test_per_train": "0.5"} for each in cells]
    (figure,) = tversky_alpha(study(own))
    assert isinstance(figure, _ScoreByNumber)
    assert figure.panels[0].lines[0].high[0] == pytest.approx(t_interval([0.11, 0.12, 0.13], 0.5).high)
    of_mcc = [{name.replace("f1", "mcc"): value for name, value in each.items()} for each in cells]
    (figure,) = tversky_alpha(study(of_mcc, metric="test/mcc"))
    assert isinstance(figure, _ScoreByNumber)
    assert figure.panels[0].lines[2].low[0] == pytest.approx(t_interval([0.055, 0.06, 0.065], limits=(-1, 1)).low)
