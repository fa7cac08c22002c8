"""The Pareto front of a sweep with several objectives: the trials that no other trial dominates."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.formats import ScoreFormat
from analysis.frames import Findings, losses, metric_values, of_kind, param_values, states, tag_values
from analysis.sweep import searched_paths
from analysis.tables.base import ReportTable
from analysis.tables.sweep import shown_parameters
from dice_ray.tracking import schema


def pareto_front(findings: Findings) -> list[ReportTable]:
    """The finished trials on the front, ordered by the first objective."""
    frame = findings.frame
    tags = tag_values(of_kind(frame, "sweep"), schema.OBJECTIVES).dropna()
    if tags.empty:
        return []
    trials = of_kind(frame, "trial")
    trials = trials[states(trials) == "done"]
    signs = {name.removeprefix("-"): -1 if name.startswith("-") else 1 for name in str(tags.iloc[-1]).split()}
    values = pd.DataFrame({metric: _of_kept_checkpoint(trials, metric) for metric in signs}).dropna()
    values = values[is_front(values.to_numpy(float) * list(signs.values()))]
    if values.empty:
        return []
    values = values.sort_values(list(signs), ascending=[sign < 0 for sign in signs.values()], kind="stable")
    trials, searched = trials.loc[values.index], searched_paths(trials)
    data = pd.DataFrame({"trial": trials["id"], **dict(values.items()), "loss": losses(trials)})
    data = data.assign(**{path: param_values(trials, path) for path in searched})
    formats = {metric: ScoreFormat.of(metric, values[metric]) for metric in signs}
    shown = pd.DataFrame(
        {
            "trial": data["trial"],
            **{of.heading(metric): [of.show(value) for value in data[metric]] for metric, of in formats.items()},
            "loss": data["loss"],
            "searched": [shown_parameters(trial) for _, trial in trials.iterrows()],
        }
    )
    notes = ("No other finished trial is better in one objective and at least as good in the others.",)
    return [ReportTable("pareto_front", "The Pareto front", data, shown, notes)]


def is_front(values_NM: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which rows no other row dominates, that is, is nowhere lower and somewhere higher.

    >>> is_front(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0], [1.0, 2.0]])).tolist()
    [True, True, False, True]
    """
    as_good_NN = (values_NM[:, None] >= values_NM[None]).all(axis=2)
    better_NN = (values_NM[:, None] > values_NM[None]).any(axis=2)
    return np.logical_not((as_good_NN & better_NN).any(axis=0))


def _of_kept_checkpoint(trials: pd.DataFrame, metric: str) -> pd.Series[float]:
    """The value at the retained checkpoint; the last value for metrics of the whole run, such as its duration."""
    kept = metric_values(trials, schema.kept_metric(metric))
    return kept.fillna(metric_values(trials, metric)).astype("float64")
