"""The base class of figures, their common style, and what several of them draw."""

from __future__ import annotations

import io
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from analysis.formats import ScoreFormat
from analysis.statistics.intervals import Interval
from analysis.tables.base import in_markdown
from dice_ray.errors import one_line

if TYPE_CHECKING:
    from matplotlib.artist import Artist
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
_MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*")
_FONTS: Final = (
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei"),
    *("Droid Sans Fallback", "PingFang SC", "Hiragino Sans GB", "Microsoft YaHei", "SimHei", "Arial Unicode MS"),
)
"""Fonts with the Chinese characters that matplotlib's own font lacks, of Linux, macOS and Windows."""
_HOVER: Final = "hover: "
"""Prefix of the id of an artist by which its text gets into the SVG: matplotlib writes no titles."""
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
    def alt(self) -> str:
        """What it shows, for readers who do not see it."""
        return self.title

    @property
    @abstractmethod
    def caption(self) -> str:
        """Sentences that explain it."""

    @property
    def is_first(self) -> bool:
        """Whether it stands above the tables."""
        return False

    @property
    def width(self) -> float:
        """In inches; 6.3 are the text width of a page, where letters of 8 points are readable."""
        return 6.3

    @property
    def height(self) -> float:
        """In inches."""
        return 3.2

    @abstractmethod
    def draw(self, canvas: Canvas) -> None:
        """Draw the figure on an empty canvas."""

    def markdown(self) -> str:
        """The picture, in a file beside the page, with its title and caption."""
        picture = f"![{in_markdown(self.alt)}]({self.name}.svg)"
        return f"{picture}\n\n**{in_markdown(self.title)}.** {in_markdown(self.caption)}"

    def save(self, file: Path) -> None:
        """Write it on white in the format of the file's suffix; equal figures give equal files."""
        if file.suffix == ".svg":
            file.write_text(self._svg("white"), encoding="utf-8")
            return
        with self._drawn() as canvas:
            canvas.savefig(file, dpi=200, facecolor="white")

    def svg(self) -> str:
        """The picture as an SVG element without a background."""
        text = self._svg("none")
        return text[text.index("<svg") :]

    def _svg(self, facecolor: str) -> str:
        buffer = io.StringIO()
        with self._drawn() as canvas:
            canvas.savefig(buffer, format="svg", facecolor=facecolor, metadata={"Date": None, "Creator": None})
        # A comment has the text that is drawn, and XML must not hold control characters.
        text = re.sub("<!--.*?-->", lambda comment: one_line(comment[0]), buffer.getvalue(), flags=re.DOTALL)
        # The writer of matplotlib escapes an id, so that its text is safe within an element too.
        return re.sub(rf' id="{_HOVER}([^"]*)">', r"><title>\1</title>", text)

    _repr_svg_ = svg  # the name under which a notebook looks for it

    @contextmanager
    def _drawn(self) -> Iterator[Canvas]:
        import matplotlib as mpl
        from matplotlib.figure import Figure as Canvas
        from matplotlib.font_manager import fontManager

        # Of a font that is not installed matplotlib would warn.
        installed = {*fontManager.get_font_names()}
        fonts = ["sans-serif", *(font for font in _FONTS if font in installed)]
        # The salt makes the ids in the SVG, random by default, the same each time. A Figure without pyplot needs no
        # display, and is not kept in pyplot's list of open figures.
        with mpl.rc_context({**_STYLE, "font.family": fonts, "svg.hashsalt": self.name}):
            canvas = Canvas(figsize=(self.width, self.height), layout="constrained")
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

    @classmethod
    def through(cls, name: str, points: Mapping[float, Interval]) -> Line:
        """The line through the means of these points by their x, with their intervals as its band."""
        parts = (tuple(getattr(of, part) for of in points.values()) for part in ("mean", "low", "high"))
        return cls(name, tuple(points), *parts)

    @property
    def errors(self) -> list[list[float]]:
        """The distances to the lower and to the upper end of its band, as `Axes.errorbar` takes them."""
        return [[abs(y - end) for y, end in zip(self.y, ends, strict=True)] for ends in (self.low, self.high)]


def shown_name(name: str, most: int = 40) -> str:
    """A name that is drawn: one line of at most this many letters."""
    name = one_line(name)
    return name if len(name) <= most else f"{name[: most - 1]}…"


def legend_beside(canvas: Canvas) -> None:
    """One legend for all axes, to their right."""
    every = [zip(*axes.get_legend_handles_labels(), strict=True) for axes in canvas.axes]
    handles = {name: handle for each in every for handle, name in each}
    canvas.legend([*handles.values()], [*map(shown_name, handles)], loc="outside right center")


def legend_height(num: int) -> float:
    """The height of a figure, in inches, that has room for a legend of so many names."""
    return 0.3 + 0.16 * num


def panels_of(canvas: Canvas, num: int, most_columns: int, *, sharex: bool = False) -> list[Axes]:
    """The axes of so many panels in rows with one vertical axis, the last of each column with labels below it."""
    columns = min(most_columns, num)
    grid = canvas.subplots(math.ceil(num / columns), columns, squeeze=False, sharex=sharex, sharey=True)
    for axes in grid.flat[num:]:
        axes.remove()
    for axes in grid.flat[max(0, num - columns) : num]:
        axes.tick_params(labelbottom=True)
    return [*grid.flat[:num]]


def on_hover(artist: Artist, text: str) -> None:
    """Show a text when the mouse is over an artist in the SVG."""
    artist.set_gid(f"{_HOVER}{one_line(text)}")


class Look(NamedTuple):
    """How the lines and points of a name look."""

    color: str
    marker: str


def looks_of(names: Iterable[str], baseline: str | None = None) -> dict[str, Look]:
    """A look for each name, the same in every figure of the same names, with or without the baseline, which is grey."""
    others = sorted({*names} - {baseline})
    looks = dict(zip(others, map(Look, cycle(COLORS), cycle(_MARKERS)), strict=False))
    return looks if baseline is None else looks | {baseline: Look(QUIET, "d")}


def label_in(score_format: ScoreFormat, axis: Axis, metric: str) -> None:
    """Label the axis of scores, or of their differences, in the format of the scores."""
    from matplotlib.ticker import PercentFormatter

    axis.set_label_text(score_format.heading(metric))
    if score_format.percent:
        axis.set_major_formatter(PercentFormatter(1, symbol=""))
