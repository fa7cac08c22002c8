"""Figures of what tells arms apart: differences to the baseline, and mean ranks over several data sets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from analysis.comparison import Arm, Comparison, comparisons
from analysis.data_sets import has_one_metric_each
from analysis.figures.base import COLORS, QUIET, Figure, label_in, on_hover, shown_name
from analysis.formats import named, on_place
from analysis.frames import Findings, place_of
from analysis.statistics.intervals import ALPHA, FEW_SEEDS, Difference
from dice_ray.metrics.catalogue import gain
from dice_ray.tracking import schema

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

_OFFSET = 0.22
"""Of the seeds above, and the interval on new data below, the interval over seeds; in rows."""


@dataclass(frozen=True)
class _Forest(Figure):
    """The differences of the arms to the baseline, as the table has them.

    Attributes:
        rows: The compared arms with their difference over seeds, the largest gain first.
    """

    compared: Comparison
    rows: tuple[tuple[Arm, Difference], ...]

    is_first: ClassVar[bool] = True

    @property
    def caption(self) -> str:
        metric, baseline = f"{self.compared.metric}{self.compared.where_scored}", self.compared.baseline
        band = " Band: differences that do not matter." if self.compared.care else ""
        has_new_data = any(arm.new_data for arm, _ in self.rows)
        second = " Thin: the interval on new data, for other seeds and other test items." if has_new_data else ""
        return (
            f"{metric} minus that of {baseline}. Diamond and thick line: the mean over seeds and its interval, "
            f"Holm-corrected as in the table.{second} Dots: the seeds. Grey: not significantly different from "
            f"{baseline}, which takes at least {FEW_SEEDS} seeds.{band}"
        )

    @property
    def alt(self) -> str:
        return f"{self.title}: {'; '.join(self._words(*row) for row in self.rows)}."

    @property
    def width(self) -> float:
        return 4.7  # a narrow screen shows all of it, with letters that can be read

    @property
    def height(self) -> float:
        return 0.75 + 0.32 * len(self.rows)

    def draw(self, canvas: Canvas) -> None:
        axes = canvas.subplots()
        axes.axvline(0, color=QUIET, linewidth=0.8)
        if care := self.compared.care:
            axes.axvspan(-care, care, color=QUIET, alpha=0.15, linewidth=0)
        for number, (arm, difference) in enumerate(self.rows):
            color = COLORS[0] if arm.decisive and arm.decisive.is_significant else QUIET
            above = [number - _OFFSET] * len(arm.by_seed)
            axes.plot(arm.by_seed, above, "o", color=color, markersize=3, alpha=0.8, markeredgewidth=0, zorder=3)
            for each, y, width in ((difference, number, 2.2), (arm.new_data, number + _OFFSET, 0.8)):
                if each and not math.isnan(each.interval.low):
                    ends = [each.interval.low, each.interval.high]
                    axes.plot(ends, [y, y], color=color, linewidth=width, solid_capstyle="butt")
            (mean,) = axes.plot(difference.interval.mean, number, "D", color=color, markersize=5.5, zorder=4)
            on_hover(mean, self._words(arm, difference))
        # Where all have the same suffix, the caption says it.
        is_same = all(arm.is_tuned for arm, _ in self.rows)
        names = (arm.arm if is_same else arm.name for arm, _ in self.rows)
        axes.set_yticks(range(len(self.rows)), [*map(shown_name, names)])
        axes.set_ylim(len(self.rows) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        # In the format of the scores: the sizes of differences do not show whether the scores are shares.
        label_in(self.compared.score_format, axes.xaxis, f"{self.compared.metric} minus {self.compared.baseline}")

    def _words(self, arm: Arm, difference: Difference) -> str:
        show = self.compared.score_format
        bounds = show.show_bounds(arm.new_data.interval, "+") if arm.new_data else ""
        new_data = f", on new data {bounds}" if bounds else ""  # one seed has no interval
        return f"{arm.name} {show.show_interval(difference.interval, '+')}{new_data}"


def forests(findings: Findings) -> Iterator[Figure]:
    """For each data set, encoder and variant of a study with two arms or more."""
    for name, compared in named("forest", comparisons(findings)):
        rows = [(arm, of) for arm in compared.primary if (of := arm.difference) and of.interval.num]
        if rows:
            rows.sort(key=lambda row: -gain(compared.metric, row[1].interval.mean))
            of_what = ", of the settings found by one search for each arm" if compared.is_one_search else ""
            title = f"Difference to {compared.baseline}{on_place(compared.place)}{of_what}"
            yield _Forest(name, title, compared, tuple(rows))


_LABELS = 0.5
"""Inches between the first label and the axis, without the bars."""


@dataclass(frozen=True)
class _Ranks(Figure):
    """The mean rank of each arm over data sets, the best first, in the diagram of Demsar (2006).

    Attributes:
        num_data_sets: Over how many data sets the ranks are means.
        ranks: The mean rank of each arm, 1 if it is the best on all data sets.
        critical: Two arms are told apart if their mean ranks differ by at least this.
        missing: The arms without a score in some study, or on some data set, encoder or variant, which are not ranked.
        at_threshold: `where_scored` of `Comparison`, if it is the same on all data sets.
    """

    num_data_sets: int
    ranks: tuple[tuple[str, float], ...]
    critical: float
    missing: tuple[str, ...] = ()
    at_threshold: str = ""

    is_first: ClassVar[bool] = True

    @property
    def groups(self) -> tuple[tuple[int, int], ...]:
        """The first and last place of each longest row of arms that are not told apart."""
        means = [mean for _, mean in self.ranks]
        ends = [max(other for other, mean in enumerate(means) if mean - first < self.critical) for first in means]
        return tuple(
            (start, end) for start, end in enumerate(ends) if end > start and (start == 0 or ends[start - 1] < end)
        )

    @property
    def caption(self) -> str:
        missing = (
            f" Not ranked, without a score in every study, data set, encoder and variant: {', '.join(self.missing)}."
            if self.missing
            else ""
        )
        return (
            f"Mean rank of each arm by its mean score{self.at_threshold}, over {self.num_data_sets} data sets (1 "
            "is the best; the variants of a data set count once). A bar joins arms that are not told apart: their mean "
            f"ranks differ by less than the critical difference of {self.critical:.2f} (Nemenyi's test at {ALPHA} over "
            f"all pairs, Demsar 2006).{missing}"
        )

    @property
    def alt(self) -> str:
        return f"{self.title}: {'; '.join(f'{arm} {mean:.2f}' for arm, mean in self.ranks)}."

    @property
    def height(self) -> float:
        return _LABELS + 0.12 * len(self.groups) + 0.2 * math.ceil(len(self.ranks) / 2)

    def draw(self, canvas: Canvas) -> None:
        axes = canvas.subplots()
        num, size = len(self.ranks), 0.12 * len(self.groups)
        for place, (arm, mean) in enumerate(self.ranks):
            is_left = place < (num + 1) // 2
            depth = size + _LABELS / 2 + 0.2 * (place if is_left else num - 1 - place)
            x = 1 - 0.1 * num if is_left else num + 0.1 * num
            axes.plot([mean, mean, x], [0, depth, depth], color=QUIET, linewidth=0.8)
            align = "right" if is_left else "left"
            axes.text(x, depth, f" {shown_name(arm)} {mean:.2f} ", ha=align, va="center")
        for number, (start, end) in enumerate(self.groups, start=1):
            low, high = self.ranks[start][1], self.ranks[end][1]
            axes.plot([low - 0.03, high + 0.03], [0.12 * number] * 2, color=COLORS[0], linewidth=3)
        axes.set_xlim(1 - 0.45 * num, num + 0.45 * num)
        axes.set_ylim(self.height - _LABELS / 2, 0)
        axes.set_yticks([])
        axes.set_xticks(range(1, num + 1))
        axes.xaxis.tick_top()
        for side in ("left", "bottom"):
            axes.spines[side].set_visible(False)
        axes.spines["top"].set_visible(True)
        axes.spines["top"].set_bounds(1, num)


def ranks(findings: Findings) -> Iterator[Figure]:
    """For a study on several data sets."""
    return ranks_of(comparisons(findings))


def ranks_of(compared: Sequence[Comparison]) -> Iterator[Figure]:
    """For comparisons on so many data sets that the best arm could be told apart from the worst one.

    Not where a data set is compared by several metrics.
    """
    if not has_one_metric_each(compared):
        return
    means = pd.DataFrame(
        [
            {"comparison": number, "arm": arm.arm, "mean": gain(each.metric, arm.score.mean)}
            for number, each in enumerate(compared)
            for arm in each.primary
        ],
        columns=["comparison", "arm", "mean"],
    )
    by_comparison = means.pivot_table("mean", "comparison", "arm", sort=False, dropna=False).dropna(how="all")
    if by_comparison.empty:
        return
    # Without its score on a hard variant, an arm would have the mean of the easy ones. Variants on which every arm
    # failed are left out for all arms.
    data = {number: place_of(each.cells, schema.DATA).iloc[0] for number, each in enumerate(compared)}
    by_data = by_comparison.dropna(axis="columns").groupby(by_comparison.index.map(data), sort=False).mean()
    ranked = by_data.rank(axis="columns", ascending=False).mean().sort_values(kind="stable")
    critical = _critical_difference(len(ranked), len(by_data))
    if not critical <= len(ranked) - 1:
        return
    missing = tuple(str(arm) for arm in by_comparison if arm not in ranked)
    pairs = tuple((str(arm), float(mean)) for arm, mean in ranked.items())
    first, *others = {each.where_scored for each in compared}
    at_threshold = "" if others else first
    yield _Ranks("ranks", "Mean ranks over data sets", len(by_data), pairs, critical, missing, at_threshold)


def _critical_difference(num_arms: int, num_data_sets: int) -> float:
    """Nemenyi's critical difference of mean ranks at `ALPHA`; infinite for fewer than two arms.

    >>> round(_critical_difference(4, 14), 2)  # Demsar 2006, section 3.2.5: q = 2.569
    1.25
    """
    if num_arms < 2:
        return math.inf
    from scipy import stats

    quantile = float(stats.studentized_range.ppf(1 - ALPHA, num_arms, np.inf)) / math.sqrt(2)
    return quantile * math.sqrt(num_arms * (num_arms + 1) / (6 * num_data_sets))
