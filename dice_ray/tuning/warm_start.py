"""Where a search begins: at the preset itself, at settings that were published, or with an earlier sweep's trials."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FixedTrial

from dice_ray.config.load import Layer, resolve, values_layer
from dice_ray.data import sources
from dice_ray.errors import InputError
from dice_ray.settings import Flat, flat
from dice_ray.tuning.earlier import sweep_in
from dice_ray.tuning.plan import SweepPlan
from dice_ray.tuning.space import Space

FILE = "warm_start.jsonl"
"""The ledger of the earlier sweep, copied: the new one does not depend on that folder any more."""


@dataclass(frozen=True)
class Point:
    """Settings that a space can suggest.

    Attributes:
        params: By path.
        left_out: What was given beside them, and the space does not search.
    """

    params: Flat
    left_out: Flat


def first(layers: Sequence[Layer], space: Space) -> Flat:
    """What a run without a search would have, of what the space searches: no search ends below its defaults."""
    given = flat(resolve(layers))
    replay = _Replay(given)
    space(replay)
    if "loss" in replay.refused:  # a space that holds another one
        given = flat(resolve([*layers, values_layer("space", {"loss": replay.params["loss"]})]))
        replay = _Replay(given)
        space(replay)
    return {path: given[path] for path in replay.params if path in given and path not in replay.refused}


def points(given: Iterable[Flat], space: Space) -> list[Point]:
    """Each point cut to what the space searches; one of a loss that it does not have is left out whole."""
    found = []
    for values in given:
        replay = _Replay(values)
        space(replay)
        kept = {path: values[path] for path in replay.params if path in values and path not in replay.refused}
        if "loss" in kept or "loss" not in values:
            found.append(Point(kept, {path: value for path, value in values.items() if path not in kept}))
    return found


def check(plan: SweepPlan, earlier: Path) -> None:
    """Whether the trials of an earlier sweep say something in this one.

    Raises:
        RunError: It is no sweep of the same task and data.
        InputError: The space does not search what a trial of it has, or in another range.
    """
    base, space = plan.base(), Space(plan.space)
    digest = sources.load(base.data, base.task.positive_label()).digest
    for begun in sweep_in(earlier, base, digest).trials():
        _check_trial(begun.id, begun.params, space, earlier)


def take_over(earlier: Path, folder: Path) -> None:
    """Copy the ledger of an earlier sweep into the new one's folder."""
    unfinished = folder / f"{FILE}.tmp"
    shutil.copyfile(earlier / "ledger.jsonl", unfinished)
    unfinished.replace(folder / FILE)


def _check_trial(id_: str, params: Flat, space: Space, earlier: Path) -> None:
    """A trial must be one that the space could have suggested."""
    replay = _Replay(params)
    space(replay)
    must = f"trial {id_} of {earlier} must be one that {space.address} could suggest"
    if replay.refused:
        path, distribution = next(iter(replay.refused.items()))
        raise InputError(f"{must}: {path} is searched in {distribution}, got {params[path]!r}")
    if unused := sorted(params.keys() - replay.params.keys()):
        raise InputError(f"{must}: it does not search {', '.join(unused)}")
    if missing := sorted(replay.params.keys() - params.keys()):
        raise InputError(f"{must}: it searches {', '.join(missing)} beside what that trial has")


class _Replay(FixedTrial):
    """A trial of given values; where one is missing or out of range, it takes any that will do.

    Attributes:
        refused: What was given and is out of range, with the range.
    """

    def __init__(self, params: Flat) -> None:
        super().__init__(dict(params))
        self.refused: dict[str, BaseDistribution] = {}

    def _suggest(self, name: str, distribution: BaseDistribution) -> Any:
        # An internal of Optuna 5: every suggestion of a fixed trial goes through it.
        if name in self._params and not _holds(distribution, self._params[name]):
            self.refused[name] = distribution
            del self._params[name]
        self._params.setdefault(name, _any(distribution))
        return super()._suggest(name, distribution)


def _holds(distribution: BaseDistribution, value: Any) -> bool:
    try:
        return distribution._contains(distribution.to_internal_repr(value))
    except ValueError:  # no such choice, or no number
        return False


def _any(distribution: BaseDistribution) -> Any:
    return distribution.choices[0] if isinstance(distribution, CategoricalDistribution) else distribution.low  # type: ignore[attr-defined]
