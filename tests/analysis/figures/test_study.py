"""The records of a study's figures: precision against recall, Tversky's alpha."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib.figure import Figure as Canvas

from analysis.figures.study import Plane, TverskyAlpha, planes, tversky_alpha
from analysis.statistics.intervals import t_interval
from tests.analysis.frames import study

ALPHA = "params.loss.tversky.alpha"


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
    assert isinstance(figure, Plane)
    by_arm = {point.arm: point for point in figure.points}
    assert list(by_arm) == ["sharp", "plain", "none"]
    assert by_arm["plain"].precision == t_interval([0.4, 0.6])
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


def test_over_splits_of_their_own_the_intervals_of_figures_are_wider() -> None:
    own = {"tags.test_per_train": "0.5"}
    cells = [cell("plain", seed, 0.5, **pr(0.2 + seed / 5, 0.7), **own) for seed in (1, 2)]
    (figure,) = planes(study(cells))
    assert isinstance(figure, Plane)
    assert figure.points[0].precision.high == pytest.approx(t_interval([0.4, 0.6], 0.5).high)
    alphas = [tversky(alpha, seed, "batch", alpha + seed / 100) | own for alpha in (0.1, 0.5, 0.9) for seed in (1, 2)]
    (by_alpha,) = tversky_alpha(study(alphas))
    assert isinstance(by_alpha, TverskyAlpha)
    assert by_alpha.panels[0].lines[0].high[0] == pytest.approx(t_interval([0.11, 0.12], 0.5).high)


def test_each_data_set_has_its_plane_and_none_is_made_without_precision() -> None:
    cells = [cell("plain", 1, 0.5, **pr(0.4, 0.7), **{"tags.data": data}) for data in ("a", "b")]
    assert [(figure.name, figure.title) for figure in planes(study(cells))] == [
        ("precision_recall_1", "Precision and recall on a"),
        ("precision_recall_2", "Precision and recall on b"),
    ]
    assert planes(study([cell("plain", 1, 0.5)])) == []
    assert planes(study([cell("plain", 1, 0.0, **pr(0.0, 0.0), **{"tags.collapsed": "true"})])) == []


def tversky(alpha: float, seed: int, scope: str, precision: float) -> dict[str, Any]:
    at = {ALPHA: alpha, "params.loss.tversky.scope": scope}
    return cell(f"{scope} {alpha}", seed, precision / 2, **pr(precision, 1 - precision), **at)


def test_precision_and_recall_by_alpha_a_panel_a_scope() -> None:
    cells = [tversky(alpha, seed, "batch", alpha + seed / 100) for alpha in (0.1, 0.5, 0.9) for seed in (1, 2, 3)]
    few = [tversky(alpha, 1, "example", 0.5) for alpha in (0.1, 0.9)]
    (figure,) = tversky_alpha(study([*cells, *few, cell("plain", 1, 0.5)]))
    twins = [each | {"arm": f"{each['arm']} again", "metrics.test/precision": 0.9} for each in cells]
    assert tversky_alpha(study([*cells, *twins])) == [], "two arms of one alpha: the second replaced the first"
    beta = "params.loss.tversky.beta"
    of_paper = [each | {beta: 1 - each[ALPHA]} for each in cells]
    assert tversky_alpha(study([*of_paper, *(each | {beta: 0.2} for each in twins)])) == [figure]
    assert isinstance(figure, TverskyAlpha)
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
    assert tversky_alpha(study(few)) == []
    of_mcc = [{name.replace("f1", "mcc"): value for name, value in each.items()} for each in cells]
    (figure,) = tversky_alpha(study(of_mcc, metric="test/mcc"))
    assert isinstance(figure, TverskyAlpha)
    assert figure.panels[0].lines[2].low[0] == pytest.approx(t_interval([0.055, 0.06, 0.065], limits=(-1, 1)).low)
