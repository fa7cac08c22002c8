"""The record of the forest plot: the numbers of the table, the largest difference first."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

from analysis.comparison import comparisons
from analysis.figures.forest import Forest, forests
from analysis.tables.study import comparison
from tests.analysis.frames import study

SCORES = {"plain": [0.50, 0.51, 0.52, 0.50, 0.51], "dice": [0.7, 0.711, 0.72, 0.7, 0.711], "a<b": [0.51, 0.5, 0.5] * 2}


def cells() -> list[dict[str, Any]]:
    return [
        {"arm": arm, "seed": seed, "metrics.test/f1": score, "metrics.test/f1_tuned": 0.5}
        for arm, scores in SCORES.items()
        for seed, score in enumerate(scores[:5])
    ]


def test_each_arm_has_its_difference_once_with_the_intervals_of_the_table() -> None:
    """Finds rows of the tuned threshold, another order or other intervals than the table's, and a wrong grey."""
    findings = study(cells())
    (figure,) = forests(findings)
    assert isinstance(figure, Forest)
    arms = {arm.name: arm for arm in comparisons(findings)[0].arms}
    assert [(row.arm, row.is_different) for row in figure.rows] == [("dice", True), ("a<b", False)]
    for row in figure.rows:
        difference = arms[row.arm].difference
        assert difference is not None
        assert (row.seeds, row.by_seed) == (difference.interval, arms[row.arm].by_seed)
    assert not forests(study(cells()[:5]))


def test_the_picture_has_its_numbers_as_text() -> None:
    """Finds a picture without alternative text, and a name on hover that becomes markup."""
    (figure,) = forests(study(cells()))
    assert figure.alt.startswith("Difference to plain: dice +20.04 [")
    first, second = re.findall(r"<title>([^<]*)</title>", figure.svg())
    assert first.startswith("dice +20.04 [")
    assert second.startswith("a&lt;b -0.40 [")
    assert "<!-- test/f1 minus plain (%) -->" in figure.svg()
    assert isinstance(figure, Forest)
    of_one_seed = replace(figure.rows[0], new_data=replace(figure.rows[0].seeds, low=math.nan, high=math.nan))
    assert "new data" not in replace(figure, rows=(of_one_seed,)).alt


def test_scores_that_are_not_shares_are_written_as_in_the_table() -> None:
    """Finds differences in percent beside a table without percent: each difference is small, but one score negative."""
    means = {"plain": 0.3, "dice": 0.35, "focal": -0.01}
    of_mcc = [
        {"arm": arm, "seed": seed, "metrics.test/mcc": mean * (1 + seed % 3 / 100)}
        for arm, mean in means.items()
        for seed in range(5)
    ]
    findings = study(of_mcc, metric="test/mcc")
    (figure,), (table,) = forests(findings), comparison(findings)
    shown = dict(zip(table.shown["arm"], table.shown["minus plain"], strict=True))
    assert shown["dice"].startswith("+0.05")
    assert f"dice {shown['dice']}" in figure.alt
    assert "<!-- test/mcc minus plain -->" in figure.svg()
