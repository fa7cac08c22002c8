"""Training curves as a record: panels, their runs, the mean where runs share their steps."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from analysis.figures import curves as figures
from analysis.figures.base import Figure
from analysis.figures.curves import _TrainingCurves, training_curves
from tests.analysis.frames import points, study, sweep

CELLS = [
    {"arm": arm, "seed": seed, "id": f"{arm}{seed}", "metrics.test/f1": 0.5}
    for arm in ("dice", "plain")
    for seed in (1, 2)
]


def only(made: Iterable[Figure]) -> _TrainingCurves:
    (figure,) = made
    assert isinstance(figure, _TrainingCurves)
    return figure


def test_an_arm_has_its_runs_and_their_mean_the_baseline_first() -> None:
    rows = [
        *(("plain1", step, "dev/f1", step / 10) for step in (1, 2)),
        *(("plain2", step, "dev/f1", step / 20) for step in (2, 1)),
        *(("dice1", step, "dev/f1", 0.5) for step in (1, 2)),
        ("dice2", 1, "dev/f1", 0.25),
        ("dice2", 1, "dev/loss", 9.0),
    ]
    figure = only(training_curves(study(CELLS, curves=points(*rows))))
    plain, dice = figure.panels
    assert (plain.name, dice.name, figure.metric, figure.baseline) == ("plain", "dice", "dev/f1", plain)
    assert [(run.name, run.x) for run in plain.runs] == [("plain1", (1.0, 2.0)), ("plain2", (1.0, 2.0))]
    assert plain.mean is not None
    assert plain.mean.y == pytest.approx((0.075, 0.15))
    assert dice.mean is None
    assert [run.y for run in dice.runs] == [(0.5, 0.5), (0.25,)]


def test_a_sweep_has_a_panel_a_loss_without_means_and_the_best_runs_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "_NUM_LINES", 2)
    trials = [{"params.loss": "dice", "metrics.dev/f1": 0.5} for _ in range(3)]
    rows = [(f"{number:04d}", step, "dev/f1", number / 10) for number in (1, 2, 3) for step in (1, 2)]
    (panel,) = only(training_curves(sweep(trials, curves=points(*rows)))).panels
    assert [run.name for run in panel.runs] == ["0002", "0003"]
    assert panel.mean is None
    rows = [(f"plain{seed}", step, "dev/f1", value) for seed, value in enumerate((0.1, 0.2, 0.6)) for step in (1, 2)]
    cells = [{"arm": "plain", "seed": seed, "id": f"plain{seed}", "metrics.test/f1": 0.5} for seed in range(3)]
    (plain,) = only(training_curves(study(cells, curves=points(*rows)))).panels
    assert plain.mean is not None
    assert [run.name for run in plain.runs] == ["plain1", "plain2"]
    assert plain.mean.y == pytest.approx((0.3, 0.3)), "the mean is that of all runs, not of those drawn"


def test_one_evaluation_is_no_curve() -> None:
    assert [*training_curves(study(CELLS, curves=points(("plain1", 1, "dev/f1", 0.5))))] == []
    assert [*training_curves(study(CELLS))] == []
