"""The forest plot of a study: each arm's difference to the baseline, over seeds and on new data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from analysis.comparison import Arm, comparisons
from analysis.decision import score_format
from analysis.figures.base import COLORS, QUIET, Figure, label_in, on_hover
from analysis.formats import ScoreFormat, named, on_place
from analysis.statistics.intervals import FEW_SEEDS, Interval
from analysis.wording import is_one_search

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from analysis.frames import Findings

OFFSET = 0.22
"""Of the seeds above, and the interval on new data below, the interval over seeds; in rows."""


@dataclass(frozen=True)
class ForestRow:
    """The difference of an arm to the baseline.

    Attributes:
        seeds: The interval over seeds, as in the table.
        new_data: The interval on new data, as in the table; None if it is not known.
        by_seed: The difference of each seed.
        is_different: Whether the arm is told apart from the baseline.
    """

    arm: str
    seeds: Interval
    new_data: Interval | None
    by_seed: tuple[float, ...]
    is_different: bool


@dataclass(frozen=True)
class Forest(Figure):
    """The differences of the arms to the baseline, the largest first.

    Attributes:
        score_format: That of the table. The sizes of the differences do not show whether the scores are shares.
    """

    metric: str
    baseline: str
    score_format: ScoreFormat
    rows: tuple[ForestRow, ...]
    at_threshold: str = ""

    is_first: ClassVar[bool] = True

    @property
    def caption(self) -> str:
        has_new_data = any(row.new_data for row in self.rows)
        second = " Thin: the interval on new data, for other seeds and other test items." if has_new_data else ""
        return (
            f"{self.metric}{self.at_threshold} minus that of {self.baseline}. Diamond and thick line: the "
            f"mean over seeds and its interval, Holm-corrected as in the table.{second} Dots: the seeds. Grey: not "
            f"significantly different from {self.baseline}, which takes at least {FEW_SEEDS} seeds."
        )

    @property
    def alt(self) -> str:
        return f"{self.title}: {'; '.join(map(self._words, self.rows))}."

    @property
    def height(self) -> float:
        return 0.75 + 0.32 * len(self.rows)

    def draw(self, canvas: Canvas) -> None:
        axes = canvas.subplots()
        axes.axvline(0, color=QUIET, linewidth=0.8)
        for number, row in enumerate(self.rows):
            color = COLORS[0] if row.is_different else QUIET
            above = [number - OFFSET] * len(row.by_seed)
            axes.plot(row.by_seed, above, "o", color=color, markersize=3, alpha=0.8, markeredgewidth=0, zorder=3)
            for interval, y, width in ((row.seeds, number, 2.2), (row.new_data, number + OFFSET, 0.8)):
                if interval and not math.isnan(interval.low):
                    axes.plot(
                        [interval.low, interval.high], [y, y], color=color, linewidth=width, solid_capstyle="butt"
                    )
            (mean,) = axes.plot(row.seeds.mean, number, "D", color=color, markersize=5.5, zorder=4)
            on_hover(mean, self._words(row))
        axes.set_yticks(range(len(self.rows)), [row.arm for row in self.rows])
        axes.set_ylim(len(self.rows) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        label_in(self.score_format, axes.xaxis, f"{self.metric} minus {self.baseline}")

    def _words(self, row: ForestRow) -> str:
        bounds = self.score_format.show_bounds(row.new_data, "+") if row.new_data else ""
        new_data = f", on new data {bounds}" if bounds else ""  # one seed has no interval
        return f"{row.arm} {self.score_format.show_interval(row.seeds, '+')}{new_data}"


def forests(findings: Findings) -> list[Figure]:
    """For each data set, encoder and variant of a study with two arms or more."""
    figures: list[Figure] = []
    for name, compared in named("forest", comparisons(findings)):
        rows = [row for arm in compared.arms if (row := _row(arm))]
        if rows:
            rows.sort(key=lambda row: -row.seeds.mean)
            of_what = ", of the settings found by one search for each arm" if is_one_search(compared) else ""
            title = f"Difference to {compared.baseline}{on_place(compared.place)}{of_what}"
            figures.append(
                Forest(
                    name,
                    title,
                    compared.metric,
                    compared.baseline,
                    score_format(compared),
                    tuple(rows),
                    compared.at_threshold_of_score,
                )
            )
    return figures


def _row(arm: Arm) -> ForestRow | None:
    """The row of an arm, not at its tuned threshold, that shares a seed with the baseline."""
    if arm.at_tuned_threshold or not arm.difference or not arm.difference.interval.num:
        return None
    new_data = arm.new_data.interval if arm.new_data else None
    return ForestRow(arm.name, arm.difference.interval, new_data, arm.by_seed, arm.difference.is_significant)
