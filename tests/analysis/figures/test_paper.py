"""Figure 1 as a record: the formulas, the sign, and where a report shows it."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.figures.paper import figure_1, signs_of_dsc
from analysis.frames import Findings
from tests.analysis.cells import study


def test_the_derivatives_are_those_of_the_formulas() -> None:
    figure = figure_1()
    published, corrected = ({curve.name: curve for curve in curves} for curves in (figure.published, figure.corrected))
    p = np.array(published["DL"].x)
    u = p * (1 - p)
    formulas = {
        "FL (gamma 2)": 2 * (1 - p) * np.log(p) - (1 - p) ** 2 / p,
        "DL": -(2 * (p**2 + 2) - (2 * p + 1) * 2 * p) / (p**2 + 2) ** 2,
        "TL (alpha .5)": -((0.5 * p + 1.5) - 0.5 * (p + 1)) / (0.5 * p + 1.5) ** 2,
        "DSC": -3 * (1 - 2 * p) / (u + 2) ** 2,
    }
    assert list(published) == list(formulas)
    for name, derivative in formulas.items():
        assert published[name].y == pytest.approx(derivative), name
    assert corrected["DSC, stopped"].y == pytest.approx(-3 * (1 - p) / (u + 2) ** 2)


def test_dsc_turns_over_at_one_half_and_its_correction_nowhere() -> None:
    figure = figure_1()
    dsc, stopped = figure.published[-1], figure.corrected[-1]
    assert [value > 0 for value in dsc.y] == [p > 0.5 for p in dsc.x]
    assert max(stopped.y) < 0


def test_a_report_shows_it_for_dsc_on_the_papers_data_only() -> None:
    def findings(loss: str, published: str = "mrpc") -> Findings:
        return Findings(study({"cross_entropy": [0.5], loss: [0.6]}, published=published))

    assert [figure.name for figure in signs_of_dsc(findings("self_adjusting_dice"))] == ["figure_1"]
    assert [*signs_of_dsc(findings("focal"))] == []
    assert [*signs_of_dsc(findings("self_adjusting_dice", "mine"))] == []
