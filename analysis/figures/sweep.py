"""Figures of a sweep: the best score so far, and the importance of hyperparameters for each loss."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar

from analysis.comparison import CONSTANT
from analysis.figures.base import COLORS, INK, QUIET, Figure, label_in, legend_beside, legend_height, looks_of
from analysis.formats import ScoreFormat
from analysis.frames import Findings, constant, drawn_losses, has_objectives, scores, states
from analysis.sweep import LEAST_TRIALS, LossImportance, importances
from dice_ray.metrics.catalogue import metric as known_metric

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Canvas

NUM_POINTS = 1000
"""With more points, the SVG holds them as a bitmap."""


@dataclass(frozen=True)
class ScoredTrial:
    """A trial and its score, NaN without one, numbered by the order in which trials started."""

    number: int
    score: float
    state: str
    loss: str


@dataclass(frozen=True)
class _BestSoFar(Figure):
    """The trials of a sweep, and the best score up to each.

    Attributes:
        constant: The score of the constant predictor; None if it is not stored.
    """

    metric: str
    trials: tuple[ScoredTrial, ...]
    constant: float | None

    @property
    def best(self) -> tuple[float, ...]:
        """The best score up to each trial."""
        better = min if known_metric(self.metric).is_minimised else max
        return tuple(accumulate((trial.score for trial in self.trials), better))

    @property
    def height(self) -> float:
        return max(super().height, legend_height(1 + len({trial.loss for trial in self.trials})))

    caption: ClassVar[str] = (
        "The best dev score of each trial; filled: finished, hollow: stopped early; line: the best so far. The "
        "search selected trials by this same score, so it is optimistic."
    )

    def draw(self, canvas: Canvas) -> None:
        from matplotlib.ticker import MaxNLocator

        axes = canvas.subplots()
        for name, (color, marker) in looks_of(trial.loss for trial in self.trials).items():
            of_loss = [trial for trial in self.trials if trial.loss == name]
            look: dict[str, Any] = {
                "rasterized": len(self.trials) > NUM_POINTS,
                "s": 22,
                "marker": marker,
                "edgecolors": color,
                "linewidths": 1,
            }
            faces = [color if trial.state == "done" else "none" for trial in of_loss]
            places = [trial.number for trial in of_loss], [trial.score for trial in of_loss]
            axes.scatter(*places, facecolors=faces, zorder=3, **look)
            # For the legend alone: without it, the entry of a loss whose first trial is hollow would be hollow.
            axes.scatter([], [], facecolors=color, label=name, **look)
        axes.step([trial.number for trial in self.trials], self.best, where="post", color=QUIET, lw=1.2, zorder=2)
        if self.constant is not None:
            axes.axhline(self.constant, color=QUIET, lw=0.8, ls=":", label=CONSTANT)
        axes.set_xlabel("trial, in order of start")
        label_in(ScoreFormat.of(self.metric, (trial.score for trial in self.trials)), axes.yaxis, self.metric)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        legend_beside(canvas)


def scored_trials(trials: pd.DataFrame, metric: str) -> list[ScoredTrial]:
    """All trials, also those without a score."""
    rows = zip(scores(trials, metric), states(trials), drawn_losses(trials), strict=True)
    return [ScoredTrial(number, *row) for number, row in enumerate(rows, start=1)]


def best_so_far(findings: Findings) -> Iterator[Figure]:
    """The figure for a sweep with scored trials and one objective."""
    trials = findings.trials
    if trials.empty or has_objectives(findings.frame):
        return
    metric = findings.metric
    scored = tuple(trial for trial in scored_trials(trials, metric) if not math.isnan(trial.score))
    if not scored:
        return
    predictor = constant(trials, metric)
    yield _BestSoFar("best_so_far", "The best so far", metric, scored, predictor.mean if predictor else None)


@dataclass(frozen=True)
class _Importance(Figure):
    """The importance of hyperparameters, with a panel for each loss.

    Attributes:
        left_out: The losses with too few trials, and how many they have.
    """

    branches: tuple[LossImportance, ...]
    left_out: tuple[tuple[str, int], ...]

    @property
    def caption(self) -> str:
        few = ", ".join(f"{name} ({num})" for name, num in self.left_out)
        return (
            "Importance by PED-ANOVA, for the trials of each loss separately: how much a parameter decides whether a "
            "trial is among the best quarter. The marks are the levels that chance reaches: in 95 of 100 shufflings "
            "of the scores, no parameter of the sweep exceeds its mark. Grey bars do not exceed it."
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
            axes.scatter([each.by_chance for each in branch.parameters], rows, marker="|", s=60, color=INK, lw=1)
            axes.set_yticks(rows, [each.path for each in branch.parameters])
            axes.set_title(f"{branch.loss}, {branch.num_trials} trials", loc="left")
            axes.invert_yaxis()
        panels[-1].set_xlabel("importance")


def importance(findings: Findings) -> Iterator[Figure]:
    """The figure for a sweep with a loss that has enough trials."""
    branches, left_out = importances(findings.frame)
    if branches:
        title = "Hyperparameter importance for each loss"
        yield _Importance("importance", title, tuple(branches), tuple(left_out.items()))
