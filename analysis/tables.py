"""The tables of sweeps and of runs trained alone, and what has no score."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pandas as pd

from analysis.comparison import CONSTANT
from analysis.found import Found
from analysis.layout import Scale, Table
from analysis.scores import column, constant, losses, of_reruns, said_by_parent, scores, states
from analysis.statistics import Interval
from dice_ray.tracking import schema

NUM_BEST: Final = 10
"""Trials shown; the file holds all."""


def best_trials(found: Found) -> list[Table]:
    """The trials of a sweep with the parameters that were searched: those run again by their mean, others by score."""
    frame = found.frame
    trials = frame[frame["kind"] == "trial"]
    if trials.empty:
        return []
    metric = said_by_parent(frame, "metric")
    searched = searched_paths(trials)
    data = pd.DataFrame(
        {"trial": trials["id"], "score": scores(trials, metric), "state": states(trials), "loss": losses(trials)}
        | {path: column(trials, f"params.{path}") for path in searched}
    )
    again = of_reruns(frame, metric)
    if again:
        means = {name: [getattr(again.get(id_), name, math.nan) for id_ in data["trial"]] for name in ("mean", "num")}
        data.insert(2, "mean_of_reruns", means["mean"])
        data.insert(3, "reruns", pd.Series(means["num"], data.index, "Int64"))
    by = ["reruns", "mean_of_reruns", "score"] if again else ["score"]
    data = data.dropna(subset="score").sort_values(by, ascending=False, kind="stable")
    if data.empty:
        return []
    data.insert(0, "rank", pd.Series(range(1, len(data) + 1), data.index, "Int64"))
    num, best = len(data), data.head(NUM_BEST)
    if (predictor := constant(trials, metric)) is not None:
        last = pd.DataFrame([{"trial": CONSTANT, "score": predictor.mean}])
        data, best = (pd.concat([rows, last], ignore_index=True) for rows in (data, best))
    scale = Scale.of(data["score"])
    shown = pd.DataFrame(
        {
            "rank": best["rank"].astype("str").fillna(""),
            "trial": best["trial"],
            scale.heading(metric): [scale.show(score) for score in best["score"]],
            **(_shown_reruns(best, again, scale) if again else {}),
            "state": best["state"].fillna(""),
            "loss": best["loss"].fillna(""),
            "searched": [shown_parameters(trial, searched) for trial in best.to_dict("records")],
        }
    )
    notes = ["The trials were chosen by this very score, so it is optimistic: a study compares on the test split."]
    if again:
        notes.append(
            "The best were run again with other seeds, and are ranked by the mean over these alone; one that failed "
            "with some stands behind the others."
        )
    if num > NUM_BEST:
        notes.append(f"The first {NUM_BEST} of {num}.")
    return [Table("best_trials", "The best trials", data, shown, tuple(notes))]


def searched_paths(trials: pd.DataFrame) -> list[str]:
    """What a sweep varied beside the loss."""
    paths = [str(each).split() for each in column(trials, "tags.searched").dropna()]
    return [path for path in dict.fromkeys(path for each in paths for path in each) if path != "loss"]


def _shown_reruns(best: pd.DataFrame, again: Mapping[str, Interval], scale: Scale) -> dict[str, list[str]]:
    found = [again.get(str(id_)) for id_ in best["trial"]]
    return {
        "with other seeds": ["" if each is None else scale.show_interval(each) for each in found],
        "seeds": ["" if each is None else str(each.num) for each in found],
    }


def by_loss(found: Found) -> list[Table]:
    """The score that each loss reached in a sweep, and what became of its trials."""
    frame = found.frame
    trials = frame[frame["kind"] == "trial"]
    if trials.empty:
        return []
    metric = said_by_parent(frame, "metric")
    rows = []
    for loss, group in trials.groupby(losses(trials)):
        score, state = scores(group, metric), states(group)
        counts = {name: int((state == name).sum()) for name in ("done", "pruned", "failed")}
        rows.append({"loss": loss, "best": score.max(), "median": score.median(), "trials": len(group)} | counts)
    if not rows:
        return []
    data = pd.DataFrame(rows).sort_values("best", ascending=False, kind="stable", ignore_index=True)
    if (predictor := constant(trials, metric)) is not None:
        last = pd.DataFrame([{"loss": CONSTANT, "best": predictor.mean, "median": predictor.mean}])
        data = pd.concat([data, last], ignore_index=True)
    data = data.astype(dict.fromkeys(("trials", "done", "pruned", "failed"), "Int64"))
    scale = Scale.of(data["best"])
    shown = data.astype("str").fillna("")
    for name in ("best", "median"):
        shown[name] = [scale.show(value) for value in data[name]]
    note = "Best and median are over all trials with a score; a pruned one counts with what it had when it was stopped."
    title = f"{scale.heading(metric)} that each loss reached"
    return [Table("losses", title, data, shown, (note,))]


def alone(found: Found) -> list[Table]:
    """Runs that are no part of a sweep or study, each by the metric it was trained for."""
    frame = found.frame
    runs = frame[frame["kind"] == "run"]
    if runs.empty:
        return []
    metrics = column(runs, "tags.metric").astype("str").fillna("")
    groups = [(str(metric), group) for metric, group in runs.groupby(metrics)]
    score = pd.concat([scores(group, metric) for metric, group in groups])
    predictor = pd.concat([column(group, f"metrics.{schema.constant_metric(metric)}") for metric, group in groups])
    data = pd.DataFrame(
        {
            "run": runs["id"],
            "data": column(runs, "tags.data"),
            "loss": losses(runs),
            "seed": runs["seed"],
            "metric": metrics,
            "score": score,
            CONSTANT: predictor,
            "status": runs["status"].str.lower(),
        }
    )
    scale = Scale.of(pd.concat([score, predictor]))
    shown = data.astype("str").fillna("")
    for name in ("score", CONSTANT):
        shown[name] = [scale.show(value) for value in data[name]]
    shown = shown.rename(columns={name: scale.heading(name) for name in ("score", CONSTANT)})
    return [Table("runs", "Runs", data, shown, ("One run each: it takes several seeds to say what a loss is worth.",))]


def without_score(found: Found) -> list[Table]:
    """Every trial or cell that has no score, and why."""
    frame = found.frame
    runs = frame[frame["kind"].isin(["trial", "rerun", "cell"])]
    if runs.empty:
        return []
    runs = runs[scores(runs, said_by_parent(frame, "metric")).isna()]
    if runs.empty:
        return []
    data = pd.DataFrame(
        {
            "run": runs["id"],
            **({"arm": runs["arm"], "seed": runs["seed"]} if runs["arm"].notna().any() else {"loss": losses(runs)}),
            "state": states(runs),
            "why": column(runs, "tags.failure"),
        }
    )
    return [Table("without_score", "Runs without a score", data, data.astype("str").fillna(""))]


def shown_parameters(trial: dict[Any, Any], paths: Sequence[str]) -> str:
    """What was searched beside the loss, by path: `loss.focal.gamma=2, training.lr=2e-05`."""
    return ", ".join(f"{path}={_value(trial[path])}" for path in paths if not pd.isna(trial[path]))


def _value(value: object) -> str:
    return format(value, ".3g") if isinstance(value, float) else str(value)
