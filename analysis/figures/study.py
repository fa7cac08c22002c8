"""Figures of a study: precision against recall, and the effect of Tversky's alpha."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from analysis.comparison import comparisons
from analysis.figures.base import QUIET, Figure, Line, draw_line, label_in, label_score, looks_of, on_hover
from analysis.formats import PERCENT, ScoreFormat, named, on_place
from analysis.frames import by_seed, collapsed, metric_values, param_values, scores, test_per_train
from analysis.statistics.intervals import Interval, t_interval
from dice_ray.metrics import catalogue
from dice_ray.tracking import schema

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from analysis.frames import Findings

ALPHA = "loss.tversky.alpha"


@dataclass(frozen=True)
class ArmPoint:
    """The precision and recall of an arm.

    Attributes:
        seeds: Precision and recall of each cell that predicts both classes.
        collapsed: The same of each cell that predicts one class only.
    """

    arm: str
    precision: Interval
    recall: Interval
    seeds: tuple[tuple[float, float], ...]
    collapsed: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Plane(Figure):
    """Precision against recall of the arms."""

    baseline: str
    points: tuple[ArmPoint, ...]
    at_threshold: str = ""

    @property
    def living(self) -> tuple[ArmPoint, ...]:
        """The arms that predict both classes in some cell; the axes show their range."""
        return tuple(point for point in self.points if point.seeds)

    @property
    def caption(self) -> str:
        has_collapsed = any(point.collapsed for point in self.points)
        return (
            f"Precision and recall on the test split{self.at_threshold}. Large: the mean of each arm over its "
            "seeds; small: each seed. Lines join points of equal F1."
            + (" Hollow, moved to the edge if outside: runs that predict one class only." if has_collapsed else "")
        )

    @property
    def alt(self) -> str:
        return f"{self.title}: {'; '.join(map(_words, self.points))}."

    height: ClassVar[float] = 3.6

    def draw(self, canvas: Canvas) -> None:
        axes = canvas.subplots()
        looks: dict[str, dict[str, Any]] = {
            name: {**look._asdict(), "linestyle": "none"}
            for name, look in looks_of((point.arm for point in self.points), self.baseline).items()
        }
        for point in self.living:
            precisions, recalls = zip(*point.seeds, strict=True)
            look = looks[point.arm]
            axes.plot(recalls, precisions, markersize=3, alpha=0.6, zorder=2, **look)
            (mean,) = axes.plot(
                point.recall.mean, point.precision.mean, markersize=7, zorder=3, label=point.arm, **look
            )
            on_hover(mean, _words(point))
        axes.margins(0.08)
        # The lines of equal F1 and the collapsed runs must not widen the range of the others.
        axes.autoscale_view()
        axes.autoscale(False)
        for point in self.points:
            if point.collapsed:
                precision_N, recall_N = np.array(point.collapsed).T
                look = {**looks[point.arm], "markerfacecolor": "none", "markersize": 5, "clip_on": False}
                if not point.seeds:
                    look["label"] = f"{point.arm} (collapsed)"
                axes.plot(recall_N.clip(*axes.get_xlim()), precision_N.clip(*axes.get_ylim()), zorder=4, **look)
        recall_R, precision_P = np.linspace(*axes.get_xlim(), 200), np.linspace(*axes.get_ylim(), 200)
        recall_PR, precision_PR = np.meshgrid(recall_R.clip(1e-6), precision_P.clip(1e-6))
        f1_PR = 2 * recall_PR * precision_PR / (recall_PR + precision_PR)
        lines = axes.contour(recall_R, precision_P, f1_PR, 6, colors=QUIET, linewidths=0.5, alpha=0.7, zorder=1)
        axes.clabel(lines, fmt=lambda f1: f"F1 {100 * f1:.3g}", fontsize=6.5)
        # Precision and recall are shares whatever the study's metric is: 1.0 stands for their scale.
        label_score(axes.xaxis, "recall", [1.0])
        label_score(axes.yaxis, "precision", [1.0])
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


def planes(findings: Findings) -> list[Figure]:
    """For each data set, encoder and variant of a study that stores precision and recall."""
    figures: list[Figure] = []
    for name, compared in named("precision_recall", comparisons(findings)):
        points = [_point(str(arm), group, compared.metric) for arm, group in compared.cells.groupby("arm")]
        points = sorted((point for point in points if point.precision.num), key=lambda point: -point.precision.mean)
        if any(point.seeds for point in points):
            title = f"Precision and recall{on_place(compared.place)}"
            figures.append(Plane(name, title, compared.baseline, tuple(points), compared.at_threshold))
    return figures


def _point(arm: str, cells: pd.DataFrame, metric: str) -> ArmPoint:
    scored = scores(cells, metric).notna()
    both = pd.DataFrame({name: metric_values(cells, f"test/{name}") for name in ("precision", "recall")})
    both = both[scored].astype("float64").dropna()
    is_collapsed = collapsed(cells, metric)[both.index]
    return ArmPoint(
        arm,
        t_interval(both["precision"].tolist(), test_per_train(cells)),
        t_interval(both["recall"].tolist(), test_per_train(cells)),
        *(tuple(of.itertuples(index=False, name=None)) for of in (both[~is_collapsed], both[is_collapsed])),
    )


def _words(point: ArmPoint) -> str:
    num = f", {len(point.collapsed)} of {point.precision.num} runs collapsed" if point.collapsed else ""
    return f"{point.arm} precision {PERCENT.show(point.precision.mean)}, recall {PERCENT.show(point.recall.mean)}{num}"


@dataclass(frozen=True)
class AlphaPanel:
    """Precision, recall and score by alpha, for one scope of the Tversky loss."""

    name: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class TverskyAlpha(Figure):
    """The effect of alpha on precision, recall and score, with a panel for each scope of the loss."""

    panels: tuple[AlphaPanel, ...]

    height: ClassVar[float] = 2.8
    caption: ClassVar[str] = (
        "Tversky loss: alpha weighs false positives, beta = 1 - alpha false negatives, so that precision should "
        "rise with alpha and recall fall. Means over seeds with 95 % intervals."
    )

    def draw(self, canvas: Canvas) -> None:
        many = canvas.subplots(1, len(self.panels), sharey=True, squeeze=False)[0]
        for axes, panel in zip(many, self.panels, strict=True):
            looks = looks_of(line.name for line in panel.lines)
            for line in panel.lines:
                draw_line(axes, line, looks[line.name])
            axes.set(title=panel.name, xlabel="alpha")
            percent = all(ScoreFormat.of(line.name, line.y).percent for line in panel.lines)
            label_in(ScoreFormat(percent=percent), axes.yaxis, "")
        many[-1].legend(loc="best")


def tversky_alpha(findings: Findings) -> list[Figure]:
    """For a study whose arms differ in alpha."""
    figures: list[Figure] = []
    for name, compared in named("tversky_alpha", comparisons(findings)):
        cells, score = compared.cells[param_values(compared.cells, ALPHA).notna()], compared.metric
        sums = param_values(cells, ALPHA) + param_values(cells, "loss.tversky.beta")
        cells = cells[sums.isna() | ((sums - 1).abs() < 1e-9)]  # where beta is another one, alpha alone says little
        panels = []
        for scope, group in cells.groupby(param_values(cells, "loss.tversky.scope").astype("str")):
            # Two arms of one alpha differ in something else, so that their mean belongs to neither.
            if (
                param_values(group, ALPHA).nunique() > 2
                and not group.duplicated([schema.param_column(ALPHA), "seed"]).any()
            ):
                metrics = {"precision": "test/precision", "recall": "test/recall", score.partition("/")[2]: score}
                lines = [_by_alpha(label, group, metric) for label, metric in metrics.items()]
                panels.append(AlphaPanel(f"scope: {scope}", tuple(line for line in lines if line.x)))
        if panels:
            figures.append(TverskyAlpha(name, f"Tversky's alpha{on_place(compared.place)}", tuple(panels)))
    return figures


def _by_alpha(name: str, cells: pd.DataFrame, metric: str) -> Line:
    """The mean of a metric over seeds for each alpha, with its interval."""
    score = scores(cells, metric)
    points = {
        float(alpha): t_interval(list(scored.values()), test_per_train(group), catalogue.metric(metric).limits)
        for alpha, group in cells.groupby(param_values(cells, ALPHA))
        if (scored := by_seed(score[group.index], group["seed"]))
    }
    return Line.through(name, points)
