"""How a search suggests: TPE, at random, all there is, or a sampler of the user's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, cast

import optuna
from optuna.samplers import BaseSampler

from dice_ray.errors import InputError, UnknownNameError
from dice_ray.tuning.space import load, said

BRUTE_FORCE = "brute_force"


def sampler(name: str, seed: int) -> BaseSampler:
    """The sampler of that name, or what the function at `module:function` or `file.py:function` makes of a seed.

    Raises:
        UnknownNameError: There is none of that name.
        InputError: The function makes something else.
    """
    if name in SAMPLERS:
        with warnings.catch_warnings(category=optuna.exceptions.ExperimentalWarning, action="ignore"):
            return SAMPLERS[name](seed)
    if ":" not in name:
        raise UnknownNameError("sampler", name, SAMPLERS)
    make = cast(Callable[[int], Any], load(name))
    try:
        made = make(seed)
    except Exception as error:
        raise InputError(f"{name} must make a sampler of a seed, and raised {said(error)}") from error
    if not isinstance(made, BaseSampler):
        raise InputError(f"a sampler must be made by its function, an Optuna sampler, and {name} returned {made!r:.80}")
    return made


def _tpe(seed: int) -> BaseSampler:
    return optuna.samplers.TPESampler(multivariate=True, group=True, constant_liar=True, seed=seed)


class _BruteForce(optuna.samplers.BruteForceSampler):
    """Optuna stops a study that has tried everything, which a study that is only asked does not allow."""

    def after_trial(self, *args: Any, **kwargs: Any) -> None:
        """Ends nothing: the searcher sees that a trial comes again."""


SAMPLERS: dict[str, Callable[[int], BaseSampler]] = {
    "tpe": _tpe,
    "random": optuna.samplers.RandomSampler,
    BRUTE_FORCE: _BruteForce,
}
