"""What the figures of searched settings share: which settings are drawn, positions on their axes, and ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from analysis.figures.base import Figure
from analysis.figures.sweep import ScoredTrial, scored_trials
from analysis.formats import ScoreFormat
from analysis.frames import has_objectives, of_kind, parent_tag
from analysis.sweep import Setting, settings_of
from dice_ray.tracking import schema

if TYPE_CHECKING:
    from analysis.frames import Findings

NUM_SETTINGS: Final = 12
"""Settings that are drawn: those that most trials searched."""
SPREAD: Final = 0.32
"""Trials with the same choice are spread over this share of the distance to the next choice, to each side."""
GOLDEN: Final = 0.618
"""Multiples of the golden ratio, without their whole part, spread any number of points evenly."""


@dataclass(frozen=True)
class SettingsFigure(Figure):
    """The scored trials of a sweep, and what they searched.

    Attributes:
        trials: The best first, as the table of the best trials ranks them.
        settings: Their values are in the order of the trials.
        left_out: The paths of the settings that are not drawn.
    """

    fewer: ClassVar[str] = "fewer trials"
    """Which trials searched these."""

    metric: str
    trials: tuple[ScoredTrial, ...]
    settings: tuple[Setting, ...]
    left_out: tuple[str, ...]

    @property
    def alt(self) -> str:
        shown, best = self.score_format, self.trials[0]
        values = [
            f"{each.path} {shown_value(value)}" for each in self.settings if (value := each.values[0]) is not None
        ]
        return (
            f"{self.title}: the best of {len(self.trials)} trials has {shown.heading(self.metric)} "
            f"{shown.show(best.score)} with {', '.join([f'loss {best.loss}', *values])}."
        )

    @property
    def score_format(self) -> ScoreFormat:
        return ScoreFormat.of(self.metric, (trial.score for trial in self.trials))

    @property
    def without(self) -> str:
        """The sentence about the settings that are not drawn; empty if all are."""
        return f" Left out, searched by {self.fewer}: {', '.join(self.left_out)}." if self.left_out else ""

    @classmethod
    def candidates(cls, settings: Sequence[Setting]) -> Sequence[Setting]:
        """The settings that the figure is about; their values are in the order of the trials, the best first."""
        return settings


def settings_figures(findings: Findings, kind: type[SettingsFigure], name: str, title: str) -> list[Figure]:
    """The figure of this kind for a sweep with at least two scored trials and a setting of several values.

    None for a search for several objectives: no trial is the best one.
    """
    if len(findings.ranked) < 2 or has_objectives(findings.frame):
        return []
    trials = of_kind(findings.frame, "trial")
    metric = parent_tag(findings.frame, schema.METRIC)
    by_id = dict(zip(trials["id"], scored_trials(trials, metric), strict=True))
    every = settings_of(trials.set_index("id").loc[list(findings.ranked)])
    # The sort is stable: of settings that equally many trials searched, the first of the space.
    most = sorted(kind.candidates(every), key=lambda setting: setting.values.count(None))[:NUM_SETTINGS]
    if not most:
        return []
    return [
        kind(
            name,
            title,
            metric,
            tuple(by_id[id_] for id_ in findings.ranked),
            tuple(setting for setting in every if setting in most),
            tuple(setting.path for setting in every if setting not in most),
        )
    ]


def positions(setting: Setting) -> list[float | None]:
    """The positions of the trials on an axis: values, or the numbers of choices with trials beside each other."""
    if setting.scale != "choice":
        return [None if isinstance(value, str) else value for value in setting.values]
    numbers = {choice: number for number, choice in enumerate(setting.choices)}
    return [
        None if value is None else numbers[value] + SPREAD * (2 * ((GOLDEN * rank + 0.5) % 1) - 1)
        for rank, value in enumerate(setting.values)
    ]


def ends(setting: Setting) -> tuple[float, float]:
    """The lowest and the highest value of a numeric setting."""
    numbers = [value for value in setting.values if isinstance(value, int | float)]
    return min(numbers), max(numbers)


def ticks(setting: Setting) -> list[float]:
    """Round numbers within the range of a numeric setting."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    low, high = ends(setting)
    # Between the decades too where there are few of them.
    decades = LogLocator(subs=(1, 3) if high < 1000 * low else (1,), numticks=8)
    locator = decades if setting.scale == "log" else MaxNLocator(4)
    return [float(tick) for tick in locator.tick_values(low, high) if low <= tick <= high]


def shown_value(value: float | str) -> str:
    """A choice, or a number with three digits."""
    return value if isinstance(value, str) else shown_number(float(f"{value:.3g}"))


def shown_number(value: float) -> str:
    """A number in few letters: 0.01, 3e-5."""
    if value == 0 or abs(value) >= 0.001:
        return f"{value:g}"
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    return f"{float(mantissa):g}e{int(exponent)}"
