"""The tables of all runs for other programs, of runs trained alone, and of runs without a score."""

from __future__ import annotations

import pandas as pd

from analysis.comparison import CONSTANT
from analysis.formats import ScoreFormat
from analysis.frames import (
    Findings,
    all_metrics,
    all_params,
    losses,
    metric_values,
    of_kind,
    parent_tag,
    scores,
    states,
    tag_values,
)
from analysis.tables.base import ReportTable
from dice_ray.tracking import schema


def all_runs(findings: Findings) -> list[ReportTable]:
    """Each trial, rerun and cell with the settings that differ between them and its scores, for other programs."""
    frame = findings.frame
    runs = of_kind(frame, "trial", "rerun", "cell")
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
    frame = findings.frame
    runs = of_kind(frame, "run")
    if runs.empty:
        return []
    metrics = tag_values(runs, schema.METRIC).astype("str").fillna("")
    groups = [(str(metric), group) for metric, group in runs.groupby(metrics)]
    score = pd.concat([scores(group, metric) for metric, group in groups])
    predictor = pd.concat([metric_values(group, schema.constant_metric(metric)) for metric, group in groups])
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
    frame = findings.frame
    runs = of_kind(frame, "trial", "rerun", "cell")
    if runs.empty:
        return []
    runs = runs[scores(runs, parent_tag(frame, schema.METRIC)).isna()]
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
