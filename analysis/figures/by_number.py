"""Scores by a number: the ratio of negatives to positives, the tuning budget, and Tversky's alpha."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from analysis.budget import at_budget
from analysis.comparison import CONSTANT, comparisons
from analysis.figures.base import QUIET, Figure, Line, Look, label_in, legend_beside, legend_height, looks_of, on_hover
from analysis.formats import ScoreFormat, named, on_place
from analysis.frames import Findings, param_values, scores, test_per_train
from analysis.ratios import PR_AUC, ByRatio, by_ratio
from analysis.statistics.intervals import FEW_SEEDS, Interval, t_interval
from dice_ray.metrics import catalogue

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


@dataclass(frozen=True)
class _Panel:
    """The lines of one reading of the scores, such as at the tuned threshold.

    Attributes:
        label: The label of its axis.
        score_format: That of the tables. The sizes of gains do not show whether the scores are shares.
        lines: One for each arm; that of the constant predictor has no intervals.
    """

    name: str
    label: str
    score_format: ScoreFormat
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class _ScoreByNumber(Figure):
    """A line for each arm by a number, with a panel for each reading of the scores.

    Attributes:
        number: The label of the axis of numbers, which is logarithmic for ratios.
        text: The caption.
        baseline: The name whose lines are grey; None without one.
        sign: `+` where the scores are differences to the baseline.
        marked: A number to mark by a vertical line.
    """

    number: str
    text: str
    panels: tuple[_Panel, ...]
    baseline: str | None = None
    is_log: bool = False
    sign: str = ""
    marked: int | None = None

    @property
    def is_first(self) -> bool:
        """The verdict of a study of drawn settings is about this figure."""
        return self.marked is not None

    @property
    def caption(self) -> str:
        return self.text

    @property
    def height(self) -> float:
        names = {line.name for panel in self.panels for line in panel.lines}
        return max(super().height, 0.6 + 1.9 * len(self.panels), legend_height(len(names)))

    @property
    def alt(self) -> str:
        panels = []
        for panel in self.panels:
            show = partial(panel.score_format.show, sign=self.sign)
            lines = (f"{line.name} from {show(line.y[0])} to {show(line.y[-1])}" for line in panel.lines)
            panels.append(f"{panel.name}: {', '.join(lines)}" if panel.name else ", ".join(lines))
        return f"{self.title}. {'; '.join(panels)}."

    def draw(self, canvas: Canvas) -> None:
        lines = [line for panel in self.panels for line in panel.lines]
        names = list(dict.fromkeys(line.name for line in lines if line.name != CONSTANT))
        looks = looks_of(names, self.baseline)
        numbers = sorted({x for line in lines for x in line.x})
        offsets = _side_by_side([math.log10(x) for x in numbers] if self.is_log else numbers, names)
        every = canvas.subplots(len(self.panels), sharex=True, squeeze=False)[:, 0]
        for axes, panel in zip(every, self.panels, strict=True):
            if self.sign:
                axes.axhline(0, color=QUIET, linewidth=0.8)
            if self.marked is not None:
                axes.axvline(self.marked, color=QUIET, linewidth=0.8, linestyle=":")
            for line in panel.lines:
                if line.name == CONSTANT:
                    axes.plot(line.x, line.y, color=QUIET, linewidth=0.9, linestyle=":", label=CONSTANT)
                else:
                    self._draw(axes, line, looks[line.name], offsets[line.name], panel.score_format)
            axes.set_title(panel.name, loc="left")
            label_in(panel.score_format, axes.yaxis, panel.label)
        last = every[-1]
        if self.is_log:
            last.set_xscale("log")
        if self.is_log or len(numbers) <= 12:
            last.set_xticks(numbers, [f"{number:g}" for number in numbers])
            last.set_xticks([], minor=True)
        last.set_xlabel(self.number)
        legend_beside(canvas)

    def _draw(self, axes: Axes, line: Line, look: Look, offset: float, score_format: ScoreFormat) -> None:
        x_N = np.array(line.x) * 10**offset if self.is_log else np.array(line.x) + offset
        widths: dict[str, Any] = {"linewidth": 0.7, "elinewidth": 1.1, "markersize": 3.5}
        axes.errorbar(x_N, line.y, line.errors, color=look.color, marker=look.marker, label=line.name, **widths)
        for number, x, y, low, high in zip(line.x, x_N, line.y, line.low, line.high, strict=True):
            (spot,) = axes.plot(x, y, marker="o", color=look.color, alpha=0, markersize=7)
            shown = score_format.show_interval(Interval(y, low, high, 0), self.sign)
            on_hover(spot, f"{line.name}, {number:g} {self.number.split(' ', 1)[0]}: {shown}")


def _side_by_side(places: Sequence[float], names: Sequence[str]) -> dict[str, float]:
    """How far the marks of each arm are moved from a place on the axis, such that those of two places do not mix."""
    # Only one place has scores while the runs of the others have not ended.
    gap = min((after - before for before, after in pairwise(places)), default=math.inf)
    step = min(0.03 * ((places[-1] - places[0]) or 1), 0.4 * gap / max(1, len(names) - 1))
    return {name: float(step * (number - (len(names) - 1) / 2)) for number, name in enumerate(names)}


_RATIO = "negatives for each positive in the training split"


def score_by_ratio(findings: Findings) -> Iterator[Figure]:
    """For each data set and encoder of a study over training sets of several imbalance ratios."""
    for name, of in named("score_by_ratio", by_ratio(findings)):
        panels = tuple(
            _Panel(
                reading.name,
                PR_AUC if reading.name == PR_AUC else of.metric,
                reading.score_format,
                tuple(Line.through(arm, by_number) for arm, by_number in reading.scores.items()),
            )
            for reading in of.readings
        )
        area = (
            " PR-AUC needs no threshold; a random ranking has the share of positives in test."
            if any(panel.name == PR_AUC for panel in panels)
            else ""
        )
        has_constant = any(line.name == CONSTANT for panel in panels for line in panel.lines)
        text = (
            f"The mean {of.metric} of each arm over its seeds with its 95 % interval, by the number of {_RATIO}; arms "
            f"stand side by side at each ratio.{area} The intervals of two arms may overlap where their paired "
            "difference is significant: see the tables, and the figure of gains."
            + (f" Dotted: the {CONSTANT}." if has_constant else "")
        )
        title = f"Score against imbalance{on_place(of.place)}"
        yield _ScoreByNumber(name, title, _RATIO, text, panels, of.baseline, is_log=True)


def gain_by_ratio(findings: Findings) -> Iterator[Figure]:
    """For each data set and encoder of a study over training sets of several imbalance ratios."""
    for name, of in named("gain_by_ratio", by_ratio(findings)):
        gain = f"minus that of {of.baseline}"
        if catalogue.metric(of.metric).is_minimised:
            gain = f"of {of.baseline} minus that of the arm"
        text = (
            f"{of.metric} {gain} on the same training set and at the same kind of threshold, paired by seed, with the "
            "intervals of the tables, which are corrected for the number of arms at each ratio: a gain counts if its "
            f"interval does not include 0 and it has at least {FEW_SEEDS} seeds."
        )
        title = f"Gain against imbalance{on_place(of.place)}"
        if panels := _gains(of):
            yield _ScoreByNumber(name, title, _RATIO, text, panels, of.baseline, is_log=True, sign="+")


def _gains(of: ByRatio) -> tuple[_Panel, ...]:
    """The differences of each arm except the baseline in the tables of the ratios."""
    points: dict[str, dict[str, dict[float, Interval]]] = {}
    for ratio, compared in of.comparisons.items():
        for arm in compared.arms:
            if arm.difference and arm.difference.interval.num:
                of_panel = points.setdefault(of.tuned if arm.is_tuned else of.plain, {})
                of_panel.setdefault(arm.arm, {})[ratio] = arm.difference.gain
    first, *others = {compared.score_format for compared in of.comparisons.values()}
    of_gain = ScoreFormat(percent=False) if others else first
    return tuple(
        _Panel(
            name, f"gain in {of.metric}", of_gain, tuple(Line.through(*line) for line in sorted(points[name].items()))
        )
        for name in (of.plain, of.tuned)
        if name in points
    )


def score_by_budget(findings: Findings) -> Iterator[Figure]:
    """For each data set and encoder of a study of drawn settings."""
    studied = [each for each in at_budget(findings) if each.arms and each.num_draws > 1]
    for name, each in named("score_by_budget", studied):
        lines = [Line.through(arm.name, dict(enumerate(arm.scores, start=1))) for arm in each.arms]
        if each.constant:
            lines.append(Line.through(CONSTANT, dict.fromkeys((1, each.num_draws), each.constant)))
        text = (
            f"The expected {each.metric} of the run with the best dev score of n drawn settings, by n, with "
            "approximate 95 % intervals of each arm over settings and seeds, up to half of the settings. Those of two "
            "arms may overlap where their paired difference is significant: see the table. Dotted: the budget of the "
            f"verdict{f', and the {CONSTANT}' if each.constant else ''}."
        )
        panel = _Panel("", each.metric, each.score_format, tuple(lines))
        title, number = f"Score by tuning budget{on_place(each.place)}", "settings tried (the best by dev counts)"
        yield _ScoreByNumber(name, title, number, text, (panel,), each.baseline, marked=each.budget)


def tversky_alpha(findings: Findings) -> Iterator[Figure]:
    """For a study whose arms differ in the alpha of the Tversky loss, with a panel for each scope of the loss."""
    for name, compared in named("tversky_alpha", comparisons(findings)):
        alphas, betas, scopes = (
            param_values(compared.cells, f"loss.tversky.{path}") for path in ("alpha", "beta", "scope")
        )
        # The settings of runs that other programs made are texts.
        alphas, betas = (pd.to_numeric(each, errors="coerce") for each in (alphas, betas))
        # Where beta is not 1 - alpha, alpha alone says little.
        cells = compared.cells.assign(alpha=alphas)[alphas.notna() & ~((alphas + betas - 1).abs() >= 1e-9)]
        short = compared.metric.rpartition("/")[2]
        panels = []
        for scope, group in cells.groupby(scopes[cells.index].astype("str")):
            # Two arms of one alpha differ in something else, so that their mean belongs to neither.
            if group["alpha"].nunique() > 2 and not group.duplicated(["alpha", "seed"]).any():
                metrics = {"precision": "test/precision", "recall": "test/recall", short: compared.metric}
                lines = [_by_alpha(label, group, metric) for label, metric in metrics.items()]
                if lines := [line for line in lines if line.x]:
                    percent = all(ScoreFormat.of(line.name, line.y).percent for line in lines)
                    panels.append(_Panel(f"scope: {scope}", "", ScoreFormat(percent=percent), tuple(lines)))
        text = (
            "Tversky loss: alpha weighs false positives, beta = 1 - alpha false negatives, so that precision should "
            "rise with alpha and recall fall. Means over seeds with 95 % intervals."
        )
        if panels:
            title = f"Tversky's alpha{on_place(compared.place)}"
            yield _ScoreByNumber(name, title, "alpha", text, tuple(panels))


def _by_alpha(name: str, cells: pd.DataFrame, metric: str) -> Line:
    """The mean of a metric over seeds for each alpha, with its interval."""
    score, limits = scores(cells, metric), catalogue.metric(metric).limits
    points = {
        float(alpha): t_interval(scored, test_per_train(group), limits)
        for alpha, group in cells.groupby(cells["alpha"])
        if (scored := score[group.index].dropna().tolist())
    }
    return Line.through(name, points)
