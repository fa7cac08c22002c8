"""Figures of the settings that a sweep searched: slices, and parallel coordinates."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pandas as pd

from analysis.columns import losses, parent_tag, scores, states
from analysis.figures.base import INK, QUIET, Figure, color_of, label_score, marker_of, on_hover
from analysis.figures.sweep import NUM_POINTS, ScoredTrial
from analysis.searched import Setting, settings_of
from analysis.tables.base import ScoreFormat

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from analysis.findings import Findings

NUM_SETTINGS: Final = 12
"""Settings that are drawn: those that most trials searched."""
COLUMNS: Final = 3
LONGEST: Final = 32
"""The longest path above a panel, in letters, and the longest line of choices below it."""
LONGEST_LINE: Final = 30
"""The longest line of a path beside an axis, in letters."""
NUM_BEST: Final = 5
"""Trials whose lines are emphasised."""
NUM_LINES: Final = 300
"""Lines that are drawn, those of the best trials."""
SPREAD: Final = 0.32
"""Trials with the same choice are spread over this share of the distance to the next choice, to each side."""
GOLDEN: Final = 0.618
"""Multiples of the golden ratio, without their whole part, spread any number of points evenly."""
NOT_SEARCHED: Final = -0.07
"""The place of trials that did not search a setting, beside its axis from 0 to 1."""


@dataclass(frozen=True)
class SettingsFigure(Figure):
    """The scored trials of a sweep, and what they searched.

    Attributes:
        trials: The best first, as the table of the best trials ranks them.
        settings: Their values are in the order of the trials.
        left_out: The paths of the settings that are not drawn.
    """

    fewer: ClassVar[str] = "fewer trials"
    """Which trials searched these."""

    metric: str
    trials: tuple[ScoredTrial, ...]
    settings: tuple[Setting, ...]
    left_out: tuple[str, ...]

    @property
    def alt(self) -> str:
        shown, best = self.score_format, self.trials[0]
        values = [f"{each.path} {_shown(value)}" for each in self.settings if (value := each.values[0]) is not None]
        return (
            f"{self.title}: the best of {len(self.trials)} trials has {shown.heading(self.metric)} "
            f"{shown.show(best.score)} with {', '.join([f'loss {best.loss}', *values])}."
        )

    @property
    def score_format(self) -> ScoreFormat:
        return ScoreFormat.of(pd.Series([trial.score for trial in self.trials]))

    @property
    def without(self) -> str:
        """The sentence about the settings that are not drawn; empty if all are."""
        return f" Left out, searched by {self.fewer}: {', '.join(self.left_out)}." if self.left_out else ""

    @classmethod
    def candidates(cls, settings: Sequence[Setting]) -> Sequence[Setting]:
        """The settings that the figure is about; their values are in the order of the trials, the best first."""
        return settings


@dataclass(frozen=True)
class Slices(SettingsFigure):
    """The score of each trial by each setting alone, with a panel for each setting."""

    @property
    def caption(self) -> str:
        return (
            f"{self.metric} of each trial by its value of each setting; filled: finished, hollow: stopped early, "
            "ringed: the best trial. A panel has the trials that searched its setting. The search tries more values "
            f"where it has seen good scores, so dense regions are no evidence by themselves.{self.without}"
        )

    @property
    def num_rows(self) -> int:
        return ceil(len(self.settings) / COLUMNS)

    @property
    def height(self) -> float:
        return 0.7 + 1.45 * self.num_rows

    def draw(self, canvas: Canvas) -> None:
        columns = min(COLUMNS, len(self.settings))
        grid = canvas.subplots(self.num_rows, columns, sharey=True, squeeze=False)
        names = [trial.loss for trial in self.trials]
        colors, markers = color_of(names), marker_of(names)
        for axes in grid.flat[len(self.settings) :]:
            axes.remove()
        for axes, setting in zip(grid.flat, self.settings, strict=False):
            self._draw(axes, setting, colors, markers)
        label_score(grid[0, 0].yaxis, self.metric, (trial.score for trial in self.trials))
        canvas.supylabel(grid[0, 0].get_ylabel(), fontsize=8)
        grid[0, 0].set_ylabel("")
        if len(colors) > 1:
            for name, color in colors.items():
                grid[0, 0].scatter([], [], s=22, color=color, marker=markers[name], label=name)
            canvas.legend(loc="outside lower center", ncols=4)

    def _draw(self, axes: Axes, setting: Setting, colors: dict[str, str], markers: dict[str, str]) -> None:
        points = [*zip(_places(setting), self.trials, strict=True)]
        # Rare losses and the best trials last, on top of the others.
        for name, _ in Counter(trial.loss for trial in self.trials).most_common():
            of_loss = [(x, trial) for x, trial in reversed(points) if x is not None and trial.loss == name]
            faces = [(colors[name], 0.55) if trial.state == "done" else "none" for _, trial in of_loss]
            look: dict[str, Any] = {"facecolors": faces, "edgecolors": colors[name], "marker": markers[name]}
            xy = [x for x, _ in of_loss], [trial.score for _, trial in of_loss]
            axes.scatter(*xy, s=11, linewidths=0.6, rasterized=len(self.trials) > NUM_POINTS, **look)
        x, best = points[0]
        if x is not None:
            ring: dict[str, Any] = {"s": 60, "facecolors": "none", "edgecolors": INK, "linewidths": 1}
            axes.scatter([x], [best.score], clip_on=False, zorder=4, **ring)
        axes.margins(y=0.1)
        axes.tick_params(labelsize=6.5)
        if setting.scale == "choice":
            axes.set_xlim(-0.5, len(setting.choices) - 0.5)
            labels = [_shown(choice) for choice in setting.choices]
            is_wide = sum(map(len, labels)) > LONGEST
            turned: dict[str, Any] = {"rotation": 25, "ha": "right", "rotation_mode": "anchor"} if is_wide else {}
            axes.set_xticks(range(len(labels)), labels, **turned)
        else:
            axes.set_xscale(setting.scale)
            axes.set_xticks(_ticks(setting), map("{:g}".format, _ticks(setting)))
            axes.set_xticks([], minor=True)
        on_hover(axes.set_title(_short(setting.path), loc="left", fontsize=7), setting.path)


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
        places_TR = zip(*map(_shares, self.rows), strict=True)
        lines = [[*zip(places_R, range(len(self.rows)), strict=True)] for places_R in places_TR]
        others = lines[NUM_BEST:NUM_LINES]
        # Many lines at the opacity that a few need would fill the axes.
        alpha = max(0.12, min(0.5, 20 / max(1, len(others))))
        axes.add_collection(LineCollection(others, colors=QUIET, lw=0.6, alpha=alpha, zorder=1))
        colors = color_of(trial.loss for trial in self.trials)
        best = [*enumerate(zip(lines, self.trials, strict=False))][:NUM_BEST]
        for rank, (line, trial) in reversed(best):
            x, y = zip(*line, strict=True)
            (drawn,) = axes.plot(x, y, color=colors[trial.loss], lw=1.1 if rank else 2.6, zorder=3)
            on_hover(drawn, f"trial {trial.number}, {trial.loss}")
        for row, setting in enumerate(self.rows):
            self._draw_axis(axes, row, setting)
        axes.set_yticks(range(len(self.rows)), [_in_lines(setting.path) for setting in self.rows])
        axes.set(xlim=(NOT_SEARCHED - 0.03, 1.02), ylim=(len(self.rows) - 0.45, -0.3), xticks=[])
        axes.get_yticklabels()[-1].set_fontweight("bold")
        axes.tick_params(axis="y", length=0)
        axes.spines[:].set_visible(False)

    def _draw_axis(self, axes: Axes, row: int, setting: Setting) -> None:
        text: dict[str, Any] = {"ha": "center", "va": "top", "fontsize": 6.5, "zorder": 4}
        if setting.scale == "choice":
            num = len(setting.choices)
            for number, choice in enumerate(setting.choices):
                ends = [(number + 0.5 + side * SPREAD) / num for side in (-1, 1)]
                axes.plot(ends, [row, row], color=INK, lw=1.5, solid_capstyle="butt", zorder=2)
                axes.text((number + 0.5) / num, row + 0.1, _shown(choice).replace("_", "\n"), **text)
        else:
            axes.plot([0, 1], [row, row], color=INK, lw=0.6, zorder=2)
            for tick in _ticks(setting):
                share = _share(setting, tick)
                axes.plot([share, share], [row, row + 0.07], color=INK, lw=0.6, zorder=2)
                axes.text(share, row + 0.1, f"{tick:g}", **text)
        if None in setting.values:
            axes.plot([NOT_SEARCHED - 0.012, NOT_SEARCHED + 0.012], [row, row], color=INK, lw=1.5, zorder=2)


def slices(findings: Findings) -> list[Figure]:
    """The slices of a sweep with at least two scored trials and a setting of several values."""
    return _figures(findings, Slices, "slices", "The score by each searched setting")


def parallel_coordinates(findings: Findings) -> list[Figure]:
    """The parallel coordinates of such a sweep."""
    return _figures(findings, ParallelCoordinates, "parallel_coordinates", "The settings of the best trials")


def _figures(findings: Findings, kind: type[SettingsFigure], name: str, title: str) -> list[Figure]:
    if len(findings.ranked) < 2:
        return []
    trials = findings.frame[findings.frame["kind"] == "trial"]
    metric = parent_tag(findings.frame, "metric")
    numbers = range(1, len(trials) + 1)
    rows = zip(numbers, scores(trials, metric), states(trials), losses(trials), strict=True)
    by_id = dict(zip(trials["id"], (ScoredTrial(*row) for row in rows), strict=True))
    every = settings_of(trials.set_index("id").loc[list(findings.ranked)])
    if not every:
        return []
    # The sort is stable: of settings that equally many trials searched, the first of the space.
    most = sorted(kind.candidates(every), key=lambda setting: setting.values.count(None))[:NUM_SETTINGS]
    return [
        kind(
            name,
            title,
            metric,
            tuple(by_id[id_] for id_ in findings.ranked),
            tuple(setting for setting in every if setting in most),
            tuple(setting.path for setting in every if setting not in most),
        )
    ]


def _places(setting: Setting) -> list[float | None]:
    """The places of the trials on an axis: values, or the numbers of choices with trials beside each other."""
    if setting.scale != "choice":
        return [None if isinstance(value, str) else value for value in setting.values]
    numbers = {choice: number for number, choice in enumerate(setting.choices)}
    return [
        None if value is None else numbers[value] + SPREAD * (2 * ((GOLDEN * rank + 0.5) % 1) - 1)
        for rank, value in enumerate(setting.values)
    ]


def _shares(setting: Setting) -> list[float]:
    """The places of the trials on an axis from 0 to 1."""
    return [NOT_SEARCHED if place is None else _share(setting, place) for place in _places(setting)]


def _share(setting: Setting, place: float) -> float:
    if setting.scale == "choice":
        return (place + 0.5) / len(setting.choices)
    low, high = _ends(setting)
    if setting.scale == "log":
        return log(place / low) / log(high / low)
    return (place - low) / (high - low) if high > low else 0.5


def _ends(setting: Setting) -> tuple[float, float]:
    numbers = [value for value in setting.values if isinstance(value, int | float)]
    return min(numbers), max(numbers)


def _ticks(setting: Setting) -> list[float]:
    from matplotlib.ticker import LogLocator, MaxNLocator

    low, high = _ends(setting)
    # Between the decades too where there are few of them.
    decades = LogLocator(subs=(1, 3) if high < 1000 * low else (1,), numticks=8)
    locator = decades if setting.scale == "log" else MaxNLocator(4)
    return [float(tick) for tick in locator.tick_values(low, high) if low <= tick <= high]


def _short(path: str) -> str:
    """The last names of a path, as many as fit above a panel."""
    *above, shown = path.split(".")
    while above and len(above[-1]) + 1 + len(shown) <= LONGEST:
        shown = f"{above.pop()}.{shown}"
    return f"…{shown}" if above else shown


def _in_lines(path: str) -> str:
    """A path in lines, broken after dots."""
    lines = textwrap.wrap(path.replace(".", ". "), LONGEST_LINE, break_long_words=False, break_on_hyphens=False)
    return "\n".join(line.replace(". ", ".") for line in lines)


def _shown(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.3g}"
