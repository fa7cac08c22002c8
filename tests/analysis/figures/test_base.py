"""Every figure is drawn, in one style, whatever its names hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis.figures.base import COLORS, INK, QUIET, Figure, Line, looks_of
from analysis.figures.by_number import Panel, ScoreByNumber
from analysis.figures.curves import CurvePanel, TrainingCurves
from analysis.figures.differences import Forest, ForestRow, Ranks
from analysis.figures.paper import ImbalanceBars, figure_1
from analysis.figures.precision_recall import ArmCurve, ArmPoint, Plane, PrecisionRecallCurves
from analysis.figures.settings import ParallelCoordinates, Slices
from analysis.figures.sweep import BestSoFar, Importance, ScoredTrial
from analysis.formats import ScoreFormat
from analysis.statistics.intervals import t_interval
from analysis.sweep import LossImportance, Parameter, Setting

NASTY = "$x_1$ <script>alert(1)</script> & $y"
LINE = Line(NASTY, (0.1, 1.0, 10.0), (0.2, 0.3, 0.4), (0.1, 0.2, float("nan")), (0.3, 0.4, float("nan")))
INTERVAL, PERCENT = t_interval([0.1, 0.2]), ScoreFormat(percent=True)
POINT = ArmPoint(NASTY, t_interval([0.4, 0.5]), t_interval([0.6, 0.5]), ((0.4, 0.6), (0.5, 0.5)), ((0.0, 0.0),))
TRIALS = tuple(ScoredTrial(number, 0.5, "done", NASTY if number % 2 else "b") for number in range(400))
SETTINGS = (Setting(NASTY, "choice", (NASTY, None) * 200), Setting("lr", "log", tuple(map(float, range(1, 401)))))
PANELS = (Panel(NASTY, "test/f1", PERCENT, (LINE,)), Panel("PR-AUC", "PR-AUC", PERCENT, (LINE,)))
FIGURES: list[Figure] = [
    figure_1(points=9),
    ImbalanceBars("imbalance", NASTY, ((NASTY, 100, 10), ("none", 5, 0))),
    Forest("forest", NASTY, "test/f1", "plain", PERCENT, (ForestRow(NASTY, INTERVAL, None, (0.1, 0.2), True),)),
    Ranks("ranks", NASTY, 5, ((NASTY, 1.2), ("plain", 1.8)), 0.7),
    Plane("plane", NASTY, "plain", (POINT,)),
    PrecisionRecallCurves("pr", NASTY, "plain", (ArmCurve(NASTY, (0.5,) * 101, 0.3, 0.4),), 0.1),
    ScoreByNumber("ratio", NASTY, "negatives", f"{NASTY}.", PANELS, "plain", is_log=True, is_gain=True),
    ScoreByNumber("budget", NASTY, "settings", f"{NASTY}.", PANELS[:1], marked=1),
    BestSoFar("best", NASTY, "dev/f1", (ScoredTrial(1, 0.5, "done", NASTY), ScoredTrial(2, 0.4, "pruned", "b")), 0.2),
    Slices("slices", NASTY, "dev/f1", TRIALS, SETTINGS, f" {NASTY}."),
    ParallelCoordinates("parallel", NASTY, "dev/f1", TRIALS, SETTINGS, ""),
    Importance("importance", NASTY, (LossImportance(NASTY, 20, (Parameter(NASTY, 1.0, 0.5),)),), ((NASTY, 3),)),
    TrainingCurves("curves", NASTY, "dev/f1", (CurvePanel(NASTY, (LINE,), LINE), CurvePanel("b", (LINE,), None)), None),
]


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_each_figure_is_drawn_the_same_each_time_and_described(figure: Figure, tmp_path: Path) -> None:
    svg = figure.svg()
    assert svg == figure.svg() == figure._repr_svg_()
    assert svg.startswith("<svg")
    assert "<script" not in svg
    assert INK in svg
    assert figure.caption.endswith(".")
    assert figure.title in figure.alt
    figure.save(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_picture_in_a_file_stands_on_white_and_the_one_of_a_page_on_nothing(tmp_path: Path, ending: str) -> None:
    import matplotlib.image

    first, second = (tmp_path / f"{name}.{ending}" for name in ("first", "second"))
    FIGURES[0].save(first)
    FIGURES[0].save(second)
    assert first.read_bytes() == second.read_bytes()
    if ending == "png":
        corner: Any = matplotlib.image.imread(first)[0, 0]
        assert corner.tolist() == [1, 1, 1, 1]
    else:
        assert "fill: #ffffff" in first.read_text()
        assert "fill: #ffffff" not in FIGURES[0].svg()


def test_a_name_has_the_same_look_whatever_the_order_and_the_baseline_is_grey() -> None:
    assert looks_of(["b", "a", "plain"], "plain") == looks_of(["plain", "a", "b"], "plain")
    assert looks_of(["b", "a", "plain"], "plain").items() > looks_of(["a", "b"]).items()
    assert [look.color for look in looks_of(["b", "a", "plain"], "plain").values()] == [*COLORS[:2], QUIET]
    many = looks_of(f"{number:02d}" for number in range(12))
    assert len({*many.values()}) == len(many)
