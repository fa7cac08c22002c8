"""Precision-recall curves of a study: the precision of each arm at every recall, whatever the threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.comparison import comparisons
from analysis.figures.base import QUIET, Figure, label_score, looks_of, on_hover
from analysis.formats import PERCENT, named, on_place
from analysis.frames import unfailed
from dice_ray.tracking import schema

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from analysis.frames import Findings

RECALLS: Final = np.linspace(0, 1, 101)
NUM_ARMS: Final = 6
"""Arms drawn in colour beside the baseline; the others are thin grey lines."""


@dataclass(frozen=True)
class ArmCurve:
    """The mean curve of an arm over its seeds.

    Attributes:
        precision: At each of `RECALLS`.
        recall: At the threshold of .5.
        pr_auc: The area that MLflow stores, of the curve without interpolation.
    """

    arm: str
    precision: tuple[float, ...]
    recall: float
    pr_auc: float


@dataclass(frozen=True)
class PrecisionRecallCurves(Figure):
    """The curves of the arms.

    Attributes:
        curves: The largest area first.
        positives: The share of positive test items: the precision of guessing.
    """

    baseline: str
    curves: tuple[ArmCurve, ...]
    positives: float

    height: ClassVar[float] = 3.6

    @property
    def coloured(self) -> tuple[ArmCurve, ...]:
        """The baseline and the best other arms."""
        others = [curve.arm for curve in self.curves if curve.arm != self.baseline]
        return tuple(curve for curve in self.curves if curve.arm in {self.baseline, *others[:NUM_ARMS]})

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
            # The curve is drawn from point to point of RECALLS, and marked at the nearest one.
            mark = [round(curve.recall * (len(RECALLS) - 1))]
            (drawn,) = axes.plot(RECALLS, curve.precision, markevery=mark, clip_on=False, **look)
            on_hover(drawn, f"{curve.arm}, PR-AUC {PERCENT.show(curve.pr_auc)} %")
        axes.axhline(self.positives, color=QUIET, lw=0.8, ls=":")
        axes.set(xlim=(0, 1), ylim=(0, 1.02))
        label_score(axes.xaxis, "recall", [1.0])
        label_score(axes.yaxis, "precision", [1.0])
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


def pr_curves(findings: Findings) -> list[Figure]:
    """For each data set, encoder and variant of a study of two classes that stores the probabilities of its items."""
    figures: list[Figure] = []
    for name, compared in named("pr_curves", comparisons(findings)):
        areas = unfailed(compared.cells, schema.pr_auc_metric(compared.metric)).dropna()
        cells = compared.cells.loc[areas.index].assign(pr_auc=areas)
        curves, shares = [], []
        for arm, group in cells.groupby("arm"):
            items = [findings.items[id_] for id_ in group["id"] if id_ in findings.items]
            known = [of for of in items if schema.LABEL_PROBABILITY in of and _positives(of).any()]
            if known:
                curves.append(_curve(str(arm), known, float(group["pr_auc"].mean())))
                shares += [float(_positives(of).mean()) for of in known]
        if curves:
            curves.sort(key=lambda curve: -curve.pr_auc)
            title = f"Precision-recall curves{on_place(compared.place)}"
            share = float(np.mean(shares))
            figures.append(PrecisionRecallCurves(name, title, compared.baseline, tuple(curves), share))
    return figures


def _curve(arm: str, tables: list[pd.DataFrame], pr_auc: float) -> ArmCurve:
    precisions, recalls = [], []
    for items in tables:
        positives_N = _positives(items)
        of_label_N = items[schema.LABEL_PROBABILITY].to_numpy(float)
        # Rounded to the stored digits: otherwise 1 - 0.9 is less than 0.1, the probability of an equal item.
        of_positive_N = np.where(positives_N, of_label_N, 1 - of_label_N).round(9)
        precisions.append(interpolated_precision(of_positive_N, positives_N))
        recalls.append(items["tp"].sum() / positives_N.sum())
    return ArmCurve(arm, tuple(np.mean(precisions, axis=0).tolist()), float(np.mean(recalls)), pr_auc)


def _positives(items: pd.DataFrame) -> NDArray[np.bool_]:
    return (items["tp"] + items["fn"]).to_numpy() > 0


def interpolated_precision(
    probabilities_N: NDArray[np.floating], positives_N: NDArray[np.bool_]
) -> NDArray[np.floating]:
    """`precision_R`: the highest precision at each of `RECALLS` or a higher one (Manning et al. 2008, section 8.4).

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
    needed_R = np.ceil(RECALLS * tp_T[-1] - 1e-9)
    precision_R: NDArray[np.floating] = best_T[np.searchsorted(tp_T, needed_R)]
    return precision_R
