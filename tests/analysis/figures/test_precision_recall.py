"""Precision and recall of a study as records, and its curves from the stored probabilities of test items."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas
from sklearn.metrics import precision_recall_curve

from analysis.figures.precision_recall import (
    _NUM_ARMS,
    _RECALLS,
    _interpolated_precision,
    _Plane,
    _PrecisionRecallCurves,
    planes,
    pr_curves,
)
from analysis.frames import Findings
from tests.analysis.frames import study


@pytest.mark.parametrize("num_values", [3, 10, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_the_curve_is_the_upper_edge_of_that_of_scikit_learn(seed: int, num_values: int) -> None:
    """Finds equal probabilities told apart by their order, and recalls that rounding moves to the next item."""
    draw = np.random.default_rng(seed)
    positives_N = np.arange(200) < 20
    probabilities_N = (draw.integers(0, num_values, 200) + num_values * positives_N / 3).round() / (2 * num_values)
    precision_T, recall_T, _ = precision_recall_curve(positives_N, probabilities_N)
    # Its last point, recall 0 with precision 1, is no threshold.
    wanted = [precision_T[:-1][recall_T[:-1] >= recall - 1e-9].max() for recall in _RECALLS]
    assert _interpolated_precision(probabilities_N, positives_N) == pytest.approx(wanted)


def items(of_label: Mapping[str, float], positives: str) -> str:
    """`items.csv` of items with these probabilities of their own label, decided at the threshold of .5."""
    rows = []
    for id_, probability in of_label.items():
        is_right, is_positive = probability > 0.5, id_ in positives
        counts = (is_right and is_positive, not is_right and not is_positive, not is_right and is_positive)
        rows.append(",".join([id_, *(str(int(count)) for count in counts), str(probability)]))
    return "\n".join(["id,tp,fp,fn,label_probability", *rows])


def found(of_arms: Mapping[str, list[dict[str, float]]], **columns: Any) -> Findings:
    cells = [
        {"arm": arm, "seed": seed, "metrics.test/f1": 0.5, "metrics.test/pr_auc": 0.7 + seed / 10} | columns
        for arm, of_seeds in of_arms.items()
        for seed, _ in enumerate(of_seeds)
    ]
    findings = study(cells)
    of_cells = [of for of_seeds in of_arms.values() for of in of_seeds]
    ids = findings.frame.loc[findings.frame["kind"] == "cell", "id"]
    files = {id_: items(of, "ab") for id_, of in zip(ids, of_cells, strict=True)}
    return replace(findings, texts=lambda runs, file: files if file == "test/items.csv" else {})


PERFECT = {"a": 0.9, "b": 0.8, "c": 0.95, "d": 0.6}
ONE_WRONG = {"a": 0.9, "b": 0.2, "c": 0.3, "d": 0.6}
"""The positives a and b have .9 and .2, the negatives c and d .7 and .4."""


def test_the_curve_of_an_arm_is_the_mean_over_its_seeds() -> None:
    """Finds the probability of the label taken for that of the positive class, and sums over seeds."""
    (figure,) = pr_curves(found({"plain": [PERFECT, ONE_WRONG], "dice": [PERFECT]}))
    assert isinstance(figure, _PrecisionRecallCurves)
    plain, dice = figure.curves
    assert (plain.arm, dice.arm) == ("plain", "dice")
    assert (plain.pr_auc, plain.recall, dice.pr_auc) == pytest.approx((0.75, 0.75, 0.7))
    assert set(dice.precision) == {1.0}
    assert plain.precision[:51] == (1.0,) * 51
    assert plain.precision[51:] == pytest.approx((0.75,) * 50), "the second positive is found with both negatives"
    assert figure.positives == pytest.approx(0.5)
    assert figure.alt == "Precision-recall curves, PR-AUC in %: plain 75.00, dice 70.00."


def test_equal_probabilities_stay_equal_when_they_are_restored() -> None:
    """Finds a negative ranked behind a positive with the same probability, .1, because 1 - .9 is a little less."""
    (figure,) = pr_curves(found({"plain": [{"a": 0.1, "c": 0.9}]}))
    assert isinstance(figure, _PrecisionRecallCurves)
    assert figure.curves[0].precision == pytest.approx((0.5,) * 101)


def test_the_mark_of_a_curve_is_at_its_recall() -> None:
    """Finds a mark at another place than the threshold of .5 gives."""
    (figure,) = pr_curves(found({"plain": [ONE_WRONG], "dice": [PERFECT]}))
    canvas = Canvas()
    figure.draw(canvas)
    lines = {str(line.get_label()): line for line in canvas.axes[0].lines}
    assert lines["plain (70.00)"].get_markevery() == [50]
    assert lines["dice (70.00)"].get_markevery() == [100]


def test_many_arms_are_grey_except_the_best_and_the_baseline() -> None:
    """Finds a legend of all arms of a large study, and a baseline that is left out of it."""
    arms = {f"arm {number}": [PERFECT] for number in range(_NUM_ARMS + 3)}
    findings = found({"plain": [ONE_WRONG], **arms})
    findings.frame["metrics.test/pr_auc"] = np.linspace(0.1, 0.9, len(findings.frame))
    (figure,) = pr_curves(findings)
    assert isinstance(figure, _PrecisionRecallCurves)
    assert [curve.arm for curve in figure.coloured] == [*(f"arm {number}" for number in (8, 7, 6, 5, 4, 3)), "plain"]
    assert figure.caption.endswith("Thin grey: the 3 arms with smaller areas.")


def test_without_probabilities_or_two_classes_there_is_no_curve() -> None:
    """Finds an error on runs of older versions, on tasks without a positive class, and on splits without positives."""
    findings = found({"plain": [PERFECT]})
    assert len([*pr_curves(findings)]) == 1
    assert [*pr_curves(replace(findings, texts=lambda runs, file: {}))] == []
    older = {id_: of.drop(columns="label_probability") for id_, of in findings.items.items()}
    without = replace(findings)
    without.__dict__["items"] = older
    assert [*pr_curves(without)] == []
    assert [*pr_curves(found({"plain": [PERFECT]}, **{"metrics.test/pr_auc": math.nan}))] == []
    assert [*pr_curves(found({"plain": [{"c": 0.9}]}))] == []


def cell(arm: str, seed: int, f1: float, **columns: Any) -> dict[str, Any]:
    return {"arm": arm, "seed": seed, "metrics.test/f1": f1, **columns}


def pr(precision: float, recall: float) -> dict[str, float]:
    return {"metrics.test/precision": precision, "metrics.test/recall": recall}


def test_arms_stand_at_their_mean_precision_and_recall() -> None:
    cells = [
        cell("plain", 1, 0.5, **pr(0.4, 0.7)),
        cell("plain", 2, 0.5, **pr(0.6, 0.5)),
        cell("sharp", 1, 0.5, **pr(0.9, 0.3)),
        cell("sharp", 2, 0.9, **pr(0.9, 0.9), state="failed"),
        cell("none", 1, 0.0, **pr(0.0, 0.0), **{"tags.collapsed": "true"}),
        cell("none", 2, 0.0, **pr(0.0, 0.0), **{"tags.collapsed": "true"}),
    ]
    (figure,) = planes(study(cells))
    assert isinstance(figure, _Plane)
    by_arm = {point.arm: point for point in figure.points}
    assert list(by_arm) == ["sharp", "plain", "none"]
    assert (by_arm["plain"].precision, by_arm["plain"].recall) == pytest.approx((0.5, 0.6))
    assert by_arm["plain"].seeds == ((0.4, 0.7), (0.6, 0.5))
    assert by_arm["sharp"].seeds == ((0.9, 0.3),)
    assert by_arm["none"].collapsed == ((0.0, 0.0),) * 2
    assert [point.arm for point in figure.living] == ["sharp", "plain"]
    assert figure.alt.endswith("none precision 0.00, recall 0.00, 2 of 2 runs collapsed.")


def test_the_axes_show_the_runs_that_predict_both_classes() -> None:
    """Finds collapsed runs that widen the axes until the others are one spot, and ones that vanish from them."""
    cells = [cell("plain", seed, 0.5, **pr(0.7 + seed / 100, 0.8 + seed / 100)) for seed in (1, 2)]
    cells += [cell("none", 1, 0.0, **pr(0.0, 0.0), **{"tags.collapsed": "true"})]
    (figure,) = planes(study(cells))
    canvas = Canvas()
    figure.draw(canvas)
    axes = canvas.axes[0]
    assert axes.get_xlim()[0] > 0.8
    assert axes.get_ylim()[0] > 0.7
    (hollow,) = [line for line in axes.lines if line.get_markerfacecolor() == "none"]
    assert hollow.get_xydata().tolist() == [[axes.get_xlim()[0], axes.get_ylim()[0]]]  # type: ignore[union-attr]


def test_each_data_set_has_its_plane_and_none_is_made_without_precision() -> None:
    cells = [cell("plain", 1, 0.5, **pr(0.4, 0.7), **{"tags.data": data}) for data in ("a", "b")]
    assert [(figure.name, figure.title) for figure in planes(study(cells))] == [
        ("precision_recall_1", "Precision and recall on a"),
        ("precision_recall_2", "Precision and recall on b"),
    ]
    assert [*planes(study([cell("plain", 1, 0.5)]))] == []
    assert [*planes(study([cell("plain", 1, 0.0, **pr(0.0, 0.0), **{"tags.collapsed": "true"})]))] == []
