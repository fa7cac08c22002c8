"""Which hyperparameters decided the score of a sweep, within each loss by itself, and which could be chance."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.scores import column, losses, said_by_parent, scores

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution

LEAST_TRIALS: Final = 20
"""Scored trials of a loss below which nothing is said of its parameters: five are then among the best."""
BEST: Final = 0.25
"""The share of the trials that count as the best ones."""
NUM_SHUFFLES: Final = 100
DECADES: Final = 100
"""Positive values whose largest is so many times the smallest were drawn on a logarithm."""


@dataclass(frozen=True)
class Parameter:
    """One parameter within the trials of one loss.

    Attributes:
        importance: By PED-ANOVA, not normalised: with the others' it makes no whole.
        by_chance: What it reaches in 95 of 100 shufflings of the scores; below it, it says nothing.
    """

    path: str
    importance: float
    by_chance: float


@dataclass(frozen=True)
class Branch:
    """The trials of one loss, the parameters by their importance."""

    loss: str
    num_trials: int
    parameters: tuple[Parameter, ...]


def importances(frame: pd.DataFrame) -> tuple[list[Branch], dict[str, int]]:
    """Of a sweep, the losses with trials enough, and how many trials the others have.

    A parameter of one loss is missing in the trials of the others, so that one analysis over all of them would drop it
    or weigh it by how often its loss was drawn.
    """
    trials = frame[frame["kind"] == "trial"]
    if trials.empty:
        return [], {}
    score = scores(trials, said_by_parent(frame, "metric")).dropna()
    trials, branches, few = trials.loc[score.index], [], {}
    for loss, group in trials.groupby(losses(trials)):
        searched = _searched(group)
        if len(group) < LEAST_TRIALS:
            few[str(loss)] = len(group)
        elif searched:
            branches.append(
                Branch(str(loss), len(group), _parameters(group, searched, score[group.index].to_numpy(np.float64)))
            )
    return sorted(branches, key=lambda branch: -branch.num_trials), few


def _searched(trials: pd.DataFrame) -> list[str]:
    """The paths that every one of these trials chose, with more than one value."""
    chosen = [set(str(paths).split()) for paths in column(trials, "tags.searched")]
    shared = set.intersection(*chosen)
    return [path for path in sorted(shared) if trials.get(f"params.{path}", pd.Series()).nunique() > 1]


def _parameters(trials: pd.DataFrame, paths: Sequence[str], score: NDArray[np.floating]) -> tuple[Parameter, ...]:
    study = _study({path: trials[f"params.{path}"].tolist() for path in paths})
    found = _evaluated(study, score)
    draw = np.random.default_rng(0)
    shuffled = [_evaluated(study, draw.permutation(score)) for _ in range(NUM_SHUFFLES)]
    chance = {path: float(np.quantile([each[path] for each in shuffled], 0.95)) for path in paths}
    ordered = sorted(paths, key=lambda path: -found[path])
    return tuple(Parameter(path, found[path], chance[path]) for path in ordered)


def _evaluated(study: Study, score: NDArray[np.floating]) -> dict[str, float]:
    """The importance of each parameter, had its trials had these scores."""
    from optuna.importance import PedAnovaImportanceEvaluator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it looks for low values of the target: hence the minus
        evaluator = PedAnovaImportanceEvaluator(target_quantile=BEST)
        return evaluator.evaluate(study, target=lambda trial: -float(score[trial.number]))


def _study(values: Mapping[str, Sequence[Any]]) -> Study:
    import optuna

    distributions = {path: _distribution(of_path) for path, of_path in values.items()}
    rows = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        study = optuna.create_study()
        study.add_trials([optuna.create_trial(params=row, distributions=distributions, value=0.0) for row in rows])
    finally:
        optuna.logging.set_verbosity(verbosity)
    return study


def _distribution(values: Sequence[Any]) -> BaseDistribution:
    """Over the range of the values that were tried: the space itself is not stored with the runs."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    if len(set(values)) <= 5 or not all(isinstance(value, int | float) and math.isfinite(value) for value in values):
        return CategoricalDistribution(sorted(set(values), key=str))
    low, high = float(min(values)), float(max(values))
    return FloatDistribution(low, high, log=low > 0 and high / low > DECADES)
