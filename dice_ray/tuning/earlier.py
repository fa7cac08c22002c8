"""What a plan takes from earlier work: the preset's own settings, published ones, and the trials of another sweep.

A search may start from points (parameters of its first trials) or from all trials of another sweep (`warm_start`). A
study takes settings from sweeps too: see `tuning/tuned.py`. Trials of another sweep count only where they are of the
same task and data: else their scores have no meaning here.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FixedTrial

from dice_ray.config.load import Layer, resolve, values_layer
from dice_ray.config.schema import RunConfig
from dice_ray.errors import InputError, RunError
from dice_ray.run.folder import LEDGER, WARM_START
from dice_ray.settings import Flat, differing_paths, flat
from dice_ray.tuning import plan_file
from dice_ray.tuning.ledger import History, TrialSpec, ledger_in
from dice_ray.tuning.plan import FOLDER, SweepPlan
from dice_ray.tuning.space import Space


@dataclass(frozen=True)
class Point:
    """Settings that a space can suggest.

    Attributes:
        params: By path.
        left_out: Other settings that were given, which the space does not search.
    """

    params: Flat
    left_out: Flat


def own_point(layers: Sequence[Layer], space: Space) -> Flat:
    """The preset's own values of the searched parameters.

    They run first, so that a search does not end below its preset; a value that the space cannot suggest is left out.
    """
    own = flat(resolve(layers))
    replay = _Replay(own)
    space(replay)
    if "loss" in replay.out_of_range:  # the space does not search the preset's loss: take the defaults of its first one
        own = flat(resolve([*layers, values_layer("space", {"loss": replay.params["loss"]})]))
        replay = _Replay(own)
        space(replay)
    return replay.taken(own)


def points(settings: Iterable[Flat], space: Space) -> list[Point]:
    """Each of these settings, reduced to what the space searches.

    Settings of a loss that it does not search are dropped; of several that differ only in other settings, one is kept.
    """
    found: list[Point] = []
    for values in settings:
        replay = _Replay(values)
        space(replay)
        kept = replay.taken(values)
        if ("loss" in kept or "loss" not in values) and all(kept != point.params for point in found):
            found.append(Point(kept, {path: value for path, value in values.items() if path not in kept}))
    return found


@dataclass(frozen=True)
class EarlierSweep:
    """The plan and the history of another sweep."""

    plan: SweepPlan
    history: History

    def trials(self) -> list[TrialSpec]:
        """The trials that have ended, without reruns."""
        searched = self.history.searched()
        return [spec for id_, spec in searched.specs.items() if id_ in searched.outcomes]

    def loss(self, trial: TrialSpec) -> str:
        """The loss of a trial."""
        return self.plan.config(trial).loss.name


def sweep_in(folder: Path, config: RunConfig, digest: str) -> EarlierSweep:
    """The sweep in a folder, for a plan of this configuration on the data of this digest.

    Raises:
        RunError: It is not a sweep of the same task and data.
    """
    plan = plan_file.read(folder)
    if not isinstance(plan, SweepPlan):
        raise RunError(f"{folder} must hold a sweep to start from: it holds a study")
    paths = [path for path in differing_paths(config, plan.base()) if path != FOLDER]  # the digest compares the files
    if other := [path for path in paths if path.partition(".")[0] in ("task", "data")]:
        raise RunError(
            f"{folder} must hold a sweep of the same task and data, or its scores cannot be compared; these settings "
            f"differ: {', '.join(other)}"
        )
    if plan.digest != digest:
        raise RunError(
            f"{folder} must hold a sweep of the same data, or its scores cannot be compared: they were changed (digest "
            f"{plan.digest} then, {digest} now)"
        )
    return EarlierSweep(plan, ledger_in(folder))


def check_warm_start(plan: SweepPlan, folder: Path) -> None:
    """The trials of the sweep in a folder must be usable in this plan.

    Raises:
        RunError: It is not a sweep of the same task, data and encoder, or no trial of it has ended.
        InputError: The space does not search a parameter of one of its trials, or in another range.
    """
    base, space = plan.base(), Space(plan.space)
    sweep = sweep_in(folder, base, base.splits().digest)
    if not (trials := sweep.trials()):
        raise RunError(f"{folder} must hold trials that have ended to start from, and has none yet")
    encoder, is_searched = sweep.plan.base().model.encoder, all("model.encoder" in trial.params for trial in trials)
    if encoder != base.model.encoder and not is_searched:
        raise RunError(
            f"{folder} must hold a sweep of the encoder {base.model.encoder!r}, or its scores cannot be compared, got "
            f"{encoder!r}"
        )
    check_suggested(trials, space, folder)


def check_suggested(trials: Iterable[TrialSpec], space: Space, folder: Path) -> None:
    """The trials of the sweep in a folder must be such that a space could suggest them.

    Raises:
        InputError: The space does not search a parameter of one of its trials, or in another range.
    """
    for trial in trials:
        replay = _Replay(trial.params)
        space(replay)
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


def copy_ledger(earlier: Path, folder: Path) -> None:
    """Copy the ledger of an earlier sweep into the folder of the new one, which then does not need the other folder."""
    # Renamed once it is complete: a copy that was interrupted must not count as taken over.
    unfinished = folder / f"{WARM_START}.tmp"
    shutil.copyfile(earlier / LEDGER, unfinished)
    unfinished.replace(folder / WARM_START)


class _Replay(FixedTrial):
    """A trial of given values; a value that is missing or out of range is replaced by one in range.

    Attributes:
        out_of_range: The distributions of the values that were given and are out of range.
    """

    def __init__(self, params: Flat) -> None:
        super().__init__(dict(params))
        self.out_of_range: dict[str, BaseDistribution] = {}

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
