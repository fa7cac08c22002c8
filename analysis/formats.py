"""How scores, names and titles are written in sentences, tables and figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from analysis.statistics.intervals import UNIT_INTERVAL, Interval
from dice_ray.metrics import catalogue


@dataclass(frozen=True)
class ScoreFormat:
    """How scores are written: shares as percent with two decimals, others with four significant digits or more.

    Attributes:
        unit: What a number without a percent sign counts; empty for none.
        is_minimised: Whether sentences say of a difference that a score is lower or higher by it, instead of its sign.
    """

    percent: bool
    unit: str = ""
    is_minimised: bool = False

    @classmethod
    def of(cls, metric: str, scores: Iterable[float]) -> ScoreFormat:
        """Percent for a built-in share, unless a score beyond [0, 1] shows that it is a user's function of that name.

        The scores alone do not say what they are: an MCC would be percent wherever no mean is below 0.
        """
        known = catalogue.metric(metric)
        is_share = known.limits == UNIT_INTERVAL and not known.is_minimised
        unit = "per 1,000 records" if known.is_minimised and metric.endswith(("/cost", "/cost_tuned")) else ""
        is_percent = is_share and all(0 <= score <= 1 for score in scores if not math.isnan(score))
        return cls(is_percent, unit, known.is_minimised)

    def heading(self, metric: str) -> str:
        unit = "%" if self.percent else self.unit
        return f"{metric} ({unit})" if unit else metric

    def show(self, value: float, sign: str = "") -> str:
        """The number; an empty string for NaN."""
        if math.isnan(value):
            return ""
        if self.percent:
            return format(100 * value, f"{sign}.2f")
        return format(value, f"{sign},.0f" if abs(value) >= 1000 else f"{sign}.4g")

    def show_interval(self, interval: Interval, sign: str = "") -> str:
        """The mean, followed by its interval if it has one."""
        bounds = self.show_bounds(interval, sign)
        return self.show(interval.mean, sign) + (f" {bounds}" if bounds else "")

    def in_words(self, value: float) -> str:
        """The number with its unit: `71.20 %`, `31 per 1,000 records`."""
        return " ".join(filter(None, [self.show(value), "%" if self.percent else self.unit]))

    def show_difference(self, of: Interval) -> str:
        """A difference in a sentence, with its interval if it has one: `+3.10`, or of a cost `lower by 12 [4, 20]`."""
        if not self.is_minimised:
            return self.show_interval(of, "+")
        is_lower = of.mean < 0
        size = Interval(-of.mean, -of.high, -of.low, of.num) if is_lower else of
        return f"{'lower' if is_lower else 'higher'} by {self.show_interval(size)}"

    def show_bounds(self, interval: Interval, sign: str = "") -> str:
        """The interval alone; an empty string if it has no bounds."""
        if math.isnan(interval.low):
            return ""
        show = self.show_bound if sign else self.show
        return f"[{show(interval.low, sign)}, {show(interval.high, sign)}]"

    def show_bound(self, value: float, sign: str = "") -> str:
        """A bound of a difference: one that would be rounded to 0, which it excludes or not, has a digit more."""
        is_lost = self.percent and 0 < abs(value) < 5e-5
        return format(100 * value, f"{sign}.1g") if is_lost else self.show(value, sign)


PERCENT: Final = ScoreFormat(percent=True)


_ItemT = TypeVar("_ItemT")


def named(name: str, items: Sequence[_ItemT]) -> list[tuple[str, _ItemT]]:
    """Each item with the name of its table or figure, which has a number if there are several.

    >>> named("forest", ["mrpc"]), named("forest", ["mrpc", "qqp"])
    ([('forest', 'mrpc')], [('forest_1', 'mrpc'), ('forest_2', 'qqp')])
    """
    return [(f"{name}_{number}" if len(items) > 1 else name, item) for number, item in enumerate(items, start=1)]


def on_place(place: str) -> str:
    """The end of a title: ` on mrpc`; empty for a study that is on one place.

    >>> "Training curves" + on_place("mrpc"), "Training curves" + on_place("")
    ('Training curves on mrpc', 'Training curves')
    """
    return f" on {place}" if place else ""
