"""Parallel coordinates of a sweep: a line for each trial through its settings down to its score."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any, Final

from analysis.figures.base import INK, QUIET, Figure, looks_of, on_hover
from analysis.figures.settings import (
    SPREAD,
    SettingsFigure,
    ends,
    positions,
    settings_figures,
    shown_number,
    shown_value,
    ticks,
)
from analysis.sweep import Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from analysis.frames import Findings

NUM_BEST: Final = 5
"""Trials whose lines are emphasised."""
NUM_LINES: Final = 300
"""Lines that are drawn: those of the best trials."""
LONGEST_LINE: Final = 30
"""The longest line of a path beside an axis, in letters."""
NOT_SEARCHED: Final = -0.07
"""The place of trials that did not search a setting, beside its axis from 0 to 1."""


@dataclass(frozen=True)
class ParallelCoordinates(SettingsFigure):
    """A line for each trial through its settings down to its score."""

    fewer = f"none of the {NUM_BEST} best trials or by fewer trials"

    @classmethod
    def candidates(cls, settings: Sequence[Setting]) -> Sequence[Setting]:
        """The settings of the best trials: in those of other losses, all lines in colour would lie at the dash."""
        return [each for each in settings if any(value is not None for value in each.values[:NUM_BEST])]

    @property
    def rows(self) -> tuple[Setting, ...]:
        """The settings, before them the loss where the sweep chose it, and the score at the end."""
        names = tuple(trial.loss for trial in self.trials)
        loss = [Setting("loss", "choice", names)] if len(set(names)) > 1 else []
        factor = 100 if self.score_format.percent else 1
        scores = tuple(factor * trial.score for trial in self.trials)
        return (*loss, *self.settings, Setting(self.score_format.heading(self.metric), "linear", scores))

    @property
    def has_gaps(self) -> bool:
        return any(None in setting.values for setting in self.settings)

    @property
    def caption(self) -> str:
        first = f" (the {NUM_LINES} best)" if len(self.trials) > NUM_LINES else ""
        dash = " At the dash left of an axis: trials without the setting." if self.has_gaps else ""
        several = f"the {NUM_BEST} best trials" if len(self.trials) > NUM_BEST else "the best trials"
        return (
            f"A line for each trial{first} through the values of its settings down to its score. In colour: {several}, "
            f"thick the first one, as the table ranks them.{dash}{self.without}"
        )

    @property
    def height(self) -> float:
        return 0.5 + 0.5 * len(self.rows)

    def draw(self, canvas: Canvas) -> None:
        from matplotlib.collections import LineCollection

        axes = canvas.subplots()
        shares_TR = zip(*map(_shares, self.rows), strict=True)
        lines = [[*zip(shares_R, range(len(self.rows)), strict=True)] for shares_R in shares_TR]
        others = lines[NUM_BEST:NUM_LINES]
        # Many lines at the opacity that a few need would fill the axes.
        alpha = max(0.12, min(0.5, 20 / max(1, len(others))))
        axes.add_collection(LineCollection(others, colors=QUIET, lw=0.6, alpha=alpha, zorder=1))
        looks = looks_of(trial.loss for trial in self.trials)
        best = [*enumerate(zip(lines, self.trials, strict=False))][:NUM_BEST]
        for rank, (line, trial) in reversed(best):
            x, y = zip(*line, strict=True)
            (drawn,) = axes.plot(x, y, color=looks[trial.loss].color, lw=1.1 if rank else 2.6, zorder=3)
            on_hover(drawn, f"trial {trial.number}, {trial.loss}")
        for row, setting in enumerate(self.rows):
            self._draw_axis(axes, row, setting)
        axes.set_yticks(range(len(self.rows)), [_in_lines(setting.path) for setting in self.rows])
        axes.set(
            xlim=(NOT_SEARCHED - 0.03 if self.has_gaps else -0.02, 1.02), ylim=(len(self.rows) - 0.45, -0.3), xticks=[]
        )
        axes.get_yticklabels()[-1].set_fontweight("bold")
        axes.tick_params(axis="y", length=0)
        axes.spines[:].set_visible(False)

    def _draw_axis(self, axes: Axes, row: int, setting: Setting) -> None:
        text: dict[str, Any] = {"ha": "center", "va": "top", "fontsize": 6.5, "zorder": 4}
        if setting.scale == "choice":
            num = len(setting.choices)
            for number, choice in enumerate(setting.choices):
                sides = [(number + 0.5 + side * SPREAD) / num for side in (-1, 1)]
                axes.plot(sides, [row, row], color=INK, lw=1.5, solid_capstyle="butt", zorder=2)
                axes.text((number + 0.5) / num, row + 0.1, shown_value(choice).replace("_", "\n"), **text)
        else:
            axes.plot([0, 1], [row, row], color=INK, lw=0.6, zorder=2)
            for tick in ticks(setting):
                share = _share(setting, tick)
                axes.plot([share, share], [row, row + 0.07], color=INK, lw=0.6, zorder=2)
                axes.text(share, row + 0.1, shown_number(tick), **text)
        if None in setting.values:
            axes.plot([NOT_SEARCHED - 0.012, NOT_SEARCHED + 0.012], [row, row], color=INK, lw=1.5, zorder=2)


def parallel_coordinates(findings: Findings) -> list[Figure]:
    """The lines of a sweep with at least two scored trials and a setting of several values."""
    return settings_figures(findings, ParallelCoordinates, "parallel_coordinates", "The settings of the best trials")


def _shares(setting: Setting) -> list[float]:
    """The positions of the trials on an axis from 0 to 1."""
    return [NOT_SEARCHED if position is None else _share(setting, position) for position in positions(setting)]


def _share(setting: Setting, position: float) -> float:
    if setting.scale == "choice":
        return (position + 0.5) / len(setting.choices)
    low, high = ends(setting)
    if setting.scale == "log":
        return log(position / low) / log(high / low)
    return (position - low) / (high - low) if high > low else 0.5


def _in_lines(path: str) -> str:
    """A path in lines, broken after dots."""
    lines = textwrap.wrap(path.replace(".", ". "), LONGEST_LINE, break_long_words=False, break_on_hyphens=False)
    return "\n".join(line.replace(". ", ".") for line in lines)
