"""Training curves: the dev score by step, with a panel for each arm or loss."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from analysis.comparison import comparisons
from analysis.figures.base import COLORS, QUIET, Figure, Line, label_in, panels_of, shown_name
from analysis.formats import ScoreFormat, named, on_place
from analysis.frames import Findings, decisive_metric, drawn_losses, of_kind, tag_values
from dice_ray.metrics.catalogue import gain
from dice_ray.tracking import schema

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_NAME: Final = "training_curves"
_COLUMNS: Final = 4
_NUM_LINES: Final = 30
"""Runs drawn in a panel, those with the best scores."""


@dataclass(frozen=True)
class _CurvePanel:
    """The runs of one arm or loss, and the mean of an arm's runs if they were evaluated at the same steps."""

    name: str
    runs: tuple[Line, ...]
    mean: Line | None


@dataclass(frozen=True)
class _TrainingCurves(Figure):
    """A metric by step, with a panel for each arm or loss and the baseline's mean behind each."""

    metric: str
    panels: tuple[_CurvePanel, ...]
    baseline: _CurvePanel | None

    @property
    def caption(self) -> str:
        behind = f"; grey: the mean of {self.baseline.name}" if self.baseline else ""
        mean = "; thick: their mean" if any(panel.mean for panel in self.panels) else ""
        most = any(len(panel.runs) == _NUM_LINES for panel in self.panels)
        first = f" (the {_NUM_LINES} best of each panel at most)" if most else ""
        return f"{self.metric} by optimizer step. Thin: each run{first}{mean}{behind}."

    @property
    def height(self) -> float:
        return 0.4 + 1.35 * math.ceil(len(self.panels) / _COLUMNS) if len(self.panels) > 1 else 2.6

    def draw(self, canvas: Canvas) -> None:
        every = panels_of(canvas, len(self.panels), _COLUMNS, sharex=True)
        for axes, panel in zip(every, self.panels, strict=True):
            self._draw(axes, panel)
        scores = [y for panel in self.panels for run in panel.runs for y in run.y]
        label_in(ScoreFormat.of(self.metric, scores), every[0].yaxis, self.metric)
        canvas.supylabel(every[0].get_ylabel(), fontsize=8)
        every[0].set_ylabel("")
        canvas.supxlabel("step", fontsize=8)

    def _draw(self, axes: Axes, panel: _CurvePanel) -> None:
        from matplotlib.ticker import MaxNLocator

        color = QUIET if panel is self.baseline else COLORS[0]
        if self.baseline and self.baseline.mean and panel is not self.baseline:
            axes.plot(self.baseline.mean.x, self.baseline.mean.y, color=QUIET, lw=1)
        for run in panel.runs:
            axes.plot(run.x, run.y, color=color, lw=0.8, alpha=0.7, marker="." if len(run.x) == 1 else "", ms=3)
        if panel.mean:
            axes.plot(panel.mean.x, panel.mean.y, color=color, lw=1.8)
        axes.set_title(shown_name(panel.name, 26), fontsize=7)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))


def training_curves(findings: Findings) -> Iterator[Figure]:
    """The curves of a study, a sweep or runs trained alone, if a run was evaluated more than once."""
    if len(findings.cells):
        for name, compared in named(_NAME, comparisons(findings)):
            cells = compared.cells
            # A study compares on test, which a run is scored on once: its curve is that of the metric on dev.
            metric = decisive_metric(cells, compared.metric)
            yield from _curves(name, findings, cells, cells["arm"], metric, compared.place, compared.baseline)
    elif len(trials := findings.trials):
        yield from _curves(_NAME, findings, trials, drawn_losses(trials), findings.metric)
    else:
        runs = of_kind(findings.frame, "run").tail(12)
        for name, (metric, group) in named(_NAME, [*runs.groupby(tag_values(runs, schema.METRIC), sort=False)]):
            yield from _curves(name, findings, group, group["id"], str(metric))


def _curves(
    name: str,
    findings: Findings,
    runs: pd.DataFrame,
    panels_of_runs: pd.Series[str],
    metric: str,
    place: str = "",
    baseline: str | None = None,
) -> Iterator[Figure]:
    curves = findings.curves
    points = curves[(curves["metric"] == metric) & curves["id"].isin(runs["id"])]
    if points.empty or points.groupby("id").size().max() < 2:
        return
    panel_of = dict(zip(runs["id"], panels_of_runs, strict=True))
    panels = [
        _panel(str(panel), group, metric, has_mean=baseline is not None)
        for panel, group in points.groupby(points["id"].map(panel_of))
    ]
    panels.sort(key=lambda panel: panel.name != baseline)
    first = panels[0] if panels[0].name == baseline else None
    yield _TrainingCurves(name, f"Training curves{on_place(place)}", metric, tuple(panels), first)


def _panel(name: str, points: pd.DataFrame, metric: str, *, has_mean: bool) -> _CurvePanel:
    points = points.sort_values("step")
    runs = [
        Line(str(id_), tuple(run["step"].astype(float)), tuple(run["value"].astype(float)))
        for id_, run in points.groupby("id")
    ]
    mean = None
    if has_mean and len(runs) > 1 and all(line.x == runs[0].x for line in runs):
        mean = Line("mean", runs[0].x, tuple(np.mean([line.y for line in runs], axis=0).tolist()))
    best = sorted(runs, key=lambda line: -max(gain(metric, y) for y in line.y))[:_NUM_LINES]
    return _CurvePanel(name, tuple(line for line in runs if line in best), mean)
