"""Figure 1 as a record, and that it is drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysis.figures import draw_figure_1, figure_1


def test_the_derivatives_are_those_of_the_formulas() -> None:
    figure = figure_1(points=99)
    published, corrected = ({curve.name: curve for curve in curves} for curves in (figure.published, figure.corrected))
    p = np.array(published["DL"].p)
    u = p * (1 - p)
    formulas = {
        "FL (gamma 2)": 2 * (1 - p) * np.log(p) - (1 - p) ** 2 / p,
        "DL": -(2 * (p**2 + 2) - (2 * p + 1) * 2 * p) / (p**2 + 2) ** 2,
        "TL (alpha .5)": -((0.5 * p + 1.5) - 0.5 * (p + 1)) / (0.5 * p + 1.5) ** 2,
        "DSC": -3 * (1 - 2 * p) / (u + 2) ** 2,
    }
    assert list(published) == list(formulas)
    for name, derivative in formulas.items():
        assert published[name].derivative == pytest.approx(derivative), name
    assert corrected["DSC, stopped"].derivative == pytest.approx(-3 * (1 - p) / (u + 2) ** 2)


def test_dsc_turns_over_at_one_half_and_its_correction_nowhere() -> None:
    figure = figure_1(points=99)
    dsc, stopped = figure.published[-1], figure.corrected[-1]
    assert [value > 0 for value in dsc.derivative] == [p > 0.5 for p in dsc.p]
    assert max(stopped.derivative) < 0


def test_it_is_drawn(tmp_path: Path) -> None:
    draw_figure_1(figure_1(points=9), tmp_path / "figure_1.png")
    assert (tmp_path / "figure_1.png").read_bytes().startswith(b"\x89PNG")
