"""The settings that a sweep searched: their paths, their values by trial, and the scale that shows these best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import pandas as pd

from analysis.columns import column

Scale: TypeAlias = Literal["choice", "linear", "log"]

MOST_CHOICES: Final = 5
"""So few numbers that occur again are choices, whose distance means nothing; drawn from a range, none occurs twice."""
LEAST_LOG_RATIO: Final = 10
"""Values of less than a decade are legible on a linear scale, whatever they were drawn on."""


@dataclass(frozen=True)
class Setting:
    """A searched setting.

    Attributes:
        values: Its values, in the order of the trials; None where a trial did not search it.
    """

    path: str
    scale: Scale
    values: tuple[float | str | None, ...]

    @property
    def choices(self) -> tuple[float | str, ...]:
        """The different values, numbers by size and before words."""
        return tuple(sorted({value for value in self.values if value is not None}, key=_order))


def searched_paths(trials: pd.DataFrame) -> list[str]:
    """The paths that a sweep varied, without the loss, in the order of the space."""
    paths = (path for tag in column(trials, "tags.searched").dropna() for path in str(tag).split())
    return [path for path in dict.fromkeys(paths) if path != "loss"]


def chosen_values(trial: pd.Series[Any]) -> dict[str, Any]:
    """What the search chose for one trial, by path, with the loss: a chosen `null` is None, a whole number an int.

    >>> chosen_values(pd.Series({"tags.searched": "a.x a.y", "params.a.x": 16.0, "params.a.y": None, "params.b": 1.0}))
    {'a.x': 16, 'a.y': None}
    """
    # MLflow stores the settings of a trial that the search did not choose too, and a frame holds a `null` and a setting
    # of another trial alike as missing. Only the tag, which names what was chosen, tells these apart.
    tag = trial.get("tags.searched")
    paths = tag.split() if isinstance(tag, str) else []
    return {path: _chosen(trial[name]) for path in paths if (name := f"params.{path}") in trial}


def _chosen(value: Any) -> Any:
    if pd.isna(value):
        return None
    # A column with a missing value holds whole numbers as floats.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def settings_of(trials: pd.DataFrame) -> list[Setting]:
    """The settings that these trials searched with more than one value; those of losses first, as in the spaces."""
    chosen = [set(str(paths).split()) for paths in column(trials, "tags.searched")]
    settings = []
    for path in sorted(searched_paths(trials), key=lambda path: not path.startswith("loss.")):
        stored = column(trials, f"params.{path}")
        # A trial that chose `null` has searched the setting, and a trial of another loss has not.
        values = [
            (value if pd.notna(value) else "null") if path in of_trial else None
            for value, of_trial in zip(stored.tolist(), chosen, strict=True)
        ]
        numbers = {value for value in values if isinstance(value, int | float)}
        if len(numbers) > MOST_CHOICES:  # `null` is no place among numbers of a range
            values = [value if value in numbers else None for value in values]
        known = [value for value in values if value is not None]
        if len(set(known)) > 1:
            settings.append(Setting(path, scale_of(known), tuple(values)))
    return settings


def scale_of(values: Sequence[Any]) -> Scale:
    """The scale on which values are spread more evenly: the search space itself is not stored with the runs.

    Positive values of more than a decade are more likely under a log-uniform distribution over their range than under a
    uniform one if their geometric mean is below the logarithmic mean of the range's ends. The ratio of the ends alone
    does not tell: that of 100 values drawn uniformly from 0 to 1 is mostly above 100.

    >>> scale_of([0.001, 0.01, 0.1, 1.0]), scale_of([0.01, 0.3, 0.7, 0.9]), scale_of(["linear", "cosine"])
    ('log', 'linear', 'choice')
    """
    distinct = set(values)
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in distinct):
        return "choice"
    if len(distinct) <= MOST_CHOICES and len(distinct) < len(values):
        return "choice"
    low, high = min(distinct), max(distinct)
    if low <= 0 or high / low < LEAST_LOG_RATIO:
        return "linear"
    mean_log = sum(map(math.log, values)) / len(values)
    return "log" if mean_log < math.log((high - low) / math.log(high / low)) else "linear"


def _order(value: float | str) -> tuple[bool, float, str]:
    return (True, 0.0, value) if isinstance(value, str) else (False, value, "")
