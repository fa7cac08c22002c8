"""Tables of runs: the best trials, losses and Pareto front of a sweep, runs trained alone, and runs without a score."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.comparison import CONSTANT
from analysis.formats import ScoreFormat
from analysis.frames import (
    Findings,
    all_metrics,
    all_params,
    best_score,
    constant,
    has_objectives,
    losses,
    metric_values,
    of_kind,
    param_values,
    scores,
    states,
    tag_values,
)
from analysis.statistics.intervals import t_interval
from analysis.sweep import chosen_values, searched_paths
from analysis.tables.base import ReportTable
from dice_ray.errors import shortened
from dice_ray.metrics import catalogue
from dice_ray.tracking import schema


def all_runs(findings: Findings) -> list[ReportTable]:
    """Each trial, rerun and cell with the settings that differ between them and its scores, for other programs."""
    runs = of_kind(findings.frame, "trial", "rerun", "cell")
    if runs.empty:
        return []
    params = all_params(runs)
    settings = params.loc[:, params.nunique(dropna=False) > 1]
    metrics = all_metrics(runs).filter(regex=r"^(dev|test)/")
    data = pd.concat(
        [
            runs[["id", "parent", "kind"]],
            tag_values(runs, schema.VARIANT).rename("variant"),
            runs[["arm", "seed"]],
            states(runs),
            settings,
            metrics,
        ],
        axis="columns",
    ).dropna(axis="columns", how="all")
    return [ReportTable("all_runs", "All runs", data, data)]


def trained_alone(findings: Findings) -> list[ReportTable]:
    """Runs outside any sweep or study, each with the metric it was trained for."""
    runs = of_kind(findings.frame, "run")
    if runs.empty:
        return []
    metrics = tag_values(runs, schema.METRIC).astype("str").fillna("")
    groups = [(str(metric), group) for metric, group in runs.groupby(metrics)]
    score = pd.concat([scores(group, metric) for metric, group in groups])
    predictor = pd.concat([metric_values(group, schema.sibling(metric, "constant")) for metric, group in groups])
    data = pd.DataFrame(
        {
            "run": runs["id"],
            "data": tag_values(runs, schema.DATA),
            "loss": losses(runs),
            "seed": runs["seed"],
            "metric": metrics,
            "score": score,
            CONSTANT: predictor,
            "status": runs["status"].str.lower(),
        }
    )
    of_all = pd.concat([score, predictor])
    score_format = ScoreFormat(percent=all(ScoreFormat.of(metric, of_all).percent for metric, _ in groups))
    shown = data.astype("str").fillna("")
    for name in ("score", CONSTANT):
        shown[name] = [score_format.show(value) for value in data[name]]
    shown = shown.rename(columns={name: score_format.heading(name) for name in ("score", CONSTANT)})
    return [ReportTable("runs", "Runs", data, shown, ("Single runs: comparing losses takes several seeds of each.",))]


def without_score(findings: Findings) -> list[ReportTable]:
    """Every trial, rerun or cell that has no score, with the reason."""
    runs = of_kind(findings.frame, "trial", "rerun", "cell")
    if len(runs):
        runs = runs[scores(runs, findings.metric).isna()]
    if runs.empty:
        return []
    data = pd.DataFrame(
        {
            "run": runs["id"],
            **({"arm": runs["arm"], "seed": runs["seed"]} if runs["arm"].notna().any() else {"loss": losses(runs)}),
            "state": states(runs),
            "why": tag_values(runs, schema.FAILURE),
        }
    )
    return [ReportTable("without_score", "Runs without a score", data, data.astype("str").fillna(""))]


_NUM_BEST: Final = 10
"""Trials shown in the table; its CSV file holds all."""


def best_trials(findings: Findings) -> list[ReportTable]:
    """The ranked trials of a sweep with the searched parameters, and the mean over their reruns with other seeds."""
    if not findings.ranked or has_objectives(findings.frame):
        return []
    trials, metric = findings.trials, findings.metric
    data = pd.DataFrame(
        {"trial": trials["id"], "score": scores(trials, metric), "state": states(trials), "loss": losses(trials)}
        | {path: param_values(trials, path) for path in searched_paths(trials)}
    )
    data = data.set_index("trial").loc[list(findings.ranked)].reset_index()
    data.insert(0, "rank", pd.Series(range(1, len(data) + 1), data.index, "Int64"))
    limits = catalogue.metric(metric).limits
    reruns = {id_: t_interval(list(values), 0.0, limits) for id_, values in findings.rerun_scores.items()}
    if reruns:
        data.insert(3, "mean_of_reruns", data["trial"].map({id_: of.mean for id_, of in reruns.items()}))
        data.insert(4, "reruns", data["trial"].map({id_: of.num for id_, of in reruns.items()}).astype("Int64"))
    num, best = len(data), data.head(_NUM_BEST)
    if (predictor := constant(trials, metric)) is not None:
        last = pd.DataFrame([{"trial": CONSTANT, "score": predictor.mean}])
        data, best = (pd.concat([rows, last], ignore_index=True) for rows in (data, best))
    score_format = ScoreFormat.of(metric, data["score"])
    intervals = [reruns.get(str(id_)) for id_ in best["trial"]]
    of_reruns = {
        "with other seeds": [score_format.show_interval(interval) if interval else "" for interval in intervals],
        "seeds": [str(interval.num) if interval else "" for interval in intervals],
    }
    parameters = {str(trial["id"]): _shown_parameters(trial) for _, trial in trials.iterrows()}
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
    if num > _NUM_BEST:
        notes.append(f"The first {_NUM_BEST} of {num}.")
    return [ReportTable("best_trials", "The best trials", data, shown, tuple(notes))]


def _shown_parameters(trial: pd.Series[Any]) -> str:
    """The searched parameters of a trial, without its loss: `loss.focal.gamma=2, training.patience=null`."""
    return ", ".join(f"{path}={shortened(value)}" for path, value in chosen_values(trial).items() if path != "loss")


def by_loss(findings: Findings) -> list[ReportTable]:
    """The best and median score of each loss in a sweep, and the states of its trials."""
    trials = findings.trials
    if trials.empty:
        return []
    metric, rows = findings.metric, []
    for loss, group in trials.groupby(losses(trials)):
        score, state = scores(group, metric), states(group)
        counts = {name: int((state == name).sum()) for name in ("done", "pruned", "failed")}
        best = best_score(group, metric)
        rows.append({"loss": loss, "best": best, "median": score.median(), "trials": len(group)} | counts)
    if not rows:
        return []
    ascending = catalogue.metric(metric).is_minimised
    data = pd.DataFrame(rows).sort_values("best", ascending=ascending, kind="stable", ignore_index=True)
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


def pareto_front(findings: Findings) -> list[ReportTable]:
    """The finished trials on the front, ordered by the first objective."""
    tags = tag_values(of_kind(findings.frame, "sweep"), schema.OBJECTIVES).dropna()
    if tags.empty:
        return []
    trials = findings.trials
    trials = trials[states(trials) == "done"]
    signs = {name.removeprefix("-"): -1 if name.startswith("-") else 1 for name in str(tags.iloc[-1]).split()}
    # At the retained checkpoint; the last value for metrics of the whole run, such as its duration.
    kept = {metric: metric_values(trials, schema.sibling(metric, "kept")) for metric in signs}
    values = pd.DataFrame({metric: of.fillna(metric_values(trials, metric)) for metric, of in kept.items()})
    values = values.astype("float64").dropna()
    values = values[_is_front(values.to_numpy(float) * list(signs.values()))]
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
            "searched": [_shown_parameters(trial) for _, trial in trials.iterrows()],
        }
    )
    notes = ("No other finished trial is better in one objective and at least as good in the others.",)
    return [ReportTable("pareto_front", "The Pareto front", data, shown, notes)]


def _is_front(values_NM: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which rows no other row dominates, that is, is nowhere lower and somewhere higher.

    >>> _is_front(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0], [1.0, 2.0]])).tolist()
    [True, True, False, True]
    """
    as_good_NN = (values_NM[:, None] >= values_NM[None]).all(axis=2)
    better_NN = (values_NM[:, None] > values_NM[None]).any(axis=2)
    return np.logical_not((as_good_NN & better_NN).any(axis=0))
