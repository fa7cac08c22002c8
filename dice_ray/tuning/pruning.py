"""Early stopping by Optuna's pruners.

Ray Tune's own schedulers keep their state in private attributes and cannot be resumed from a ledger. Optuna's pruners
decide from the intermediate values in the Optuna study, which are reported for every trial anyway and are restored when
a sweep is resumed. So `search.PruningScheduler` only asks the study.

A step of a pruner is an evaluation: `asha` (asynchronous successive halving, Li et al. 2020) compares trials after
their 1st, 3rd, 9th, ... evaluation, and at each of these rungs stops a trial that is not in the best third of those
that reached it so far. The first trials of a rung have nothing to be compared with, and are more often continued.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import optuna
from optuna.pruners import BasePruner, MedianPruner, NopPruner, SuccessiveHalvingPruner

from dice_ray.errors import UnknownNameError
from dice_ray.tuning.part_of_study import PartOfStudy
from dice_ray.tuning.samplers import made_by

PRUNERS: Final[Mapping[str, Callable[[], BasePruner]]] = {
    "asha": lambda: SuccessiveHalvingPruner(min_resource=1, reduction_factor=3),
    "median": lambda: MedianPruner(n_startup_trials=3),
    "none": NopPruner,
}


def pruner(name: str) -> BasePruner:
    """The pruner of a name, or of a function at `module:function` or `file.py:function`.

    Raises:
        UnknownNameError: There is no pruner of that name.
        InputError: The function does not make an Optuna pruner.
    """
    if name in PRUNERS:
        return PRUNERS[name]()
    if ":" not in name:
        raise UnknownNameError("scheduler", name, PRUNERS)
    return made_by(name, "pruner", BasePruner)


def replay(study: optuna.Study, scores: Sequence[float]) -> None:
    """Ask the pruner about each evaluation of the study's last trial, which must be running.

    A pruner may keep state in the study when it is asked: SuccessiveHalvingPruner notes there which rungs a trial has
    completed. A trial that is restored must leave the same state as one that ran.
    """
    if isinstance(study.pruner, NopPruner | MedianPruner):  # they keep no state
        return
    asked = study
    if isinstance(study.pruner, SuccessiveHalvingPruner) and study.pruner._min_resource is not None:
        # Which rungs a trial has completed does not depend on the others. With them, n trials would take n^2 steps.
        # `_min_resource` is an internal of Optuna 5.
        asked = PartOfStudy(study, [])
    number = len(study.get_trials(deepcopy=False)) - 1
    for step in range(1, len(scores) + 1):
        trial = copy.copy(study.get_trials(deepcopy=False)[number])
        trial.intermediate_values = dict(enumerate(scores[:step], start=1))
        study.pruner.prune(asked, trial)
