"""Scores by a number: the ratio of negatives to positives, Tversky's alpha, the tuning budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Final, Literal

import numpy as np

from analysis.budget import at_budget
from analysis.budget_wording import format_at_budget
from analysis.comparison import CONSTANT
from analysis.decision import score_format
from analysis.figures.base import QUIET, Figure, Line, draw_lines, label_in, looks_of, on_hover
from analysis.formats import ScoreFormat, named, on_place
from analysis.ratios import AT_TUNED, PR_AUC, ByRatio, by_ratio
from analysis.statistics.intervals import FEW_SEEDS, Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from analysis.frames import Findings

WIDEST: Final = 0.06
"""The most, in decades of the ratio, that the marks of two arms stand apart."""
SHARE: Final = 0.4
"""The most of the distance of two ratios that the marks of all arms take, so that none seems to be of the other one."""


@dataclass(frozen=True)
class RatioPanel:
    """The lines of the arms in one reading: at .5, at the tuned threshold, or PR-AUC.

    Attributes:
        score_format: That of the tables. The sizes of gains do not show whether the scores are shares.
        lines: One for each arm; that of the constant predictor has no band.
    """

    name: str
    score_format: ScoreFormat
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class ByRatioFigure(Figure):
    """The arms by the number of negatives for each positive, a panel for each reading."""

    metric: str
    baseline: str
    panels: tuple[RatioPanel, ...]

    sign: ClassVar[Literal["", "+"]] = ""
    """Of a positive number; with one, the figure is of differences."""

    @property
    def height(self) -> float:
        return max(super().height, 0.6 + 1.9 * len(self.panels))

    @property
    def alt(self) -> str:
        panels = []
        for panel in self.panels:
            show = partial(panel.score_format.show, sign=self.sign)
            lines = (f"{line.name} from {show(line.y[0])} to {show(line.y[-1])}" for line in panel.lines)
            panels.append(f"{panel.name}: {', '.join(lines)}")
        return f"{self.title}. {'; '.join(panels)}."

    @property
    def _lines(self) -> list[Line]:
        return [line for panel in self.panels for line in panel.lines]

    def draw(self, canvas: Canvas) -> None:
        names = list(dict.fromkeys(line.name for line in self._lines if line.name != CONSTANT))
        looks = looks_of(names, self.baseline)
        ratios = sorted({x for line in self._lines for x in line.x})
        places = side_by_side(ratios, names)
        every = canvas.subplots(len(self.panels), sharex=True, squeeze=False)[:, 0]
        for axes, panel in zip(every, self.panels, strict=True):
            if self.sign:
                axes.axhline(0, color=QUIET, linewidth=0.8)
            for line in panel.lines:
                if line.name == CONSTANT:
                    axes.plot(line.x, line.y, color=QUIET, linewidth=0.9, linestyle=":", label=CONSTANT)
                    continue
                x_N = np.array(line.x) * places[line.name]
                look, sizes = looks[line.name], np.array([line.y, line.y]) - np.array([line.low, line.high])
                axes.errorbar(
                    x_N,
                    line.y,
                    np.abs(sizes),
                    color=look.color,
                    marker=look.marker,
                    label=line.name,
                    markersize=3.5,
                    linewidth=0.7,
                    elinewidth=1.1,
                )
                for ratio, x, y, low, high in zip(line.x, x_N, line.y, line.low, line.high, strict=True):
                    (spot,) = axes.plot(x, y, marker="o", color=look.color, alpha=0, markersize=7)
                    shown = panel.score_format.show_interval(Interval(y, low, high, 0), self.sign)
                    on_hover(spot, f"{line.name}, {ratio:g} negatives: {shown}")
            axes.set_title(panel.name, loc="left")
            metric = f"gain in {self.metric}" if self.sign else self.metric
            label_in(panel.score_format, axes.yaxis, PR_AUC if panel.name == PR_AUC else metric)
        every[-1].set_xscale("log")
        every[-1].set_xticks(ratios, [f"{ratio:g}" for ratio in ratios])
        every[-1].set_xticks([], minor=True)
        every[-1].set_xlabel("negatives for each positive in the training split")
        every[0].legend(loc="upper left", bbox_to_anchor=(1, 1))


@dataclass(frozen=True)
class ScoreByRatio(ByRatioFigure):
    """The score of each arm by the number of negatives for each positive."""

    @property
    def caption(self) -> str:
        area = (
            " PR-AUC needs no threshold; a random ranking has the share of positives in test."
            if any(panel.name == PR_AUC for panel in self.panels)
            else ""
        )
        return (
            f"The mean {self.metric} of each arm over its seeds with its 95 % interval, by the number of negatives for "
            "each positive in the training split; arms stand side by side at each ratio."
            f"{area} The intervals of two arms may overlap where their paired difference is significant: see the "
            "tables, and the figure of gains."
            + (f" Dotted: the {CONSTANT}." if any(line.name == CONSTANT for line in self._lines) else "")
        )


@dataclass(frozen=True)
class GainByRatio(ByRatioFigure):
    """The gain of each arm over the baseline, by the number of negatives for each positive."""

    sign = "+"

    @property
    def caption(self) -> str:
        return (
            f"{self.metric} minus that of {self.baseline} on the same training set and at the same kind of threshold, "
            "paired by seed, with the intervals of the tables, which are corrected for the number of arms at each "
            f"ratio: a gain counts if its interval does not include 0 and it has at least {FEW_SEEDS} seeds."
        )


def side_by_side(ratios: Sequence[float], names: Sequence[str]) -> dict[str, float]:
    """The factor by which the marks of each arm are moved from a ratio, such that those of two ratios do not mix."""
    # Only one ratio has scores while the runs of the others have not ended.
    gap = min((np.log10(after / before) for before, after in pairwise(ratios)), default=math.inf)
    step = min(WIDEST, SHARE * gap / max(1, len(names) - 1))
    return {name: float(10 ** (step * (number - (len(names) - 1) / 2))) for number, name in enumerate(names)}


def score_by_ratio(findings: Findings) -> list[Figure]:
    """For each data set and encoder of a study over training sets of several imbalance ratios."""
    return [
        ScoreByRatio(
            name,
            f"Score against imbalance{on_place(of.place)}",
            of.metric,
            of.baseline,
            tuple(
                RatioPanel(
                    reading.name,
                    reading.score_format,
                    tuple(Line.through(arm, scores) for arm, scores in reading.scores.items()),
                )
                for reading in of.readings
            ),
        )
        for name, of in named("score_by_ratio", by_ratio(findings))
    ]


def gain_by_ratio(findings: Findings) -> list[Figure]:
    """For each data set and encoder of a study over training sets of several imbalance ratios."""
    return [
        GainByRatio(name, f"Gain against imbalance{on_place(of.place)}", of.metric, of.baseline, panels)
        for name, of in named("gain_by_ratio", by_ratio(findings))
        if (panels := _gains(of))
    ]


def _gains(of: ByRatio) -> tuple[RatioPanel, ...]:
    """The differences of each arm except the baseline in the tables of the ratios."""
    points: dict[str, dict[str, dict[float, Interval]]] = {}
    for ratio, compared in of.comparisons.items():
        for arm in compared.arms:
            if arm.difference and arm.difference.interval.num:
                of_panel = points.setdefault(AT_TUNED if arm.at_tuned_threshold else of.plain, {})
                of_panel.setdefault(arm.arm, {})[ratio] = arm.difference.interval
    of_gain = ScoreFormat(percent=all(score_format(compared).percent for compared in of.comparisons.values()))
    return tuple(
        RatioPanel(name, of_gain, tuple(Line.through(arm, of_arm) for arm, of_arm in sorted(points[name].items())))
        for name in (of.plain, AT_TUNED)
        if name in points
    )


@dataclass(frozen=True)
class ScoreByBudget(Figure):
    """The expected score of the best of n settings, a line for each arm.

    Attributes:
        budget: The number of settings at which the verdict compares.
        constant: The score of the constant predictor; None if it is not stored.
        score_format: That of the table.
    """

    metric: str
    baseline: str
    budget: int
    lines: tuple[Line, ...]
    constant: float | None
    score_format: ScoreFormat

    is_first: ClassVar[bool] = True

    @property
    def caption(self) -> str:
        return (
            f"The expected {self.metric} of the run with the best dev score of n drawn settings, by n, with "
            "approximate 95 % intervals of each arm over settings and seeds, up to half of the settings. Those of two "
            "arms may overlap where their paired difference is significant: see the table. Dotted: the budget of the "
            f"verdict{'' if self.constant is None else f', and the {CONSTANT}'}."
        )

    @property
    def alt(self) -> str:
        show = self.score_format.show
        ends = "; ".join(f"{line.name} from {show(line.y[0])} to {show(line.y[-1])}" for line in self.lines)
        constant = "" if self.constant is None else f"; {CONSTANT} {show(self.constant)}"
        return f"{self.title}: {ends}{constant}."

    def draw(self, canvas: Canvas) -> None:
        from matplotlib.ticker import MaxNLocator

        axes = canvas.subplots()
        axes.axvline(self.budget, color=QUIET, linewidth=0.8, linestyle=":")
        if self.constant is not None:
            axes.axhline(self.constant, color=QUIET, linewidth=0.9, linestyle=":", label=CONSTANT)
        draw_lines(axes, self.lines, self.baseline)
        axes.set_xlabel("settings tried (the best by dev counts)")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        label_in(self.score_format, axes.yaxis, self.metric)


def score_by_budget(findings: Findings) -> list[Figure]:
    """For each data set and encoder of a study of drawn settings."""
    studied = [each for each in at_budget(findings) if each.arms and each.num_draws > 1]
    return [
        ScoreByBudget(
            name,
            f"Score by tuning budget{on_place(each.place)}",
            each.metric,
            each.baseline,
            each.budget,
            tuple(Line.through(arm.name, dict(enumerate(arm.scores, start=1))) for arm in each.arms),
            each.constant.mean if each.constant else None,
            format_at_budget(each),
        )
        for name, each in named("score_by_budget", studied)
    ]
