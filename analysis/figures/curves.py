"""Training curves: the score on dev by step, a panel an arm or a loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis.figures.base import COLORS, QUIET, Figure, Line, label_score
from analysis.figures.study import places
from analysis.scores import column, losses, said_by_parent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from analysis.found import Found

COLUMNS = 4
LONGEST = 26
"""Letters of a name that stand over a panel."""
NUM_RUNS = 12
"""Of runs trained alone, the latest are drawn."""
NUM_LINES = 30
"""Of a panel's runs, those that reached most are drawn."""


@dataclass(frozen=True)
class Panel:
    """The runs of one arm or loss, each a line, and the mean of an arm's where they share steps."""

    name: str
    runs: tuple[Line, ...]
    mean: Line | None


@dataclass(frozen=True)
class TrainingCurves(Figure):
    """A metric by step, a panel an arm or a loss, the baseline's mean behind each."""

    metric: str
    panels: tuple[Panel, ...]
    baseline: Panel | None

    @property
    def caption(self) -> str:
        behind = f", the mean of {self.baseline.name} in grey behind" if self.baseline else ""
        mean = ", their mean thick" if any(panel.mean for panel in self.panels) else ""
        most = any(len(panel.runs) == NUM_LINES for panel in self.panels)
        first = f", at most the {NUM_LINES} best of each" if most else ""
        return f"{self.metric} by step of the optimizer: each run thin{first}{mean}{behind}."

    @property
    def rows(self) -> int:
        return math.ceil(len(self.panels) / COLUMNS)

    @property
    def height(self) -> float:
        return 0.4 + 1.35 * self.rows if len(self.panels) > 1 else 2.6

    def draw(self, canvas: Canvas) -> None:
        columns = min(COLUMNS, len(self.panels))
        grid = canvas.subplots(self.rows, columns, sharex=True, sharey=True, squeeze=False)
        for number, axes in enumerate(grid.flat):
            if number >= len(self.panels):
                axes.remove()
            elif number + columns >= len(self.panels):
                axes.tick_params(labelbottom=True)
        for axes, panel in zip(grid.flat, self.panels, strict=False):
            self._draw(axes, panel)
        scores = [y for panel in self.panels for run in panel.runs for y in run.y]
        label_score(grid[0, 0].yaxis, self.metric, scores)
        canvas.supylabel(grid[0, 0].get_ylabel(), fontsize=8)
        grid[0, 0].set_ylabel("")
        canvas.supxlabel("step", fontsize=8)

    def _draw(self, axes: Axes, panel: Panel) -> None:
        from matplotlib.ticker import MaxNLocator

        color = QUIET if panel is self.baseline else COLORS[0]
        if self.baseline and self.baseline.mean and panel is not self.baseline:
            axes.plot(self.baseline.mean.x, self.baseline.mean.y, color=QUIET, lw=1)
        for run in panel.runs:
            axes.plot(run.x, run.y, color=color, lw=0.8, alpha=0.7, marker="." if len(run.x) == 1 else "", ms=3)
        if panel.mean:
            axes.plot(panel.mean.x, panel.mean.y, color=color, lw=1.8)
        axes.set_title(panel.name if len(panel.name) <= LONGEST else f"{panel.name[: LONGEST - 1]}…", fontsize=7)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))


def training_curves(found: Found) -> list[Figure]:
    """Of a study, sweep or runs trained alone that stored a score more than once."""
    frame = found.frame
    if (frame["kind"] == "cell").any():
        return [
            made
            for number, place, each in places(found)
            for metric in [f"dev/{each.metric.rpartition('/')[2]}"]
            for made in _curves(
                f"training_curves{number}", place, metric, each.cells, each.cells["arm"], each.baseline, found.curves
            )
        ]
    runs = frame[frame["kind"] == "trial"]
    if not runs.empty:
        metric = said_by_parent(frame, "metric")
        return _curves("training_curves", "", metric, runs, losses(runs), None, found.curves)
    runs = frame[frame["kind"] == "run"].tail(NUM_RUNS)
    metrics = column(runs, "tags.metric").dropna().unique()
    return [
        made
        for number, metric in enumerate(metrics, start=1)
        for of in [runs[runs["tags.metric"] == metric]]
        for made in _curves(
            f"training_curves_{number}" if len(metrics) > 1 else "training_curves",
            "",
            metric,
            of,
            of["id"],
            None,
            found.curves,
        )
    ]


def _curves(
    name: str,
    place: str,
    metric: str,
    runs: pd.DataFrame,
    of: pd.Series[str],
    baseline: str | None,
    curves: pd.DataFrame,
) -> list[Figure]:
    points = curves[(curves["metric"] == metric) & curves["id"].isin(runs["id"])]
    if points.empty or points.groupby("id").size().max() < 2:
        return []
    panel_of = dict(zip(runs["id"], of, strict=True))
    panels = [
        _panel(str(each), group, has_mean=baseline is not None)
        for each, group in points.groupby(points["id"].map(panel_of))
    ]
    panels.sort(key=lambda panel: panel.name != baseline)
    first = panels[0] if panels[0].name == baseline else None
    return [TrainingCurves(name, f"Training curves{place}", metric, tuple(panels), first)]


def _panel(name: str, points: pd.DataFrame, *, has_mean: bool) -> Panel:
    points = points.sort_values("step")
    reached = points.groupby("id")["value"].max().nlargest(NUM_LINES)
    runs = [
        Line(str(id_), tuple(run["step"].astype(float)), tuple(run["value"].astype(float)))
        for id_, run in points[points["id"].isin(reached.index)].groupby("id")
    ]
    if not has_mean or len(runs) < 2 or any(line.x != runs[0].x for line in runs):
        return Panel(name, tuple(runs), None)
    return Panel(name, tuple(runs), Line("mean", runs[0].x, tuple(np.mean([line.y for line in runs], axis=0).tolist())))
