"""The bar chart of negatives and positives of data sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from analysis.figures.base import COLORS, QUIET, Figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from dice_ray.tasks.inspection import Inspection


@dataclass(frozen=True)
class Bars:
    """The negatives and positives of one data set."""

    name: str
    negatives: int
    positives: int

    @property
    def label(self) -> str:
        ratio = f"{self.negatives / self.positives:,.2f} : 1" if self.positives else "no positives"
        return f"{self.name}  ({ratio})"


@dataclass(frozen=True)
class ImbalanceBars(Figure):
    """Two bars for each data set."""

    bars: tuple[Bars, ...]

    caption: ClassVar[str] = (
        "Negatives and positives of the training splits, on a logarithmic axis; their ratio beside the name."
    )

    @property
    def height(self) -> float:
        return 1.1 + 0.45 * len(self.bars)

    def draw(self, canvas: Canvas) -> None:
        axes = canvas.subplots()
        for color, label, place, counts in (
            (QUIET, "negative", -0.2, [bar.negatives for bar in self.bars]),
            (COLORS[1], "positive", 0.2, [bar.positives for bar in self.bars]),
        ):
            drawn = axes.barh([row + place for row in range(len(self.bars))], counts, 0.4, color=color, label=label)
            axes.bar_label(drawn, [f"{count:,}" for count in counts], padding=3)
        axes.set_yticks(range(len(self.bars)), [bar.label for bar in self.bars])
        longest = max(max(bar.negatives, bar.positives) for bar in self.bars)
        # From .8, so that one item has a visible bar; to 6 times the longest bar, for the count written beside it.
        axes.set(xscale="log", xlabel="items of the training split", xlim=(0.8, 6 * max(longest, 2)))
        axes.invert_yaxis()
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)


def imbalance_bars(inspections: Sequence[Inspection]) -> ImbalanceBars:
    """The bars of the training splits, in the given order."""
    trains = [(data.name, data.splits["train"]) for data in inspections]
    bars = tuple(Bars(name, train.negatives, train.positives) for name, train in trains)
    return ImbalanceBars("imbalance", "Negatives and positives", bars)
