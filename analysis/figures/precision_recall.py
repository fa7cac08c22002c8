"""Precision and recall of a study: the arms at their threshold, and their curves over all thresholds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.comparison import Comparison, comparisons
from analysis.figures.base import QUIET, Figure, label_in, legend_beside, legend_height, looks_of, on_hover
from analysis.formats import PERCENT, named, on_place
from analysis.frames import Findings, collapsed, metric_values, scores, unfailed
from dice_ray.tracking import schema

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

_RECALLS: Final = np.linspace(0, 1, 101)
_NUM_ARMS: Final = 6
"""Arms drawn in colour beside the baseline; the others are thin grey lines."""


@dataclass(frozen=True)
class _ArmCurve:
    """The mean curve of an arm over its seeds.

    Attributes:
        precision: At each of `_RECALLS`.
        recall: At the threshold of .5.
        pr_auc: The area that MLflow stores, of the curve without interpolation.
    """

    arm: str
    precision: tuple[float, ...]
    recall: float
    pr_auc: float


@dataclass(frozen=True)
class _PrecisionRecallCurves(Figure):
    """The curves of the arms.

    Attributes:
        curves: The largest area first.
        positives: The share of positive test items: the precision of guessing.
    """

    baseline: str
    curves: tuple[_ArmCurve, ...]
    positives: float

    height: ClassVar[float] = 3.6

    @property
    def coloured(self) -> tuple[_ArmCurve, ...]:
        """The baseline and the best other arms."""
        others = [curve.arm for curve in self.curves if curve.arm != self.baseline]
        return tuple(curve for curve in self.curves if curve.arm in {self.baseline, *others[:_NUM_ARMS]})

    @property
    def caption(self) -> str:
        num_grey = len(self.curves) - len(self.coloured)
        return (
            "Precision of the positive class on the test split at each recall, as the threshold falls from 1 to 0: the "
            "mean over seeds of the highest precision at that recall or a higher one. The mark is the mean recall at "
            "the threshold of .5: arms whose curves coincide differ in their threshold alone. In brackets: the mean "
            "PR-AUC in %. Dotted: the share of positives, the precision of guessing."
            + (f" Thin grey: the {num_grey} arms with smaller areas." if num_grey else "")
        )

    @property
    def alt(self) -> str:
        areas = (f"{curve.arm} {PERCENT.show(curve.pr_auc)}" for curve in self.curves)
        return f"{self.title}, PR-AUC in %: {', '.join(areas)}."

    def draw(self, canvas: Canvas) -> None:
        axes = canvas.subplots()
        looks = looks_of((curve.arm for curve in self.curves), self.baseline)
        for curve in self.curves:
            look: dict[str, Any] = {"color": QUIET, "lw": 0.6, "alpha": 0.6}
            if curve in self.coloured:
                area = f"{curve.arm} ({PERCENT.show(curve.pr_auc)})"
                look = {**looks[curve.arm]._asdict(), "zorder": 3, "label": area}
            # The curve is drawn from point to point of _RECALLS, and marked at the nearest one.
            mark = [round(curve.recall * (len(_RECALLS) - 1))]
            (drawn,) = axes.plot(_RECALLS, curve.precision, markevery=mark, clip_on=False, **look)
            on_hover(drawn, f"{curve.arm}, PR-AUC {PERCENT.show(curve.pr_auc)} %")
        axes.axhline(self.positives, color=QUIET, lw=0.8, ls=":")
        axes.set(xlim=(0, 1), ylim=(0, 1.02))
        label_in(PERCENT, axes.xaxis, "recall")
        label_in(PERCENT, axes.yaxis, "precision")
        legend_beside(canvas)


def pr_curves(findings: Findings) -> Iterator[Figure]:
    """For each data set, encoder and variant of a study of two classes that stores the probabilities of its items."""
    for name, compared in named("pr_curves", comparisons(findings)):
        areas = unfailed(compared.cells, schema.sibling(compared.metric, "pr_auc")).dropna()
        curves, shares = [], []
        for arm, known in with_probabilities(compared, findings).items():
            curves.append(_curve(arm, known, float(areas[compared.cells["arm"] == arm].mean())))
            shares += [float(_positives(of).mean()) for of in known]
        if curves:
            curves.sort(key=lambda curve: -curve.pr_auc)
            title = f"Precision-recall curves{on_place(compared.place)}"
            share = float(np.mean(shares))
            yield _PrecisionRecallCurves(name, title, compared.baseline, tuple(curves), share)


def _curve(arm: str, tables: list[pd.DataFrame], pr_auc: float) -> _ArmCurve:
    precisions, recalls = [], []
    for items in tables:
        of_positive_N, positives_N = of_positive_class(items)
        precisions.append(_interpolated_precision(of_positive_N, positives_N))
        recalls.append(items["tp"].sum() / positives_N.sum())
    return _ArmCurve(arm, tuple(np.mean(precisions, axis=0).tolist()), float(np.mean(recalls)), pr_auc)


def with_probabilities(compared: Comparison, findings: Findings) -> dict[str, list[pd.DataFrame]]:
    """The items of the cells of each arm that store their probabilities, of two classes with a positive one."""
    scored = unfailed(compared.cells, schema.sibling(compared.metric, "pr_auc")).notna()
    by_arm: dict[str, list[pd.DataFrame]] = {}
    for arm, id_ in compared.cells.loc[scored, ["arm", "id"]].itertuples(index=False, name=None):
        items = findings.items.get(id_)
        if items is not None and schema.LABEL_PROBABILITY in items and _positives(items).any():
            by_arm.setdefault(str(arm), []).append(items)
    return by_arm


def of_positive_class(
    items: pd.DataFrame, column: str = schema.LABEL_PROBABILITY
) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
    """The probability that each item is positive, from that of its label, and whether it is."""
    positives_N, of_label_N = _positives(items), items[column].to_numpy(float)
    # Rounded: otherwise 1 - 0.9 is less than 0.1, the probability of an equal item.
    return np.where(positives_N, of_label_N, 1 - of_label_N).round(15), positives_N


def _positives(items: pd.DataFrame) -> NDArray[np.bool_]:
    return (items["tp"] + items["fn"]).to_numpy() > 0


def _interpolated_precision(
    probabilities_N: NDArray[np.floating], positives_N: NDArray[np.bool_]
) -> NDArray[np.floating]:
    """`precision_R`: the highest precision at each of `_RECALLS` or a higher one (Manning et al. 2008, section 8.4).

    Args:
        probabilities_N: Of the positive class.
        positives_N: Which items are positive; at least one.
    """
    values, of_value = np.unique(-probabilities_N, return_inverse=True)
    # True positives and predicted ones at each threshold, the highest first; items of equal probability share one.
    tp_T = np.bincount(of_value, positives_N, len(values)).cumsum()
    predicted_T = np.bincount(of_value, minlength=len(values)).cumsum()
    best_T = np.maximum.accumulate((tp_T / predicted_T)[::-1])[::-1]
    # In true positives, because 0.3 of 10 positives are 3 but as floats a little more.
    needed_R = np.ceil(_RECALLS * tp_T[-1] - 1e-9)
    precision_R: NDArray[np.floating] = best_T[np.searchsorted(tp_T, needed_R)]
    return precision_R


@dataclass(frozen=True)
class _ArmPoint:
    """The mean precision and recall of an arm.

    Attributes:
        seeds: Precision and recall of each cell that predicts both classes.
        collapsed: The same of each cell that predicts one class only.
    """

    arm: str
    precision: float
    recall: float
    seeds: tuple[tuple[float, float], ...]
    collapsed: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class _Plane(Figure):
    """Precision against recall of the arms."""

    baseline: str
    points: tuple[_ArmPoint, ...]
    at_threshold: str = ""

    @property
    def living(self) -> tuple[_ArmPoint, ...]:
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

    @property
    def height(self) -> float:
        return max(3.6, legend_height(len(self.points)))

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
            (mean,) = axes.plot(point.recall, point.precision, markersize=7, zorder=3, label=point.arm, **look)
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
        label_in(PERCENT, axes.xaxis, "recall")
        label_in(PERCENT, axes.yaxis, "precision")
        legend_beside(canvas)


def planes(findings: Findings) -> Iterator[Figure]:
    """For each data set, encoder and variant of a study that stores precision and recall."""
    for name, compared in named("precision_recall", comparisons(findings)):
        points = [_point(str(arm), group, compared.metric) for arm, group in compared.cells.groupby("arm")]
        points = sorted(filter(_num_runs, points), key=lambda point: -point.precision)
        if any(point.seeds for point in points):
            title = f"Precision and recall{on_place(compared.place)}"
            yield _Plane(name, title, compared.baseline, tuple(points), compared.decision.untuned)


def _point(arm: str, cells: pd.DataFrame, metric: str) -> _ArmPoint:
    scored = scores(cells, metric).notna()
    both = pd.DataFrame({name: metric_values(cells, f"test/{name}") for name in ("precision", "recall")})
    both = both[scored].astype("float64").dropna()
    is_collapsed = collapsed(cells, metric)[both.index]
    return _ArmPoint(
        arm,
        *both.mean(),
        *(tuple(of.itertuples(index=False, name=None)) for of in (both[~is_collapsed], both[is_collapsed])),
    )


def _words(point: _ArmPoint) -> str:
    num = f", {len(point.collapsed)} of {_num_runs(point)} runs collapsed" if point.collapsed else ""
    return f"{point.arm} precision {PERCENT.show(point.precision)}, recall {PERCENT.show(point.recall)}{num}"


def _num_runs(point: _ArmPoint) -> int:
    return len(point.seeds) + len(point.collapsed)
