"""The tables of a sweep: its best trials, and the score that each loss reached."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd

from analysis.comparison import CONSTANT
from analysis.formats import ScoreFormat
from analysis.frames import (
    Findings,
    constant,
    has_objectives,
    losses,
    of_kind,
    param_values,
    parent_tag,
    scores,
    states,
)
from analysis.statistics.intervals import t_interval
from analysis.sweep import chosen_values, searched_paths
from analysis.tables.base import ReportTable
from dice_ray.errors import shortened
from dice_ray.metrics import catalogue
from dice_ray.tracking import schema

NUM_BEST: Final = 10
"""Trials shown in the table; its CSV file holds all."""


def best_trials(findings: Findings) -> list[ReportTable]:
    """The ranked trials of a sweep with the searched parameters, and the mean over their reruns with other seeds."""
    if not findings.ranked or has_objectives(findings.frame):
        return []
    frame = findings.frame
    trials = of_kind(frame, "trial")
    metric, searched = parent_tag(frame, schema.METRIC), searched_paths(trials)
    data = pd.DataFrame(
        {"trial": trials["id"], "score": scores(trials, metric), "state": states(trials), "loss": losses(trials)}
        | {path: param_values(trials, path) for path in searched}
    )
    data = data.set_index("trial").loc[list(findings.ranked)].reset_index()
    data.insert(0, "rank", pd.Series(range(1, len(data) + 1), data.index, "Int64"))
    limits = catalogue.metric(metric).limits
    reruns = {id_: t_interval(list(values), 0.0, limits) for id_, values in findings.rerun_scores.items()}
    if reruns:
        data.insert(3, "mean_of_reruns", data["trial"].map({id_: of.mean for id_, of in reruns.items()}))
        data.insert(4, "reruns", data["trial"].map({id_: of.num for id_, of in reruns.items()}).astype("Int64"))
    num, best = len(data), data.head(NUM_BEST)
    if (predictor := constant(trials, metric)) is not None:
        last = pd.DataFrame([{"trial": CONSTANT, "score": predictor.mean}])
        data, best = (pd.concat([rows, last], ignore_index=True) for rows in (data, best))
    score_format = ScoreFormat.of(metric, data["score"])
    intervals = [reruns.get(str(id_)) for id_ in best["trial"]]
    of_reruns = {
        "with other seeds": [score_format.show_interval(interval) if interval else "" for interval in intervals],
        "seeds": [str(interval.num) if interval else "" for interval in intervals],
    }
    parameters = {str(trial["id"]): shown_parameters(trial) for _, trial in trials.iterrows()}
    shown = pd.DataFrame(
        {
            "rank": best["rank"].astype("str").fillna(""),
            "trial": best["trial"],
            score_format.heading(metric): [score_format.show(score) for score in best["score"]],
            **(of_reruns if reruns else {}),
            "state": best["state"].fillna(""),
            "loss": best["loss"].fillna(""),
            "searched": [parameters.get(str(id_), "") for id_ in best["trial"]],
        }
    )
    notes = ["The search selected trials by this same score, so it is optimistic; a study compares on the test split."]
    if reruns:
        notes.append(
            "The best trials were run again with other seeds and are ranked by the mean over these seeds alone; a "
            "trial with a failed rerun ranks behind those without."
        )
    if num > NUM_BEST:
        notes.append(f"The first {NUM_BEST} of {num}.")
    return [ReportTable("best_trials", "The best trials", data, shown, tuple(notes))]


def shown_parameters(trial: pd.Series[Any]) -> str:
    """The searched parameters of a trial, without its loss: `loss.focal.gamma=2, training.patience=null`."""
    return ", ".join(f"{path}={shortened(value)}" for path, value in chosen_values(trial).items() if path != "loss")


def by_loss(findings: Findings) -> list[ReportTable]:
    """The best and median score of each loss in a sweep, and the states of its trials."""
    frame = findings.frame
    trials = of_kind(frame, "trial")
    if trials.empty:
        return []
    metric = parent_tag(frame, schema.METRIC)
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
    score_format = ScoreFormat.of(metric, data["best"])
    shown = data.astype("str").fillna("")
    for name in ("best", "median"):
        shown[name] = [score_format.show(value) for value in data[name]]
    note = "Best and median are over all trials with a score; a pruned trial counts with its score when it was stopped."
    return [ReportTable("losses", f"{score_format.heading(metric)} reached by each loss", data, shown, (note,))]
