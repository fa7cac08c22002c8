"""Figures of a sweep: the best score so far, and what mattered to each loss."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from analysis.figures.base import COLORS, QUIET, Figure, color_of, label_score, marker_of
from analysis.importance import LEAST_TRIALS, Branch, importances
from analysis.scores import constant, losses, said_by_parent, scores, states

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from analysis.found import Found

NUM_POINTS = 1000
"""Points that a page draws one by one; more become a picture within it."""


@dataclass(frozen=True)
class Trial:
    """One trial with a score, by its place in the order of their start."""

    number: int
    score: float
    state: str
    loss: str


@dataclass(frozen=True)
class BestSoFar(Figure):
    """The trials of a sweep, and the best score up to each.

    Attributes:
        constant: The score of the constant predictor, where it is stored.
    """

    metric: str
    trials: tuple[Trial, ...]
    constant: float | None

    @property
    def best(self) -> tuple[float, ...]:
        """After each trial."""
        return tuple(accumulate((trial.score for trial in self.trials), max))

    @property
    def caption(self) -> str:
        return (
            "Each trial by its best score on dev, filled where it ran to its end, hollow where it was stopped early; "
            "the line is the best so far. The search chose by this very score, so it is optimistic."
        )

    def draw(self, canvas: Canvas) -> None:
        from matplotlib.ticker import MaxNLocator

        axes = canvas.subplots()
        names = [trial.loss for trial in self.trials]
        colors, markers = color_of(names), marker_of(names)
        for name, color in colors.items():
            of_loss = [trial for trial in self.trials if trial.loss == name]
            look: dict[str, Any] = {
                "rasterized": len(self.trials) > NUM_POINTS,
                "s": 22,
                "marker": markers[name],
                "edgecolors": color,
                "linewidths": 1,
            }
            faces = [color if trial.state == "done" else "none" for trial in of_loss]
            places = [trial.number for trial in of_loss], [trial.score for trial in of_loss]
            axes.scatter(*places, facecolors=faces, zorder=3, **look)
            axes.scatter([], [], facecolors=color, label=name, **look)
        axes.step([trial.number for trial in self.trials], self.best, where="post", color=QUIET, lw=1.2, zorder=2)
        if self.constant is not None:
            axes.axhline(self.constant, color=QUIET, lw=0.8, ls=":", label="constant predictor")
        axes.set_xlabel("trial, in the order of their start")
        label_score(axes.yaxis, self.metric, (trial.score for trial in self.trials))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


def best_so_far(found: Found) -> list[Figure]:
    """Of a sweep with scored trials."""
    trials = found.frame[found.frame["kind"] == "trial"]
    if trials.empty:
        return []
    metric = said_by_parent(found.frame, "metric")
    score = scores(trials, metric).tolist()
    told = zip(score, states(trials), losses(trials), strict=True)
    scored = tuple(
        Trial(number, value, state, loss) for number, (value, state, loss) in enumerate(told, start=1) if value == value
    )
    if not scored:
        return []
    predictor = constant(trials, metric)
    return [BestSoFar("best_so_far", "The best so far", metric, scored, predictor.mean if predictor else None)]


@dataclass(frozen=True)
class Importance(Figure):
    """What mattered within each loss, a panel a loss.

    Attributes:
        left_out: The losses with too few trials to say anything, and how many they have.
    """

    branches: tuple[Branch, ...]
    left_out: tuple[tuple[str, int], ...]

    @property
    def caption(self) -> str:
        few = ", ".join(f"{name} ({num})" for name, num in self.left_out)
        return (
            "Importance by PED-ANOVA within the trials of each loss alone: how much a parameter decides whether a "
            "trial is among the best quarter. The mark is what the parameter stays below in 95 of 100 shufflings of "
            "the scores; a bar in grey does not pass it, and says nothing."
            + (f" Left out, with fewer than {LEAST_TRIALS} scored trials: {few}." if few else "")
        )

    @property
    def height(self) -> float:
        return 0.5 + sum(0.42 + 0.2 * len(branch.parameters) for branch in self.branches)

    def draw(self, canvas: Canvas) -> None:
        sizes = [1.6 + len(branch.parameters) for branch in self.branches]
        panels = canvas.subplots(len(self.branches), sharex=True, squeeze=False, height_ratios=sizes)[:, 0]
        for axes, branch in zip(panels, self.branches, strict=True):
            rows = range(len(branch.parameters))
            colors = [COLORS[0] if each.importance > each.by_chance else QUIET for each in branch.parameters]
            axes.barh(rows, [each.importance for each in branch.parameters], 0.6, color=colors)
            axes.scatter([each.by_chance for each in branch.parameters], rows, marker="|", s=60, color="black", lw=1)
            axes.set_yticks(rows, [each.path for each in branch.parameters])
            axes.set_title(f"{branch.loss}, {branch.num_trials} trials", loc="left")
            axes.invert_yaxis()
        panels[-1].set_xlabel("importance")


def importance(found: Found) -> list[Figure]:
    """Of a sweep with a loss that has trials enough."""
    branches, left_out = importances(found.frame)
    if not branches:
        return []
    return [Importance("importance", "What mattered to each loss", tuple(branches), tuple(left_out.items()))]
