"""Search spaces by their address: functions of an Optuna trial that suggest parameters and return nothing.

Ray pickles the searcher, with its space, after each suggestion. A function of a script or a lambda cannot be pickled,
so a space is stored as its address and loaded when it is called. Given settings are compared with a space by replaying
it on them (`_Replay`): a preset's own values, published ones, and the trials of an earlier sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from optuna import Trial
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FixedTrial

from dice_ray import user_code
from dice_ray.config.load import Layer, resolve, values_layer
from dice_ray.errors import InputError, reason_of
from dice_ray.settings import Flat, Nested, flat
from dice_ray.tuning.ledger import TrialSpec

BATCH_SIZE = "training.batch_size"


@dataclass(frozen=True)
class Space:
    """A space that can be pickled: its address, loaded at the first call.

    Attributes:
        num_rows: Rows of the training split; a batch size that is drawn from a range is at most this number.
        unfit: The losses that the space does not choose, and the paths of numbers that stay at the low end of their
            range, because they do not fit the task (`config.checks.unfit`).
    """

    address: str
    num_rows: int | None = None
    unfit: frozenset[str] = frozenset()

    def __reduce__(self) -> tuple[type[Space], tuple[str, int | None, frozenset[str]]]:
        return type(self), (self.address, self.num_rows, self.unfit)

    def __call__(self, trial: Trial | FixedTrial) -> None:
        """Suggest every parameter of a trial.

        Raises:
            InputError: The function failed, or returned something: Ray lets a returned constant override suggestions.
        """
        function = self._function
        is_whole = self.num_rows is None and not self.unfit
        within: Any = trial if is_whole else _Fitting(trial, self)
        try:
            returned: Any = function(within)
        except (Exception, SystemExit) as error:
            raise InputError(f"the space {self.address} must suggest a trial, and raised {reason_of(error)}") from error
        if returned is not None:
            raise InputError(
                f"a space must return nothing, and {self.address} returned {type(returned).__name__}: "
                "put constants into a preset or --set"
            )

    @cached_property
    def _function(self) -> Callable[[Trial | FixedTrial], None]:
        return user_code.load(self.address)


class _Fitting:
    """A trial that suggests what fits the data and the task.

    A space knows neither: of 200 rows, a tenth of the batch sizes up to 288 could not be trained with, and for answers
    by position most losses are refused.
    """

    def __init__(self, trial: Trial | FixedTrial, space: Space) -> None:
        self._trial, self._space = trial, space

    def __getattr__(self, name: str) -> Any:
        return getattr(self._trial, name)

    def suggest_int(self, name: str, low: int, high: int, *, step: int = 1, log: bool = False) -> int:
        num_rows = self._space.num_rows
        if name == BATCH_SIZE and num_rows is not None and high > num_rows:
            high = low + max(0, num_rows - low) // step * step
        return self._trial.suggest_int(name, low, high, step=step, log=log)

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        high = low if name in self._space.unfit else high
        return self._trial.suggest_float(name, low, high, step=step, log=log)

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        fitting = [each for each in choices if name != "loss" or each not in self._space.unfit]
        return self._trial.suggest_categorical(name, fitting or choices)


def paths(values: Nested, prefix: str = "") -> list[str]:
    """Each path that a layer sets."""
    written = []
    for key, value in values.items():
        inner = paths(dict(value), f"{prefix}{key}.") if isinstance(value, Mapping) else []
        written += inner or [f"{prefix}{key}"]
    return written


def own_point(layers: Sequence[Layer], space: Space) -> Flat:
    """The preset's own values of the searched parameters.

    They run first, so that a search does not end below its preset; a value that the space cannot suggest is left out.
    """
    own = flat(resolve(layers))
    replay = _Replay(own, space)
    if "loss" in replay.out_of_range:  # the space does not search the preset's loss: take the defaults of its first one
        own = flat(resolve([*layers, values_layer("space", {"loss": replay.params["loss"]})]))
        replay = _Replay(own, space)
    return replay.taken(own)


def points(settings: Iterable[Flat], space: Space) -> list[tuple[Flat, Flat]]:
    """Each of these settings, reduced to what the space searches, and what is left out of it.

    Settings of a loss that it does not search are dropped; of several that differ only in other settings, one is kept.
    """
    made: list[tuple[Flat, Flat]] = []
    for values in settings:
        kept = _Replay(values, space).taken(values)
        if ("loss" in kept or "loss" not in values) and all(kept != params for params, _ in made):
            made.append((kept, {path: value for path, value in values.items() if path not in kept}))
    return made


def check_suggested(trials: Iterable[TrialSpec], space: Space, folder: Path) -> None:
    """Raise an InputError unless a space could suggest the trials of the sweep in a folder."""
    for trial in trials:
        replay = _Replay(trial.params, space)
        must = f"trial {trial.id} of {folder} must be one that {space.address} could suggest"
        if replay.out_of_range:
            path, distribution = next(iter(replay.out_of_range.items()))
            raise InputError(f"{must}: it searches {path} {_words(distribution)}, got {trial.params[path]!r}")
        if unused := sorted(trial.params.keys() - replay.params.keys()):
            raise InputError(f"{must}: it does not search {', '.join(unused)}")
        if missing := sorted(replay.params.keys() - trial.params.keys()):
            raise InputError(f"{must}: it also searches {', '.join(missing)}, which that trial does not have")


def _words(distribution: Any) -> str:
    """What a distribution holds, in words.

    >>> _words(CategoricalDistribution(["dice", "focal"]))
    "among 'dice' and 'focal'"
    """
    if isinstance(distribution, CategoricalDistribution):
        return f"among {' and '.join(map(repr, distribution.choices))}"
    return f"from {distribution.low:g} to {distribution.high:g}"


class _Replay(FixedTrial):
    """A space called on given values; a value that is missing or out of range is replaced by one in range.

    Attributes:
        out_of_range: The distributions of the values that were given and are out of range.
    """

    def __init__(self, params: Flat, space: Space) -> None:
        super().__init__(dict(params))
        self.out_of_range: dict[str, BaseDistribution] = {}
        space(self)

    def taken(self, values: Flat) -> Flat:
        """The given values that were suggested as they are."""
        return {path: values[path] for path in self.params if path in values and path not in self.out_of_range}

    def _suggest(self, name: str, distribution: BaseDistribution) -> Any:
        # Internal of Optuna 5: every suggestion of a FixedTrial goes through this method.
        if name in self._params and not _contains(distribution, self._params[name]):
            self.out_of_range[name] = distribution
            del self._params[name]
        if isinstance(distribution, CategoricalDistribution):
            self._params.setdefault(name, distribution.choices[0])
        else:
            self._params.setdefault(name, distribution.low)  # type: ignore[attr-defined]
        return super()._suggest(name, distribution)


def _contains(distribution: BaseDistribution, value: Any) -> bool:
    try:
        return distribution._contains(distribution.to_internal_repr(value))
    except ValueError:  # not a choice, or not a number
        return False
