"""Slices: the score of the trials of a sweep by each setting that it searched.

Those of `optuna.visualization.matplotlib` were drawn beside these for a sweep of four losses, each with settings of its
own, and not used: in the width of a page their eleven panels and axes overlap, they show neither the losses nor the
trials that were stopped early, and they set a style of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from analysis.figures.base import INK, Figure, Look, label_in, looks_of, on_hover, panels_of
from analysis.figures.sweep import NUM_POINTS, ScoredTrial, scored_trials
from analysis.formats import ScoreFormat
from analysis.frames import Findings, has_objectives
from analysis.sweep import Setting, settings_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_NUM_SETTINGS: Final = 12
"""Settings that are drawn: those that most trials searched."""
_SPREAD: Final = 0.32
"""Trials with the same choice are spread over this share of the distance to the next choice, to each side."""
_COLUMNS: Final = 3
"""Panels of slices beside each other."""


@dataclass(frozen=True)
class _Slices(Figure):
    """The score of each trial by each setting alone, with a panel for each setting.

    Attributes:
        trials: The best first, as the table of the best trials ranks them.
        settings: Their values are in the order of the trials.
        left_out: The sentence about the settings that are not drawn; empty if all are.
    """

    metric: str
    trials: tuple[ScoredTrial, ...]
    settings: tuple[Setting, ...]
    left_out: str

    @property
    def alt(self) -> str:
        shown, best = ScoreFormat.of(self.metric, (trial.score for trial in self.trials)), self.trials[0]
        values = [
            f"{each.path} {_shown_value(value)}" for each in self.settings if (value := each.values[0]) is not None
        ]
        return (
            f"{self.title}: the best of {len(self.trials)} trials has {shown.heading(self.metric)} "
            f"{shown.show(best.score)} with {', '.join([f'loss {best.loss}', *values])}."
        )

    @property
    def caption(self) -> str:
        return (
            f"{self.metric} of each trial by its value of each setting; filled: finished, hollow: stopped early, "
            "ringed: the best trial. A panel has the trials that searched its setting. The search tries more values "
            f"where it has seen good scores, so dense regions are no evidence by themselves.{self.left_out}"
        )

    @property
    def height(self) -> float:
        return 0.7 + 1.45 * ceil(len(self.settings) / _COLUMNS)

    def draw(self, canvas: Canvas) -> None:
        every = panels_of(canvas, len(self.settings), _COLUMNS)
        looks = looks_of(trial.loss for trial in self.trials)
        for axes, setting in zip(every, self.settings, strict=True):
            self._draw(axes, setting, looks)
        label_in(ScoreFormat.of(self.metric, (trial.score for trial in self.trials)), every[0].yaxis, self.metric)
        canvas.supylabel(every[0].get_ylabel(), fontsize=8)
        every[0].set_ylabel("")
        if len(looks) > 1:
            for name, look in looks.items():
                every[0].scatter([], [], s=22, color=look.color, marker=look.marker, label=name)
            canvas.legend(loc="outside lower center", ncols=4)

    def _draw(self, axes: Axes, setting: Setting, looks: Mapping[str, Look]) -> None:
        points = [*zip(_positions(setting), self.trials, strict=True)]
        # Rare losses and the best trials last, on top of the others.
        for name, _ in Counter(trial.loss for trial in self.trials).most_common():
            of_loss = [(x, trial) for x, trial in reversed(points) if x is not None and trial.loss == name]
            look = looks[name]
            faces = [(look.color, 0.55) if trial.state == "done" else "none" for _, trial in of_loss]
            drawn: dict[str, Any] = {"facecolors": faces, "edgecolors": look.color, "marker": look.marker}
            xy = [x for x, _ in of_loss], [trial.score for _, trial in of_loss]
            axes.scatter(*xy, s=11, linewidths=0.6, rasterized=len(self.trials) > NUM_POINTS, **drawn)
        x, best = points[0]
        if x is not None:
            ring: dict[str, Any] = {"s": 60, "facecolors": "none", "edgecolors": INK, "linewidths": 1}
            axes.scatter([x], [best.score], clip_on=False, zorder=4, **ring)
        axes.margins(y=0.1)
        axes.tick_params(labelsize=6.5)
        if setting.scale == "choice":
            axes.set_xlim(-0.5, len(setting.choices) - 0.5)
            labels = [_shown_value(choice) for choice in setting.choices]
            is_wide = sum(map(len, labels)) > 24
            turned: dict[str, Any] = {"rotation": 25, "ha": "right", "rotation_mode": "anchor"} if is_wide else {}
            axes.set_xticks(range(len(labels)), labels, **turned)
        else:
            axes.set_xscale(setting.scale)
            axes.set_xticks(_ticks(setting), map(_shown_number, _ticks(setting)))
            axes.set_xticks([], minor=True)
        # The last names of the path, as many as fit above a panel.
        *above, shown = setting.path.split(".")
        while above and len(above[-1]) + 1 + len(shown) <= 32:
            shown = f"{above.pop()}.{shown}"
        on_hover(axes.set_title(f"…{shown}" if above else shown, loc="left", fontsize=7), setting.path)


def slices(findings: Findings) -> Iterator[Figure]:
    """The slices of a sweep with at least two scored trials and a setting of several values.

    None for a search for several objectives, of which no trial is the best one.
    """
    if len(findings.ranked) < 2 or has_objectives(findings.frame):
        return
    trials, metric = findings.trials, findings.metric
    by_id = dict(zip(trials["id"], scored_trials(trials, metric), strict=True))
    every = settings_of(trials.set_index("id").loc[list(findings.ranked)])
    # The sort is stable: of settings that equally many trials searched, the first of the space.
    most = sorted(every, key=lambda setting: setting.values.count(None))[:_NUM_SETTINGS]
    if not most:
        return
    others = ", ".join(setting.path for setting in every if setting not in most)
    left_out = f" Left out, searched by fewer trials: {others}." if others else ""
    ranked, drawn = (by_id[id_] for id_ in findings.ranked), (setting for setting in every if setting in most)
    yield _Slices("slices", "The score by each searched setting", metric, tuple(ranked), tuple(drawn), left_out)


def _positions(setting: Setting) -> list[float | None]:
    """The positions of the trials on an axis: values, or the numbers of choices with trials beside each other."""
    if setting.scale != "choice":
        return [None if isinstance(value, str) else value for value in setting.values]
    numbers = {choice: number for number, choice in enumerate(setting.choices)}
    # Multiples of the golden ratio, without their whole part, spread any number of points evenly.
    return [
        None if value is None else numbers[value] + _SPREAD * (2 * ((0.618 * rank + 0.5) % 1) - 1)
        for rank, value in enumerate(setting.values)
    ]


def _ticks(setting: Setting) -> list[float]:
    """Round numbers within the range of a numeric setting."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    numbers = [value for value in setting.values if isinstance(value, int | float)]
    low, high = min(numbers), max(numbers)
    # Between the decades too where there are few of them.
    decades = LogLocator(subs=(1, 3) if high < 1000 * low else (1,), numticks=8)
    locator = decades if setting.scale == "log" else MaxNLocator(4)
    return [float(tick) for tick in locator.tick_values(low, high) if low <= tick <= high]


def _shown_value(value: float | str) -> str:
    """A choice, or a number with three digits."""
    return value if isinstance(value, str) else _shown_number(float(f"{value:.3g}"))


def _shown_number(value: float) -> str:
    """A number in few letters: 0.01, 3e-5."""
    if value == 0 or abs(value) >= 0.001:
        return f"{value:g}"
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    return f"{float(mantissa):g}e{int(exponent)}"
