"""What a sweep found: its best trial, the settings that it searched, and the importance of each."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.frames import (
    Findings,
    collapsed,
    drawn_losses,
    has_objectives,
    losses,
    of_kind,
    param_values,
    parent_tag,
    scores,
    tag_values,
)
from dice_ray.metrics.catalogue import gain
from dice_ray.tracking import schema

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution

_Scale: TypeAlias = Literal["choice", "linear", "log"]
_MOST_CHOICES: Final = 5
"""So few numbers that occur again are choices, whose distance means nothing; drawn from a range, none occurs twice."""
LEAST_TRIALS: Final = 20
"""The fewest scored trials of a loss for which importance is computed; five of them are then the best quarter."""
_NUM_SHUFFLES: Final = 100


@dataclass(frozen=True)
class _BestTrial:
    """The trial that a sweep ranks first.

    Attributes:
        score: On dev: the mean over its reruns if it has any, else its own score.
        num_reruns: How many reruns have a score.
        settings: What the search chose, by path; None for `null`.
        is_collapsed: Whether it predicts one class only.
    """

    id: str
    loss: str
    metric: str
    score: float
    num_reruns: int
    settings: dict[str, Any]
    is_collapsed: bool


def best_trial(findings: Findings) -> _BestTrial | None:
    """The first of the ranked trials; None if no trial has a score, or the sweep has several objectives."""
    if not findings.ranked or has_objectives(findings.frame):
        return None
    id_ = findings.ranked[0]
    runs, metric = findings.trials[findings.trials["id"] == id_], findings.metric
    reruns = findings.rerun_scores.get(id_, ())
    score = fmean(reruns) if reruns else float(scores(runs, metric).iloc[0])
    return _BestTrial(
        id_,
        str(drawn_losses(runs).iloc[0]),
        metric,
        score,
        len(reruns),
        chosen_values(runs.iloc[0]),
        bool(collapsed(runs, metric).iloc[0]),
    )


@dataclass(frozen=True)
class Setting:
    """A searched setting.

    Attributes:
        values: Its values, in the order of the trials; None where a trial did not search it.
    """

    path: str
    scale: _Scale
    values: tuple[float | str | None, ...]

    @property
    def choices(self) -> tuple[float | str, ...]:
        """The different values, numbers by size and before words."""
        known = {value for value in self.values if value is not None}
        return tuple(sorted(known, key=lambda value: (isinstance(value, str), value)))


def searched_paths(trials: pd.DataFrame) -> list[str]:
    """The paths that a sweep varied, without the loss, in the order of the space."""
    paths = (path for tag in tag_values(trials, schema.SEARCHED).dropna() for path in str(tag).split())
    return [path for path in dict.fromkeys(paths) if path != "loss"]


def chosen_values(trial: pd.Series[Any]) -> dict[str, Any]:
    """What the search chose for one trial, by path, with the loss: a chosen `null` is None, a whole number an int.

    >>> chosen_values(pd.Series({"tags.searched": "a.x a.y", "params.a.x": 16.0, "params.a.y": None, "params.b": 1.0}))
    {'a.x': 16, 'a.y': None}
    """
    # MLflow stores the settings of a trial that the search did not choose too, and a frame holds a `null` and a setting
    # of another trial alike as missing. Only the tag, which names what was chosen, tells these apart.
    tag = trial.get(schema.tag_column(schema.SEARCHED))
    paths = tag.split() if isinstance(tag, str) else []
    return {path: _chosen(trial[name]) for path in paths if (name := schema.param_column(path)) in trial}


def _chosen(value: Any) -> Any:
    if pd.isna(value):
        return None
    # A column with a missing value holds whole numbers as floats.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def settings_of(trials: pd.DataFrame) -> list[Setting]:
    """The settings that these trials searched with more than one value; those of losses first, as in the spaces."""
    chosen = [set(str(paths).split()) for paths in tag_values(trials, schema.SEARCHED)]
    settings = []
    for path in sorted(searched_paths(trials), key=lambda path: not path.startswith("loss.")):
        stored = param_values(trials, path)
        # A trial that chose `null` has searched the setting, and a trial of another loss has not.
        values = [
            (value if pd.notna(value) else "null") if path in of_trial else None
            for value, of_trial in zip(stored.tolist(), chosen, strict=True)
        ]
        numbers = {value for value in values if isinstance(value, int | float)}
        if len(numbers) > _MOST_CHOICES:  # `null` is no place among numbers of a range
            values = [value if value in numbers else None for value in values]
        known = [value for value in values if value is not None]
        if len(set(known)) > 1:
            settings.append(Setting(path, _scale_of(known), tuple(values)))
    return settings


def _scale_of(values: Sequence[Any]) -> _Scale:
    """The scale on which values are spread more evenly: the search space itself is not stored with the runs.

    Positive values of more than a decade are more likely under a log-uniform distribution over their range than under a
    uniform one if their geometric mean is below the logarithmic mean of the range's ends. The ratio of the ends alone
    does not tell: that of 100 values drawn uniformly from 0 to 1 is mostly above 100.

    >>> _scale_of([0.001, 0.01, 0.1, 1.0]), _scale_of([0.01, 0.3, 0.7, 0.9]), _scale_of(["linear", "cosine"])
    ('log', 'linear', 'choice')
    """
    distinct = set(values)
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in distinct):
        return "choice"
    if len(distinct) <= _MOST_CHOICES and len(distinct) < len(values):
        return "choice"
    low, high = min(distinct), max(distinct)
    if low <= 0 or high / low < 10:  # less than a decade is legible on a linear scale, whatever it was drawn on
        return "linear"
    mean_log = sum(map(math.log, values)) / len(values)
    return "log" if mean_log < math.log((high - low) / math.log(high / low)) else "linear"


@dataclass(frozen=True)
class _Parameter:
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
    parameters: tuple[_Parameter, ...]


def importances(frame: pd.DataFrame) -> tuple[list[LossImportance], dict[str, int]]:
    """The importances for each loss with enough trials, and the number of trials of the other losses.

    Each loss is analysed separately: a parameter of one loss is missing in the trials of the others, so that one
    analysis of all trials would drop it or weigh it by how often its loss was drawn.
    """
    trials, gains = _scored(frame)
    groups = {str(loss): group for loss, group in trials.groupby(losses(trials))}
    few = {loss: len(group) for loss, group in groups.items() if len(group) < LEAST_TRIALS}
    shuffled = {
        loss: _shuffled(group, searched, gains[group.index].to_numpy(np.float64))
        for loss, group in groups.items()
        if loss not in few and (searched := _searched(group))
    }
    made = [LossImportance(loss, len(groups[loss]), found) for loss, found in _by_chance(shuffled).items()]
    return sorted(made, key=lambda branch: -branch.num_trials), few


def too_few(frame: pd.DataFrame) -> dict[str, int]:
    """The number of scored trials of each loss of a sweep in which no loss has enough; else empty."""
    trials, _ = _scored(frame)
    counts = {str(loss): int(num) for loss, num in losses(trials).value_counts().items()}
    return counts if max(counts.values(), default=LEAST_TRIALS) < LEAST_TRIALS else {}


def _scored(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series[float]]:
    """The trials of a sweep that have a score, and the gains of these scores; none with several objectives.

    Of those the metric of the sweep need not be one.
    """
    trials = of_kind(frame, "trial").iloc[: 0 if has_objectives(frame) else None]
    if trials.empty:
        return trials, pd.Series(dtype="float64")
    metric = parent_tag(frame, schema.METRIC)
    score = scores(trials, metric).dropna()
    return trials.loc[score.index], score * gain(metric, 1.0)


def _searched(trials: pd.DataFrame) -> list[str]:
    """The paths that all of these trials searched, and with more than one value."""
    chosen = [set(str(paths).split()) for paths in tag_values(trials, schema.SEARCHED)]
    shared = set.intersection(*chosen)
    return [path for path in sorted(shared) if param_values(trials, path).nunique(dropna=False) > 1]


def _shuffled(trials: pd.DataFrame, paths: list[str], score: NDArray[np.floating]) -> pd.DataFrame:
    """The importance of each parameter in the first row, and in the others what is left of it with shuffled scores."""
    # A chosen `null` is a NaN in the frame, and each NaN would be a choice of its own.
    values = {path: [None if pd.isna(value) else value for value in param_values(trials, path)] for path in paths}
    optuna_study, draw = _study(values), np.random.default_rng(0)
    # Shuffled scores have no relation to the parameters: what importance is left is that of chance.
    orders = [score, *(draw.permutation(score) for _ in range(_NUM_SHUFFLES))]
    return pd.DataFrame([_evaluate(optuna_study, each) for each in orders])[paths]


def _by_chance(shuffled: Mapping[str, pd.DataFrame]) -> dict[str, tuple[_Parameter, ...]]:
    """The importances by loss with the level that chance reaches, corrected over all parameters of the sweep.

    A sweep has many parameters, and the largest of many exceeds a quantile of one by chance. The level is therefore
    taken from the largest importance of each shuffling (Westfall and Young 1993), in units of the parameter's own
    quantile: parameters with many choices reach higher importances than those with few.
    """
    if not shuffled:
        return {}
    # With the importance itself: the quantile of the shuffled ones alone would fit them better than a new one.
    own = {loss: _quantile(found.to_numpy()) for loss, found in shuffled.items()}
    ratios = [found.to_numpy()[1:] / own[loss] for loss, found in shuffled.items()]
    factor = float(_quantile(np.concatenate(ratios, 1).max(1)))
    made = {}
    for loss, found in shuffled.items():
        rows = zip(map(str, found), found.iloc[0].tolist(), (factor * own[loss]).tolist(), strict=True)
        made[loss] = tuple(sorted((_Parameter(*row) for row in rows), key=lambda each: -each.importance))
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
        evaluator = PedAnovaImportanceEvaluator(target_quantile=0.25)  # the best quarter of the trials
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

    scale = _scale_of(values)
    if scale == "choice":
        return CategoricalDistribution(sorted(set(values), key=str))
    return FloatDistribution(float(min(values)), float(max(values)), log=scale == "log")
