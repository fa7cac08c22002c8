"""Hyperparameter importance in a sweep, for each loss separately, with the level that chance reaches in a sweep."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.columns import column, losses, parent_tag, scores
from analysis.searched import scale_of

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution

LEAST_TRIALS: Final = 20
"""The fewest scored trials of a loss for which importance is computed; five of them are then the best quarter."""
BEST_SHARE: Final = 0.25
"""The share of trials that count as the best ones."""
NUM_SHUFFLES: Final = 100


@dataclass(frozen=True)
class Parameter:
    """One parameter within the trials of one loss.

    Attributes:
        importance: By PED-ANOVA; not normalised, so that importances do not sum to 1.
        by_chance: The level that some parameter of the sweep exceeds in 5 % of shufflings of the scores; an importance
            below it may be chance.
    """

    path: str
    importance: float
    by_chance: float


@dataclass(frozen=True)
class LossImportance:
    """The parameters of one loss, the most important first, over its scored trials."""

    loss: str
    num_trials: int
    parameters: tuple[Parameter, ...]


def importances(frame: pd.DataFrame) -> tuple[list[LossImportance], dict[str, int]]:
    """The importances for each loss with enough trials, and the number of trials of the other losses.

    Each loss is analysed separately: a parameter of one loss is missing in the trials of the others, so that one
    analysis of all trials would drop it or weigh it by how often its loss was drawn.
    """
    trials = frame[frame["kind"] == "trial"]
    if trials.empty:
        return [], {}
    score = scores(trials, parent_tag(frame, "metric")).dropna()
    trials, branches, few = trials.loc[score.index], list[Shuffled](), {}
    for loss, group in trials.groupby(losses(trials)):
        if len(group) < LEAST_TRIALS:
            few[str(loss)] = len(group)
        elif searched := _searched(group):
            branches.append(_shuffled(str(loss), group, searched, score[group.index].to_numpy(np.float64)))
    return sorted(by_chance(branches), key=lambda branch: -branch.num_trials), few


def too_few(frame: pd.DataFrame) -> dict[str, int]:
    """The number of scored trials of each loss of a sweep in which no loss has enough; else empty."""
    trials = frame[frame["kind"] == "trial"]
    if trials.empty:
        return {}
    score = scores(trials, parent_tag(frame, "metric")).dropna()
    counts = {str(loss): int(num) for loss, num in losses(trials.loc[score.index]).value_counts().items()}
    return counts if max(counts.values(), default=LEAST_TRIALS) < LEAST_TRIALS else {}


def _searched(trials: pd.DataFrame) -> list[str]:
    """The paths that all of these trials searched, and with more than one value."""
    chosen = [set(str(paths).split()) for paths in column(trials, "tags.searched")]
    shared = set.intersection(*chosen)
    return [path for path in sorted(shared) if trials.get(f"params.{path}", pd.Series()).nunique(dropna=False) > 1]


@dataclass(frozen=True)
class Shuffled:
    """The importance of the parameters of one loss, and what is left of it with shuffled scores (`shuffled_SP`)."""

    loss: str
    num_trials: int
    importance: Mapping[str, float]
    shuffled_SP: NDArray[np.floating]


def _shuffled(loss: str, trials: pd.DataFrame, paths: Sequence[str], score: NDArray[np.floating]) -> Shuffled:
    # A chosen `null` is a NaN in the frame, and each NaN would be a choice of its own.
    values = {path: [None if pd.isna(value) else value for value in trials[f"params.{path}"]] for path in paths}
    optuna_study = _study(values)
    importance = _evaluate(optuna_study, score)
    # Shuffled scores have no relation to the parameters: what importance is left is that of chance.
    draw = np.random.default_rng(0)
    shuffled = [_evaluate(optuna_study, draw.permutation(score)) for _ in range(NUM_SHUFFLES)]
    chance_SP = np.array([[shuffle[path] for path in paths] for shuffle in shuffled])
    return Shuffled(loss, len(trials), {path: importance[path] for path in paths}, chance_SP)


def by_chance(branches: Sequence[Shuffled]) -> list[LossImportance]:
    """The importances with the level that chance reaches, corrected over all parameters of the sweep.

    A sweep has many parameters, and the largest of many exceeds a quantile of one by chance. The level is therefore
    taken from the largest importance of each shuffling (Westfall and Young 1993), in units of the parameter's own
    quantile: parameters with many choices reach higher importances than those with few.
    """
    if not branches:
        return []
    # With the importance itself: the quantile of the shuffled ones alone would fit them better than a new one.
    own = [_quantile(np.vstack([[*branch.importance.values()], branch.shuffled_SP])) for branch in branches]
    ratios = [branch.shuffled_SP / level_P for branch, level_P in zip(branches, own, strict=True)]
    factor = float(_quantile(np.concatenate(ratios, 1).max(1)))
    made = []
    for branch, level_P in zip(branches, own, strict=True):
        parameters = [
            Parameter(path, importance, factor * level)
            for (path, importance), level in zip(branch.importance.items(), level_P.tolist(), strict=True)
        ]
        ordered = tuple(sorted(parameters, key=lambda each: -each.importance))
        made.append(LossImportance(branch.loss, branch.num_trials, ordered))
    return made


def _quantile(values: NDArray[np.floating]) -> NDArray[np.floating]:
    """The 95 % quantile over shufflings, and never 0."""
    # With the next higher of 100 values, an unshuffled one without any relation exceeds it in 5 of 101 sweeps.
    return np.asarray(np.maximum(np.quantile(values, 0.95, axis=0, method="higher"), 1e-12))


def _evaluate(optuna_study: Study, score: NDArray[np.floating]) -> dict[str, float]:
    """The importance of each parameter if the trials had these scores."""
    from optuna.importance import PedAnovaImportanceEvaluator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its warning that low values count as the best: hence the minus below
        evaluator = PedAnovaImportanceEvaluator(target_quantile=BEST_SHARE)
        return evaluator.evaluate(optuna_study, target=lambda trial: -float(score[trial.number]))


def _study(values: Mapping[str, Sequence[Any]]) -> Study:
    import optuna

    distributions = {path: _distribution(of_path) for path, of_path in values.items()}
    rows = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
    # Optuna reports each new study, which would stand in the middle of the report on a terminal.
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        optuna_study = optuna.create_study()
        optuna_study.add_trials(
            [optuna.create_trial(params=row, distributions=distributions, value=0.0) for row in rows]
        )
    finally:
        optuna.logging.set_verbosity(verbosity)
    return optuna_study


def _distribution(values: Sequence[Any]) -> BaseDistribution:
    """A distribution over the range of the tried values; the search space itself is not stored with the runs."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    scale = scale_of(values)
    if scale == "choice":
        return CategoricalDistribution(sorted(set(values), key=str))
    return FloatDistribution(float(min(values)), float(max(values)), log=scale == "log")
