"""Slices of a sweep: the score of each trial by each searched setting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from analysis.figures.base import INK, Figure, Look, label_score, looks_of, on_hover
from analysis.figures.settings import SettingsFigure, positions, settings_figures, shown_number, shown_value, ticks
from analysis.figures.sweep import NUM_POINTS
from analysis.sweep import Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from analysis.frames import Findings

COLUMNS: Final = 3
LONGEST: Final = 32
"""The longest path above a panel, in letters."""
LONGEST_CHOICES: Final = 24
"""The longest line of choices below a panel, in letters; longer ones are turned."""


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
        looks = looks_of(trial.loss for trial in self.trials)
        for axes in grid.flat[len(self.settings) :]:
            axes.remove()
        for axes, setting in zip(grid.flat, self.settings, strict=False):
            self._draw(axes, setting, looks)
        label_score(grid[0, 0].yaxis, self.metric, (trial.score for trial in self.trials))
        canvas.supylabel(grid[0, 0].get_ylabel(), fontsize=8)
        grid[0, 0].set_ylabel("")
        if len(looks) > 1:
            for name, look in looks.items():
                grid[0, 0].scatter([], [], s=22, color=look.color, marker=look.marker, label=name)
            canvas.legend(loc="outside lower center", ncols=4)

    def _draw(self, axes: Axes, setting: Setting, looks: Mapping[str, Look]) -> None:
        points = [*zip(positions(setting), self.trials, strict=True)]
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
            labels = [shown_value(choice) for choice in setting.choices]
            is_wide = sum(map(len, labels)) > LONGEST_CHOICES
            turned: dict[str, Any] = {"rotation": 25, "ha": "right", "rotation_mode": "anchor"} if is_wide else {}
            axes.set_xticks(range(len(labels)), labels, **turned)
        else:
            axes.set_xscale(setting.scale)
            axes.set_xticks(ticks(setting), map(shown_number, ticks(setting)))
            axes.set_xticks([], minor=True)
        on_hover(axes.set_title(_short(setting.path), loc="left", fontsize=7), setting.path)


def slices(findings: Findings) -> list[Figure]:
    """The slices of a sweep with at least two scored trials and a setting of several values."""
    return settings_figures(findings, Slices, "slices", "The score by each searched setting")


def _short(path: str) -> str:
    """The last names of a path, as many as fit above a panel."""
    *above, shown = path.split(".")
    while above and len(above[-1]) + 1 + len(shown) <= LONGEST:
        shown = f"{above.pop()}.{shown}"
    return f"…{shown}" if above else shown
