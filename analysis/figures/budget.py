"""The score of each arm by the number of settings that are tried: what tuning gains, and for which arm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from analysis.budget import AtBudget, at_budget
from analysis.figures.base import QUIET, Figure, Line, color_of, draw_line, label_score, marker_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from analysis.findings import Findings


@dataclass(frozen=True)
class ScoreByBudget(Figure):
    """The expected score of the best of n settings, a line for each arm.

    Attributes:
        budget: The number of settings at which the verdict compares.
    """

    metric: str
    baseline: str
    budget: int
    lines: tuple[Line, ...]

    is_first: ClassVar[bool] = True

    @property
    def caption(self) -> str:
        return (
            f"The expected {self.metric} of the run with the best dev score of n drawn settings, by n, with "
            "approximate 95 % intervals of each arm over settings and seeds, up to half of the settings. Those of two "
            "arms may overlap where their paired difference is significant: see the table. Dotted: the budget of the "
            "verdict."
        )

    @property
    def alt(self) -> str:
        ends = "; ".join(f"{line.name} from {line.y[0]:.4g} to {line.y[-1]:.4g}" for line in self.lines)
        return f"{self.title}: {ends}."

    def draw(self, canvas: Canvas) -> None:
        from matplotlib.ticker import MaxNLocator

        axes = canvas.subplots()
        names = [line.name for line in self.lines]
        colors, markers = color_of(names, self.baseline), marker_of(names)
        axes.axvline(self.budget, color=QUIET, linewidth=0.8, linestyle=":")
        for line in self.lines:
            draw_line(axes, line, colors[line.name], markers[line.name])
        axes.set_xlabel("settings tried (the best by dev counts)")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        label_score(axes.yaxis, self.metric, (y for line in self.lines for y in line.y))
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


def score_by_budget(findings: Findings) -> list[Figure]:
    """For each data set and encoder of a study of drawn settings."""
    studied = [each for each in at_budget(findings) if each.arms and each.num_draws > 1]
    return [
        ScoreByBudget(
            f"score_by_budget_{number}" if len(studied) > 1 else "score_by_budget",
            f"Score by tuning budget{f' on {each.place}' if each.place else ''}",
            each.metric,
            each.baseline,
            each.budget,
            _lines(each),
        )
        for number, each in enumerate(studied, start=1)
    ]


def _lines(of: AtBudget) -> tuple[Line, ...]:
    x = tuple(float(number) for number in range(1, of.num_draws + 1))
    parts = {
        arm.name: [tuple(getattr(score, part) for score in arm.scores) for part in ("mean", "low", "high")]
        for arm in of.arms
    }
    return tuple(Line(name, x, *of_arm) for name, of_arm in parts.items())
