"""The score of each arm by the number of settings that are tried: what tuning gains, and for which arm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from analysis.budget import at_budget
from analysis.budget_wording import format_at_budget
from analysis.comparison import CONSTANT
from analysis.figures.base import QUIET, Figure, Line, draw_lines, label_in
from analysis.formats import ScoreFormat, named, on_place

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from analysis.frames import Findings


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
