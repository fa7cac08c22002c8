"""How a search suggests: TPE, at random, all there is, NSGA-II, or a sampler of the user's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import optuna
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial

from dice_ray.errors import InputError, UnknownNameError
from dice_ray.tuning.space import Space, load, said

BRUTE_FORCE = "brute_force"
POPULATION = 16
"""Of NSGA-II: with Optuna's 50, a search of some dozen trials would stay in its first generation, drawn at random."""
NUM_TRIED = 32
"""Trials drawn at random to see which parameters not all of them have."""


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


def notes(name: str, address: str, num_objectives: int = 1) -> list[str]:
    """What a user should know of this sampler on the space of this address, found by trying it.

    Raises:
        InputError: It cannot suggest a trial of the space.
    """
    space, chosen = Space(address), sampler(name, 0)
    if isinstance(chosen, optuna.samplers.RandomSampler | optuna.samplers.BruteForceSampler):
        return []
    at_random = optuna.samplers.RandomSampler(seed=0)
    known = _tried(space, at_random, num_objectives, NUM_TRIED)[0].study.get_trials()
    try:
        (last,) = _tried(space, chosen, num_objectives, 1, known)
    except Exception as error:
        why = said(error.__cause__ or error)  # a space wraps what the sampler raised within it
        raise InputError(f"{name} must suggest a trial of {address}, and raised {why}") from error
    if isinstance(chosen, optuna.samplers.TPESampler) and not chosen._multivariate:  # models each one by itself
        return []
    searched = [{name for name, range_ in trial.distributions.items() if not range_.single()} for trial in known]
    conditional = set[str].union(*searched) - set[str].intersection(*searched)
    alone = sorted(conditional - (last.relative_search_space or {}).keys())
    if not alone:
        return []
    several = f"{alone[0]} and {len(alone) - 1} others" if len(alone) > 1 else alone[0]
    return [
        f"note: the sampler {name} draws {several} at random, whatever was found before, since not every trial of "
        f"{address} has them; tpe learns them too"
    ]


def _tried(
    space: Space, chosen: BaseSampler, num_objectives: int, number: int, known: Iterable[FrozenTrial] = ()
) -> list[optuna.Trial]:
    """Trials of a space that a sampler suggests, each with made-up values, after those known."""
    with quiet_optuna():
        study = optuna.create_study(sampler=chosen, directions=["maximize"] * num_objectives)
        study.add_trials(known)
        found = []
        for score in range(number):
            found.append(trial := study.ask())
            space(trial)
            study.tell(trial, [float(score)] * num_objectives)
    return found


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Optuna announces a new study on the stderr of its import, which may be a notebook's."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def _nsga2(seed: int) -> BaseSampler:
    return optuna.samplers.NSGAIISampler(population_size=POPULATION, seed=seed)


def _tpe(seed: int) -> BaseSampler:
    return optuna.samplers.TPESampler(multivariate=True, group=True, constant_liar=True, seed=seed)


class _BruteForce(optuna.samplers.BruteForceSampler):
    """Optuna stops a study that has tried everything, which a study that is only asked does not allow."""

    def after_trial(self, *args: Any, **kwargs: Any) -> None:
        """Ends nothing: the searcher sees that a trial comes again."""


SAMPLERS: dict[str, Callable[[int], BaseSampler]] = {
    "tpe": _tpe,
    "random": optuna.samplers.RandomSampler,
    "nsga2": _nsga2,
    BRUTE_FORCE: _BruteForce,
}
