"""How scores are written in sentences, tables and figures."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from analysis.statistics import Interval


@dataclass(frozen=True)
class ScoreFormat:
    """How scores are written: shares as percent with two decimals, others with four significant digits."""

    percent: bool

    @classmethod
    def of(cls, scores: Iterable[float]) -> ScoreFormat:
        """Percent if every score but NaN lies in [0, 1]."""
        return cls(all(0 <= score <= 1 for score in scores if not math.isnan(score)))

    def heading(self, metric: str) -> str:
        return f"{metric} (%)" if self.percent else metric

    def show(self, value: float, sign: str = "") -> str:
        """The number; an empty string for NaN."""
        if math.isnan(value):
            return ""
        return format(100 * value, f"{sign}.2f") if self.percent else format(value, f"{sign}.4g")

    def show_interval(self, interval: Interval, sign: str = "") -> str:
        """The mean, followed by its interval if it has one."""
        bounds = self.show_bounds(interval, sign)
        return self.show(interval.mean, sign) + (f" {bounds}" if bounds else "")

    def show_bounds(self, interval: Interval, sign: str = "") -> str:
        """The interval alone; an empty string if it has no bounds."""
        if math.isnan(interval.low):
            return ""
        return f"[{self.show(interval.low, sign)}, {self.show(interval.high, sign)}]"
