"""The Pareto front of a sweep with several objectives: the trials that no other one beats."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.found import Found
from analysis.layout import Scale, Table
from analysis.scores import column, losses, states
from analysis.tables import searched_paths, shown_parameters
from dice_ray.tracking import schema


def pareto_front(found: Found) -> list[Table]:
    """The trials on the front, in the order of the first objective."""
    frame = found.frame
    tags = column(frame[frame["kind"] == "sweep"], "tags.objectives").dropna()
    if tags.empty:
        return []
    trials = frame[(frame["kind"] == "trial") & (states(frame) == "done")]
    signs = {name.removeprefix("-"): -1 if name.startswith("-") else 1 for name in str(tags.iloc[-1]).split()}
    values = pd.DataFrame({metric: _kept(trials, metric) for metric in signs}).dropna()
    values = values[is_front(values.to_numpy(float) * list(signs.values()))]
    if values.empty:
        return []
    values = values.sort_values(list(signs), ascending=[sign < 0 for sign in signs.values()], kind="stable")
    trials, searched = trials.loc[values.index], searched_paths(trials)
    data = pd.DataFrame({"trial": trials["id"], **dict(values.items()), "loss": losses(trials)})
    data = data.assign(**{path: column(trials, f"params.{path}") for path in searched})
    scales = {metric: Scale.of(values[metric]) for metric in signs}
    shown = pd.DataFrame(
        {
            "trial": data["trial"],
            **{scale.heading(each): [scale.show(value) for value in data[each]] for each, scale in scales.items()},
            "loss": data["loss"],
            "searched": [shown_parameters(trial, searched) for trial in data.to_dict("records")],
        }
    )
    notes = ("Of the trials that ran to their end, no other is better in one of these and as good in the others.",)
    return [Table("pareto_front", "The Pareto front", data, shown, notes)]


def is_front(values_NM: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which rows no other row beats: nowhere lower, somewhere higher.

    >>> is_front(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0], [1.0, 2.0]])).tolist()
    [True, True, False, True]
    """
    as_good_NN = (values_NM[:, None] >= values_NM[None]).all(axis=2)
    better_NN = (values_NM[:, None] > values_NM[None]).any(axis=2)
    return np.logical_not((as_good_NN & better_NN).any(axis=0))


def _kept(trials: pd.DataFrame, metric: str) -> pd.Series[float]:
    """Of the checkpoint kept; the last value of what counts the whole run."""
    kept = column(trials, f"metrics.{schema.kept_metric(metric)}")
    return kept.fillna(column(trials, f"metrics.{metric}")).astype("float64")
