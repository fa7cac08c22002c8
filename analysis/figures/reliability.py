"""Reliability of the probabilities of a study: the share of positives at each, before and after calibration."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.comparison import comparisons
from analysis.figures.base import COLORS, QUIET, Figure, Line, on_hover, panels_of, shown_name
from analysis.figures.precision_recall import of_positive_class, with_probabilities
from analysis.formats import PERCENT, named, on_place
from analysis.frames import Findings
from analysis.statistics.intervals import Interval
from dice_ray.errors import counted
from dice_ray.tracking import schema

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_NUM_BINS: Final = 10
_LEAST_ITEMS: Final = 20
"""Test items in a bin at least: fewer say nothing about a share."""
_NUM_ARMS: Final = 6
_COLUMNS: Final = 3
_TICKS: Final = (0, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 1)


@dataclass(frozen=True)
class _Reliability(Figure):
    """The share of positives of each arm by probability, the baseline first; without calibration, None for that after.

    A point is a bin of neighbouring probabilities: their mean, and the share with its Wilson interval.
    """

    arms: tuple[tuple[Line, Line | None], ...]
    num_left_out: int

    @property
    def caption(self) -> str:
        after = " Hollow: the same after calibration on dev." if any(after for _, after in self.arms) else ""
        others = f" Not drawn: {counted(self.num_left_out, 'arm')} with worse scores." if self.num_left_out else ""
        return (
            "The share of positives on the test split by predicted probability, in bins of equally many items over all "
            "seeds of an arm, with 95 % Wilson intervals of as many items as one seed has. Dotted: probabilities that "
            f"are the shares. The ends of both axes are stretched.{after}{others}"
        )

    @property
    def alt(self) -> str:
        errors = (
            f"{before.name} {_error(before)}" + (f", calibrated {_error(after)}" if after else "")
            for before, after in self.arms
        )
        return f"{self.title}, mean distance of the probability from the share in %: {'; '.join(errors)}."

    @property
    def height(self) -> float:
        return 0.4 + 2.1 * math.ceil(len(self.arms) / _COLUMNS)

    def draw(self, canvas: Canvas) -> None:
        every = panels_of(canvas, len(self.arms), _COLUMNS, sharex=True)
        labels = [f"{100 * tick:g}" for tick in _TICKS]
        for axes, (before, after) in zip(every, self.arms, strict=True):
            axes.plot([0, 1], [0, 1], color=QUIET, lw=0.8, ls=":")
            _draw(axes, before, color=COLORS[0], marker="o")
            if after:
                _draw(axes, after, color=COLORS[1], marker="s", markerfacecolor="none")
            axes.set_title(shown_name(before.name, 34), fontsize=7)
            axes.set_xscale("function", functions=(_stretched, _unstretched))
            axes.set_yscale("function", functions=(_stretched, _unstretched))
            axes.set_xticks(_TICKS, labels, fontsize=6)
            axes.set_yticks(_TICKS, labels, fontsize=6)
        canvas.supxlabel("predicted probability (%)", fontsize=8)
        canvas.supylabel("positives (%)", fontsize=8)


def _draw(axes: Axes, line: Line, **look: Any) -> None:
    drawn = axes.errorbar(line.x, line.y, line.errors, lw=0.9, elinewidth=0.9, markersize=3.5, **look)
    on_hover(drawn.lines[0], f"{line.name}, mean distance {_error(line)} %")


def _stretched(shares: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.asarray(np.arcsin(np.sqrt(np.clip(shares, 0, 1))))


def _unstretched(places: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.asarray(np.sin(np.clip(places, 0, np.pi / 2)) ** 2)


def _error(line: Line) -> str:
    """The mean distance of the probability from the share, in percent."""
    return PERCENT.show(float(np.mean(np.abs(np.subtract(line.x, line.y)))))


def reliability(findings: Findings) -> Iterator[Figure]:
    """For each data set, encoder and variant of a study of two classes that stores the probabilities of its items."""
    for name, compared in named("reliability", comparisons(findings)):
        tables = with_probabilities(compared, findings)
        arms = [arm.arm for arm in compared.primary if arm.arm in tables]
        drawn = tuple(
            (before, _bins(arm, tables[arm], schema.CALIBRATED_PROBABILITY))
            for arm in arms[:_NUM_ARMS]
            if (before := _bins(arm, tables[arm], schema.LABEL_PROBABILITY))
        )
        if drawn:
            title = f"Reliability of the probabilities{on_place(compared.place)}"
            yield _Reliability(name, title, drawn, len(arms) - len(drawn))


def _bins(arm: str, tables: Sequence[pd.DataFrame], column: str) -> Line | None:
    """Bins of equally many items of all runs that store this probability; equal probabilities are in one bin."""
    known = [of_positive_class(items, column) for items in tables if column in items]
    if not known:
        return None
    probabilities_N, positives_N = (np.concatenate(each) for each in zip(*known, strict=True))
    num = int(np.clip(len(probabilities_N) / len(known) / _LEAST_ITEMS, 1, _NUM_BINS))
    edges = np.unique(np.quantile(probabilities_N, np.arange(1, num) / num))
    of_bin_N = np.searchsorted(edges, probabilities_N)
    bins = {}
    for number in np.unique(of_bin_N):
        in_bin_N = of_bin_N == number
        share, size = float(positives_N[in_bin_N].mean()), in_bin_N.sum() / len(known)
        bins[float(probabilities_N[in_bin_N].mean())] = Interval(share, *_wilson(share, float(size)), round(size))
    return Line.through(arm, bins)


def _wilson(share: float, size: float) -> tuple[float, float]:
    """The 95 % interval of a share of so many items (Wilson 1927).

    >>> tuple(round(bound, 3) for bound in _wilson(0.0, 20))
    (0.0, 0.161)
    """
    z2 = 1.96**2
    middle, half = share + z2 / (2 * size), math.sqrt(z2 * (share * (1 - share) + z2 / (4 * size)) / size)
    low, high = ((middle + side) / (1 + z2 / size) for side in (-half, half))
    # By rounding, an end at 0 or 1 would lie on the wrong side of the share, which matplotlib refuses to draw.
    return min(max(low, 0.0), share), max(min(high, 1.0), share)
