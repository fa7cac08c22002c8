"""Reliability of the probabilities of a study: the share of positives at each, before and after calibration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.comparison import comparisons
from analysis.figures.base import COLORS, QUIET, Figure, on_hover
from analysis.figures.precision_recall import of_positive_class, with_probabilities
from analysis.formats import PERCENT, named, on_place
from dice_ray.errors import counted
from dice_ray.tracking import schema

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from analysis.frames import Findings

_NUM_BINS: Final = 10
_LEAST_ITEMS: Final = 20
"""Test items in a bin at least: fewer say nothing about a share."""
_NUM_ARMS: Final = 6
_COLUMNS: Final = 3
_TICKS: Final = (0, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 1)


@dataclass(frozen=True)
class _Bin:
    """Items of neighbouring probabilities: their mean, and the share of positives with its Wilson interval."""

    probability: float
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class _Reliability(Figure):
    """The bins of each arm, the baseline first; those after calibration are empty without one."""

    arms: tuple[tuple[str, tuple[_Bin, ...], tuple[_Bin, ...]], ...]
    num_left_out: int

    @property
    def caption(self) -> str:
        after = " Hollow: the same after calibration on dev." if any(after for _, _, after in self.arms) else ""
        others = f" Not drawn: {counted(self.num_left_out, 'arm')} with worse scores." if self.num_left_out else ""
        return (
            "The share of positives on the test split by predicted probability, in bins of equally many items over all "
            "seeds of an arm, with 95 % Wilson intervals of as many items as one seed has. Dotted: probabilities that "
            f"are the shares. The ends of both axes are stretched.{after}{others}"
        )

    @property
    def alt(self) -> str:
        errors = (
            f"{arm} {PERCENT.show(_error(before))}" + (f", calibrated {PERCENT.show(_error(after))}" if after else "")
            for arm, before, after in self.arms
        )
        return f"{self.title}, mean distance of the probability from the share in %: {'; '.join(errors)}."

    @property
    def height(self) -> float:
        return 0.4 + 2.1 * math.ceil(len(self.arms) / _COLUMNS)

    def draw(self, canvas: Canvas) -> None:
        columns = min(_COLUMNS, len(self.arms))
        grid = canvas.subplots(math.ceil(len(self.arms) / columns), columns, sharex=True, sharey=True, squeeze=False)
        for axes in grid.flat[len(self.arms) :]:
            axes.remove()
        last = grid.flat[max(0, len(self.arms) - columns) : len(self.arms)]
        for axes, (arm, before, after) in zip(grid.flat, self.arms, strict=False):
            axes.plot([0, 1], [0, 1], color=QUIET, lw=0.8, ls=":")
            _draw(axes, arm, before, color=COLORS[0], marker="o")
            _draw(axes, arm, after, color=COLORS[1], marker="s", markerfacecolor="none")
            axes.set_title(arm, fontsize=7)
            labels = [f"{100 * tick:g}" for tick in _TICKS]
            axes.set_xscale("function", functions=(_stretched, _unstretched))
            axes.set_yscale("function", functions=(_stretched, _unstretched))
            axes.set_xticks(_TICKS, labels, fontsize=6)
            axes.set_yticks(_TICKS, labels, fontsize=6)
            axes.tick_params(labelbottom=axes in last)
        canvas.supxlabel("predicted probability (%)", fontsize=8)
        canvas.supylabel("positives (%)", fontsize=8)


def _draw(axes: Axes, arm: str, bins: Sequence[_Bin], **look: Any) -> None:
    if not bins:
        return
    x, y = [each.probability for each in bins], [each.share for each in bins]
    sizes = [[each.share - each.low for each in bins], [each.high - each.share for each in bins]]
    drawn = axes.errorbar(x, y, sizes, lw=0.9, elinewidth=0.9, markersize=3.5, **look)
    on_hover(drawn.lines[0], f"{arm}, mean distance {PERCENT.show(_error(bins))} %")


def _stretched(shares: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.asarray(np.arcsin(np.sqrt(np.clip(shares, 0, 1))))


def _unstretched(places: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.asarray(np.sin(np.clip(places, 0, np.pi / 2)) ** 2)


def _error(bins: Sequence[_Bin]) -> float:
    return float(np.mean([abs(each.probability - each.share) for each in bins]))


def reliability(findings: Findings) -> list[Figure]:
    """For each data set, encoder and variant of a study of two classes that stores the probabilities of its items."""
    figures: list[Figure] = []
    for name, compared in named("reliability", comparisons(findings)):
        tables = with_probabilities(compared, findings)
        arms = [arm.arm for arm in compared.primary if arm.arm in tables]
        drawn = tuple(
            (arm, _bins(tables[arm], schema.LABEL_PROBABILITY), _bins(tables[arm], schema.CALIBRATED_PROBABILITY))
            for arm in arms[:_NUM_ARMS]
        )
        if drawn:
            title = f"Reliability of the probabilities{on_place(compared.place)}"
            figures.append(_Reliability(name, title, drawn, len(arms) - len(drawn)))
    return figures


def _bins(tables: Sequence[pd.DataFrame], column: str) -> tuple[_Bin, ...]:
    """Bins of equally many items of all runs that store this probability; equal probabilities are in one bin."""
    known = [of_positive_class(items, column) for items in tables if column in items]
    if not known:
        return ()
    probabilities_N, positives_N = (np.concatenate(each) for each in zip(*known, strict=True))
    num = int(np.clip(len(probabilities_N) / len(known) / _LEAST_ITEMS, 1, _NUM_BINS))
    edges = np.unique(np.quantile(probabilities_N, np.arange(1, num) / num))
    of_bin_N = np.searchsorted(edges, probabilities_N)
    made = []
    for number in np.unique(of_bin_N):
        in_bin_N = of_bin_N == number
        share, size = float(positives_N[in_bin_N].mean()), in_bin_N.sum() / len(known)
        made.append(_Bin(float(probabilities_N[in_bin_N].mean()), share, *_wilson(share, float(size))))
    return tuple(made)


def _wilson(share: float, size: float) -> tuple[float, float]:
    """The 95 % interval of a share of so many items (Wilson 1927).

    >>> tuple(round(bound, 3) for bound in _wilson(0.0, 20))
    (0.0, 0.161)
    """
    z2 = 1.96**2
    middle, half = share + z2 / (2 * size), math.sqrt(z2 * (share * (1 - share) + z2 / (4 * size)) / size)
    # By rounding, an end at 0 or 1 would lie on the wrong side of the share, which matplotlib refuses to draw.
    return min(max((middle - half) / (1 + z2 / size), 0.0), share), max(
        min((middle + half) / (1 + z2 / size), 1.0), share
    )
