"""The figure of scores by tuning budget: a line for each arm with the numbers of the record, and a picture."""

from __future__ import annotations

from dataclasses import replace

from analysis.budget import at_budget
from analysis.figures.budget import ScoreByBudget, score_by_budget
from analysis.frames import Findings
from tests.analysis.cells import drawn_settings, study
from tests.analysis.test_budget import DEV, NUM, TEST


def test_each_arm_has_its_line() -> None:
    """Finds lines that are shifted by one setting, and bounds of another arm."""
    findings = Findings(drawn_settings(DEV, TEST))
    (figure,), (made,) = score_by_budget(findings), at_budget(findings)
    assert isinstance(figure, ScoreByBudget)
    assert (figure.baseline, figure.budget) == ("cross_entropy", made.budget)
    for line, arm in zip(figure.lines, made.arms, strict=True):
        assert (line.name, line.x) == (arm.name, tuple(range(1, NUM + 1)))
        assert line.y == tuple(score.mean for score in arm.scores)
        assert line.low[:4] == tuple(score.low for score in arm.scores[:4])
    assert figure.alt.startswith("Score by tuning budget: dice from 67.47 to ")
    assert "constant" not in figure.alt + figure.caption
    assert figure.svg().startswith("<svg")
    assert score_by_budget(Findings(study({"cross_entropy": [0.5]}))) == []


def test_the_constant_predictor_is_a_level_of_its_own() -> None:
    """Finds a figure in which arms that learnt nothing look like arms that did, and scores in two formats."""
    frame = drawn_settings(DEV, TEST).assign(**{"metrics.test/constant_f1": 0.25})
    (figure,) = score_by_budget(Findings(frame))
    assert isinstance(figure, ScoreByBudget)
    assert figure.alt.endswith("; constant predictor 25.00.")
    assert figure.caption.endswith("and the constant predictor.")
    assert figure.svg() != replace(figure, constant=None).svg()
