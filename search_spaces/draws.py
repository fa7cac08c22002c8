"""Random draws from a search space: the settings that a study runs all of its arms with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import optuna
from optuna import Trial


def draws(space: Callable[[Trial], None], num: int, *, seed: int = 0) -> dict[str, dict[str, Any]]:
    """This number of independent draws from a space, as random search makes them; the same on each call.

    More draws leave the first ones as they are, so that a study can be extended.

    Returns:
        The values by path, by a name: `01`, `02`, ...

    >>> [*draws(lambda trial: trial.suggest_float("training.lr", 1e-5, 1e-3, log=True), 2)]
    ['01', '02']
    """
    # Optuna announces a new study on stderr.
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        optuna_study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    finally:
        optuna.logging.set_verbosity(verbosity)
    drawn = {}
    for number in range(1, num + 1):
        trial = optuna_study.ask()
        space(trial)
        drawn[f"{number:02d}"] = trial.params
    return drawn
