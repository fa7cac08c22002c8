"""Columns computed from a frame of runs: score, state, loss, place, and the tags of the sweep or study."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from analysis.statistics import NO_SPREAD, Interval, t_interval
from dice_ray.errors import RunError
from dice_ray.tracking import schema


def parent_tag(frame: pd.DataFrame, name: str) -> str:
    """A tag of the sweep or study, `metric` or `baseline`; of the latest one if there are several.

    Raises:
        RunError: No sweep or study of the frame has it.
    """
    parents = frame[frame["kind"].isin(["sweep", "study"])]
    tags = column(parents, f"tags.{name}").dropna()
    if tags.empty:
        raise RunError(f"the sweep or study must carry the tag {schema.PREFIX}{name}, and no run of this frame does")
    return str(tags.iloc[-1])


def column(runs: pd.DataFrame, name: str) -> pd.Series[Any]:
    """A column of the frame; all values are missing if no run stored it."""
    return runs[name] if name in runs else pd.Series(np.nan, index=runs.index)


def has_drawn_settings(frame: pd.DataFrame) -> bool:
    """Whether the variants of a study are settings drawn from a search space, so that they are no data sets."""
    return bool(column(frame[frame["kind"] == "study"], "tags.variants_are").eq("settings").any())


def place_of(cells: pd.DataFrame, *names: str) -> pd.Series[str]:
    """The values of these tags (data set, encoder, variant), joined by commas, each word once."""
    # Once, because a variant may be named by its data set or encoder.
    known = [column(cells, f"tags.{name}").astype("str").fillna("") for name in names]
    words = [dict.fromkeys(", ".join(filter(None, place)).split(", ")) for place in zip(*known, strict=True)]
    return pd.Series([", ".join(place) for place in words], cells.index)


def test_per_train(cells: pd.DataFrame) -> float:
    """The number of test records for each training record if each seed drew its own splits, else 0."""
    known = column(cells, "tags.test_per_train").astype("float64").dropna()
    return float(known.max()) if len(known) else 0.0


def scores(runs: pd.DataFrame, metric: str) -> pd.Series[float]:
    """The score of each run: the best value if one is stored, else the last; NaN for a run or trial without a score."""
    last = column(runs, f"metrics.{metric}")
    best = column(runs, f"metrics.{schema.best_metric(metric)}")
    values = best.fillna(last).astype("float64")
    # A trial that has not ended is no candidate yet (`tuning.ranking`), and a failed run has no score.
    has_score = (runs["state"] != "failed") & ~((runs["kind"] == "trial") & runs["state"].isna())
    return values.where(np.isfinite(values) & has_score)


def unfailed(runs: pd.DataFrame, metric: str) -> pd.Series[float]:
    """The last value of a metric; NaN for a run that failed or did not store it."""
    return column(runs, f"metrics.{metric}").astype("float64").where(runs["state"] != "failed")


def constant(runs: pd.DataFrame, metric: str) -> Interval | None:
    """The score of the constant predictor, with an interval only if it differs between seeds; None if not stored."""
    stored = column(runs, f"metrics.{schema.constant_metric(metric)}")
    # The arms of one seed are scored on the same test split, and so is their constant predictor: one value a seed.
    values = stored.groupby(runs["seed"], dropna=False).mean().dropna()
    if values.empty:
        return None
    if np.ptp(values) < NO_SPREAD:
        return Interval(float(values.iloc[0]), math.nan, math.nan, 0)
    return t_interval(values.tolist(), test_per_train(runs))


def collapsed(runs: pd.DataFrame, metric: str) -> pd.Series[bool]:
    """Whether a run predicts one class only: by its tag (of the best evaluation), else by the last value.

    False for a run that failed, which is counted as failed only.
    """
    tag, last = column(runs, "tags.collapsed"), column(runs, f"metrics.{schema.collapsed_metric(metric)}")
    return ((tag == "true") | (tag.isna() & (last > 0))) & (runs["state"] != "failed")


def needs_no_threshold(metric: str) -> bool:
    """Whether a score is an area under a curve, of which the predictions at .5 say nothing."""
    return metric.rpartition("/")[2] in ("roc_auc", "pr_auc")


def has_objectives(frame: pd.DataFrame) -> bool:
    """Whether a sweep searched for several objectives, so that no trial is the best one."""
    return bool(column(frame[frame["kind"] == "sweep"], "tags.objectives").notna().any())


def states(runs: pd.DataFrame) -> pd.Series[str]:
    """done, pruned, failed, or unfinished."""
    return runs["state"].fillna("unfinished")


def losses(runs: pd.DataFrame) -> pd.Series[str]:
    """The name of each run's loss."""
    return column(runs, "tags.loss").astype("str").fillna(column(runs, "params.loss").astype("str"))


def drawn_losses(runs: pd.DataFrame) -> pd.Series[str]:
    """The name of each run's loss in a figure: `unknown` where it was deleted in MLflow. Tables leave such runs out."""
    return losses(runs).fillna("unknown")


def by_seed(values: pd.Series[float], seeds: pd.Series[int]) -> dict[int, float]:
    """The values that are not NaN, by seed."""
    return {int(seed): float(value) for seed, value in zip(seeds, values, strict=True) if not math.isnan(value)}
