"""What holds for every figure: it is drawn, in one style, whatever its names hold, and described in words."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from analysis.figures import base
from analysis.figures.base import COLORS, INK, QUIET, Figure, looks_of
from analysis.figures.by_number import gain_by_ratio, score_by_ratio
from analysis.figures.differences import forests
from analysis.figures.paper import _ImbalanceBars
from analysis.figures.precision_recall import planes
from analysis.figures.sweep import best_so_far
from analysis.frames import Findings
from analysis.report import _FIGURES
from tests.analysis.experiments import NASTY, experiments
from tests.analysis.frames import study, sweep

BARS = _ImbalanceBars("imbalance", NASTY, ((NASTY, 100, 10), ("none", 5, 0)))


@pytest.mark.parametrize("make", [*_FIGURES, lambda _: [BARS]], ids=lambda make: make.__name__)
def test_each_figure_is_drawn_the_same_each_time_and_described(make: Any, tmp_path: Path) -> None:
    figures: list[Figure] = [figure for findings in experiments().values() for figure in make(findings)]
    assert figures, "each figure must be one of some experiment"
    assert all(figure.caption.endswith(".") and figure.title in figure.alt for figure in figures)
    svg = figures[0].svg()
    assert svg == figures[0]._repr_svg_()
    assert svg.startswith("<svg")
    assert "<script" not in svg
    assert INK in svg
    figures[0].save(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("make", [planes, score_by_ratio, gain_by_ratio, best_so_far])
def test_a_legend_of_many_long_names_is_on_the_picture(make: Callable[[Findings], Iterator[Figure]]) -> None:
    """Finds names beyond the edge of the picture, and axes that long ones leave no room for."""
    names = [f"{number:02d}{'x' * 80}" for number in range(30)]
    cells = [
        {"arm": name, "seed": seed, "params.data.imbalance.ratio.negatives": ratio, "tags.variant": f"1:{ratio}"}
        | {f"metrics.test/{score}": 0.5 + seed / 100 for score in ("f1", "precision", "recall")}
        for name in names
        for seed in (1, 2)
        for ratio in (1, 10)
    ]
    trials = [{"params.loss": name, "metrics.dev/best_f1": 0.5, "metrics.dev/constant_f1": 0.2} for name in names]
    figure, *_ = make(sweep(trials) if make is best_so_far else study(cells, baseline=names[0]))
    with figure._drawn() as canvas:
        canvas.draw_without_rendering()
        legends = [*canvas.legends, *(axes.get_legend() for axes in canvas.axes)]
        (legend,) = (each.get_window_extent() for each in legends if each)
        axes = canvas.axes[0].get_window_extent()
    assert 0 <= legend.x0 < legend.x1 <= canvas.bbox.x1
    assert 0 <= legend.y0 < legend.y1 <= canvas.bbox.y1
    assert axes.width > canvas.bbox.width / 3


@pytest.mark.parametrize("make", [planes, forests])
def test_a_picture_is_well_formed_whatever_a_name_holds(
    make: Callable[[Findings], Iterator[Figure]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Finds a control character that is drawn, or in the comments of an SVG, which no browser then shows.

    Also fonts that are missed, and axes that a long name leaves no room for, of which matplotlib warns.
    """
    monkeypatch.setattr(base, "_FONTS", (*base._FONTS, "a font that is not installed"))
    figure, *_ = make(
        study(
            {"arm": arm, "seed": seed}
            | {f"metrics.test/{name}": 0.5 + seed / 9 for name in ("f1", "precision", "recall")}
            for arm in ("plain", f"\x07 \x1b[31m --> \n <b> {'x' * 300}")
            for seed in (1, 2)
        )
    )
    warnings.simplefilter("error")  # until the end of the test
    assert ElementTree.fromstring(figure.svg()).tag.endswith("svg")
    assert "findfont" not in caplog.text


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_picture_in_a_file_stands_on_white_and_the_one_of_a_page_on_nothing(tmp_path: Path, ending: str) -> None:
    import matplotlib.image

    first, second = (tmp_path / f"{name}.{ending}" for name in ("first", "second"))
    BARS.save(first)
    BARS.save(second)
    assert first.read_bytes() == second.read_bytes()
    if ending == "png":
        corner: Any = matplotlib.image.imread(first)[0, 0]
        assert corner.tolist() == [1, 1, 1, 1]
    else:
        assert "fill: #ffffff" in first.read_text()
        assert "fill: #ffffff" not in BARS.svg()


def test_a_name_has_the_same_look_whatever_the_order_and_the_baseline_is_grey() -> None:
    assert looks_of(["b", "a", "plain"], "plain") == looks_of(["plain", "a", "b"], "plain")
    assert looks_of(["b", "a", "plain"], "plain").items() > looks_of(["a", "b"]).items()
    assert [look.color for look in looks_of(["b", "a", "plain"], "plain").values()] == [*COLORS[:2], QUIET]
    many = looks_of(f"{number:02d}" for number in range(12))
    assert len({*many.values()}) == len(many)
