"""The bins of predicted probabilities, and the table of what calibration does to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from scipy import stats

from analysis.figures.reliability import _Reliability, _wilson, reliability
from analysis.frames import Findings
from analysis.tables.calibration import calibration
from tests.analysis.frames import study

MIXED = [*[(0.1, number < 2) for number in range(20)], *[(0.6, number < 12) for number in range(20)]]
"""The probability of the positive class of each item, and whether it is positive."""


def found(columns: str = "label_probability,calibrated_probability", num: int = 2, **metrics: float) -> Findings:
    """An arm with so many seeds of the same test items; calibration swaps the two probabilities."""
    rows = [f"id,tp,fp,fn,{columns}"]
    for number, (p, is_positive) in enumerate(MIXED):
        each = [value if is_positive else 1 - value for value in (p, 0.7 - p)][: columns.count(",") + 1]
        rows.append(f"{number},{int(is_positive)},0,0,{','.join(map(str, each))}")
    cells: list[dict[str, Any]] = [
        {"arm": "plain", "seed": seed, "metrics.test/f1": 0.5, "metrics.test/pr_auc": 0.7}
        | {f"metrics.test/{name}": value + seed / 10 for name, value in metrics.items()}
        for seed in range(num)
    ]
    made = study(cells)
    ids = made.frame.loc[made.frame["kind"] == "cell", "id"]
    files = dict.fromkeys(ids, "\n".join(rows))
    return replace(made, texts=lambda runs, file: files if file == "test/items.csv" else {})


def test_the_bins_of_an_arm() -> None:
    """Finds the probability of the label taken for that of the positive class, bins that divide equal probabilities,
    and intervals as narrow as if each seed had test items of its own.
    """
    (figure,) = reliability(found())
    assert isinstance(figure, _Reliability)
    ((before, after),) = figure.arms
    assert after
    assert before.name == "plain"
    low, high = zip(_wilson(0.1, 20), _wilson(0.6, 20), strict=True)
    for got, expected in ((before.x, (0.1, 0.6)), (before.y, (0.1, 0.6)), (before.low, low), (before.high, high)):
        assert got == pytest.approx(expected)
    assert (*after.x, *after.y) == pytest.approx((0.1, 0.6, 0.6, 0.1))
    assert figure.alt.endswith("in %: plain 0.00, calibrated 50.00.")
    assert "Hollow" in figure.caption
    assert "Hollow" not in next(iter(reliability(found("label_probability")))).caption


def test_only_a_positive_class_has_a_figure() -> None:
    """Finds the labels of three classes read as positives."""
    made = found()
    assert not [*reliability(replace(made, frame=made.frame.drop(columns="metrics.test/pr_auc")))]


def test_wilson() -> None:
    for num in (0, 8, 20):
        of_scipy = stats.binomtest(num, 20).proportion_ci(method="wilson")
        assert _wilson(num / 20, 20) == pytest.approx((of_scipy.low, of_scipy.high), abs=1e-4)
    # With 21 items, rounding put the end below the share: matplotlib drew no figure, and no report was written.
    assert all(_wilson(1.0, size)[1] == 1 for size in range(20, 60))


def test_the_table_has_what_is_stored() -> None:
    """Finds the values after calibration in the place of those before, and empty columns without one."""
    (table,) = calibration(found(brier=0.1, brier_calibrated=0.05, log_loss=0.3))
    assert table.shown.to_dict("records") == [
        {"arm": "plain", "log loss": "0.35", "Brier": "0.15", "Brier, calibrated": "0.1"}
    ]
    assert not calibration(found())
