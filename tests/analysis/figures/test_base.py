"""What holds for every figure: it is drawn, in one style, whatever its names hold, and described in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis.figures.base import COLORS, INK, QUIET, Figure, looks_of
from analysis.figures.paper import _ImbalanceBars
from analysis.report import _FIGURES
from tests.analysis.experiments import NASTY, experiments

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
