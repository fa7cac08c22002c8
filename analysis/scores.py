"""What the tracked runs say of their score: by the metric their parent names, by seed, by loss, by state."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from analysis.statistics import NO_SPREAD, Interval, t_interval
from dice_ray.errors import RunError
from dice_ray.tracking import schema


def said_by_parent(frame: pd.DataFrame, name: str) -> str:
    """A tag of the sweep or study, `metric` or `baseline`; of the latest one where there are several."""
    parents = frame[frame["kind"].isin(["sweep", "study"])]
    said = column(parents, f"tags.{name}").dropna()
    if said.empty:
        raise RunError(f"the sweep or study must carry the tag {schema.PREFIX}{name}, and no run of this frame does")
    return str(said.iloc[-1])


def column(runs: pd.DataFrame, name: str) -> pd.Series[Any]:
    """A column of the frame, all missing where no run stored it."""
    return runs[name] if name in runs else pd.Series(np.nan, index=runs.index)


def place_of(cells: pd.DataFrame, *names: str) -> pd.Series[str]:
    """Of each cell what these tags say of where it ran, each word once: data set, encoder, what else a variant is."""
    known = [column(cells, f"tags.{name}").astype("str").fillna("") for name in names]
    words = [dict.fromkeys(", ".join(filter(None, place)).split(", ")) for place in zip(*known, strict=True)]
    return pd.Series([", ".join(each) for each in words], cells.index)


def test_per_train(cells: pd.DataFrame) -> float:
    """How many test records there are for each training record where each seed drew splits of its own, else 0."""
    known = column(cells, "tags.test_per_train").astype("float64").dropna()
    return float(known.max()) if len(known) else 0.0


def scores(runs: pd.DataFrame, metric: str) -> pd.Series[float]:
    """The score of each run: the best value where one is stored, else the last; none for a run that failed."""
    last = column(runs, f"metrics.{metric}")
    best = column(runs, f"metrics.{schema.best_metric(metric)}")
    values = best.fillna(last).astype("float64")
    return values.where(np.isfinite(values) & (runs["state"] != "failed"))


def tuned_scores(runs: pd.DataFrame, metric: str) -> pd.Series[float]:
    """The scores of the same runs at the threshold tuned on dev."""
    values = column(runs, f"metrics.{schema.tuned_metric(metric)}").astype("float64")
    return values.where(runs["state"] != "failed")


def pr_aucs(runs: pd.DataFrame, metric: str) -> pd.Series[float]:
    """The areas under the precision-recall curves of the same runs, where two classes have one."""
    values = column(runs, f"metrics.{schema.pr_auc_metric(metric)}").astype("float64")
    return values.where(runs["state"] != "failed")


def constant(runs: pd.DataFrame, metric: str) -> Interval | None:
    """The score of the constant predictor; an interval only where the seeds' splits differ."""
    values = (
        column(runs, f"metrics.{schema.constant_metric(metric)}").groupby(runs["seed"], dropna=False).mean().dropna()
    )
    if values.empty:
        return None
    if np.ptp(values) < NO_SPREAD:
        return Interval(float(values.iloc[0]), math.nan, math.nan, 0)
    return t_interval(values.tolist(), test_per_train(runs))


def collapsed(runs: pd.DataFrame, metric: str) -> pd.Series[bool]:
    """Whether a run predicts one class only: by its tag, that of the best evaluation, else by the last value.

    A run that failed is counted as that alone.
    """
    tag, last = column(runs, "tags.collapsed"), column(runs, f"metrics.{schema.collapsed_metric(metric)}")
    return ((tag == "true") | (tag.isna() & (last > 0))) & (runs["state"] != "failed")


def of_reruns(frame: pd.DataFrame, metric: str) -> dict[str, Interval]:
    """The mean score of a trial's configuration over the seeds that it was run again with, by the trial's id."""
    runs = frame[frame["kind"] == "rerun"]
    values = pd.DataFrame({"trial": column(runs, "tags.rerun_of"), "score": scores(runs, metric)}).dropna()
    return {str(trial): t_interval(group["score"].tolist()) for trial, group in values.groupby("trial")}


def states(runs: pd.DataFrame) -> pd.Series[str]:
    """done, pruned, failed, or unfinished."""
    return runs["state"].fillna("unfinished")


def losses(runs: pd.DataFrame) -> pd.Series[str]:
    """The name of each run's loss."""
    return column(runs, "tags.loss").astype("str").fillna(column(runs, "params.loss").astype("str"))


def by_seed(values: pd.Series[float], seeds: pd.Series[int]) -> dict[int, float]:
    """The scores that there are, by seed."""
    return {int(seed): float(value) for seed, value in zip(seeds, values, strict=True) if not math.isnan(value)}
