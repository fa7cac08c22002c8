"""The base class of figures, their common style, and what several of them draw."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from analysis.tables.base import ScoreFormat

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure as Canvas

INK: Final = "#262626"
"""The colour of text and axes; the HTML page replaces it by its text colour."""
QUIET: Final = "#8c8c8c"
"""The colour of references: the baseline, the constant predictor, lines of equal F1."""
COLORS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f6bb3", "#8a5a2b")
"""Distinguishable for colour-blind readers, on white and on black (Okabe and Ito 2008, with violet and brown for their
yellow and black). With more names than colours, the markers differ."""
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*")
WIDTH: Final = 6.3
"""In inches: the text width of a page, where letters of 8 points are readable."""

_STYLE: Final[dict[Any, Any]] = {
    **dict.fromkeys(("font.size", "axes.titlesize", "axes.labelsize"), 8),
    **dict.fromkeys(("legend.fontsize", "xtick.labelsize", "ytick.labelsize"), 7.5),
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "axes.linewidth": 0.6,
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "axes.grid", "legend.frameon"), False),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none"),
    "text.parse_math": False,  # a name with two dollar signs is not a formula
    "svg.fonttype": "path",
    **{f"{part}.color": INK for part in ("text", "xtick", "ytick")},
    **{f"axes.{part}color": INK for part in ("edge", "label")},
}


@dataclass(frozen=True)
class Figure(ABC):
    """The computed content of a figure; `draw` only draws it.

    Attributes:
        name: The stem of its files.
        title: One line that says what it shows.
    """

    name: str
    title: str

    @property
    @abstractmethod
    def caption(self) -> str:
        """Sentences that explain it."""

    @property
    def height(self) -> float:
        """In inches."""
        return 3.2

    @abstractmethod
    def draw(self, canvas: Canvas) -> None:
        """Draw the figure on an empty canvas."""

    def save(self, file: Path) -> None:
        """Write it on white in the format of the file's suffix; equal figures give equal files."""
        undated = {"Date": None} if file.suffix == ".svg" else None
        with self._drawn() as canvas:
            canvas.savefig(file, dpi=200, facecolor="white", metadata=undated)

    def svg(self) -> str:
        """The picture as an SVG element without a background."""
        buffer = io.StringIO()
        with self._drawn() as canvas:
            canvas.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        text = buffer.getvalue()
        return text[text.index("<svg") :]

    _repr_svg_ = svg  # the name under which a notebook looks for it

    @contextmanager
    def _drawn(self) -> Iterator[Canvas]:
        import matplotlib as mpl
        from matplotlib.figure import Figure as Canvas

        # The salt makes the ids in the SVG, random by default, the same each time. A Figure without pyplot needs no
        # display, and is not kept in pyplot's list of open figures.
        with mpl.rc_context({**_STYLE, "svg.hashsalt": self.name}):
            canvas = Canvas(figsize=(WIDTH, self.height), layout="constrained")
            self.draw(canvas)
            yield canvas


@dataclass(frozen=True)
class Line:
    """A line with its band; low and high are NaN for points without an interval, and empty for lines without a band."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


def color_of(names: Iterable[str], baseline: str | None = None) -> dict[str, str]:
    """A colour for each name, the same in every figure of the same names; the baseline is grey."""
    others = sorted({*names} - {baseline})
    return {name: COLORS[number % len(COLORS)] for number, name in enumerate(others)} | (
        {baseline: QUIET} if baseline is not None else {}
    )


def marker_of(names: Iterable[str]) -> dict[str, str]:
    """A marker for each name, the same in every figure of the same names."""
    return {name: MARKERS[number % len(MARKERS)] for number, name in enumerate(sorted(set(names)))}


def label_score(axis: Axis, metric: str, values: Iterable[float]) -> None:
    """Label the axis of a score in the format of the tables: shares as percent."""
    from matplotlib.ticker import PercentFormatter

    scale = ScoreFormat.of(pd.Series(list(values), dtype="float64"))
    axis.set_label_text(scale.heading(metric))
    if scale.percent:
        axis.set_major_formatter(PercentFormatter(1, symbol=""))


def draw_line(axes: Axes, line: Line, color: str, marker: str) -> None:
    """Draw a line over its band, with its name for the legend."""
    axes.fill_between(line.x, line.low, line.high, color=color, alpha=0.15, linewidth=0)
    axes.plot(line.x, line.y, color=color, marker=marker, label=line.name)
