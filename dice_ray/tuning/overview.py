"""The experiments of the MLflow store, and the runs of one side by side: the best first, with what differs between
them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import Any

import pandas as pd

from dice_ray.metrics.catalogue import gain
from dice_ray.tracking import schema
from dice_ray.tracking.reader import PARENTS, read
from dice_ray.tuning.ledger import run_name
from dice_ray.tuning.ranking import ranked_in_frame, score_in_row


@dataclass(frozen=True)
class Experiment:
    """One experiment of the store.

    Attributes:
        kind: What it holds: a sweep, a study, a comparison of runs of other programs, or runs trained alone.
        runs: Number of its runs, without their parent, by MLflow's status; of a comparison, by state.
        metric: The metric that decides.
        best: The value of its best run; of a sweep, the value by which its best trial is ranked. None for a sweep of
            several objectives, which has no best trial, and for a study: its report says whether an arm wins, which no
            single cell shows.
        began: Start of its newest run, ISO 8601.
    """

    name: str
    kind: str
    runs: dict[str, int]
    metric: str | None
    best: float | None
    began: str | None


@dataclass(frozen=True)
class ComparedRun:
    """A run among the others of its experiment.

    Attributes:
        run: Its name for commands: `NAME`, `SWEEP/TRIAL`, `STUDY/ARM/SEED`, `STUDY/VARIANT/ARM/SEED`.
        state: `done`, `pruned` or `failed`; MLflow's status of a run that has not ended.
        metric: The metric that decides.
        score: Its value at the retained checkpoint; of a trial that was run again, the mean of its reruns, by which it
            is ranked. None for a run that failed.
        reruns: The number of reruns of a trial that have a score.
        rerun_of: The trial that a rerun repeats with another seed.
        params: The parameters that differ between the runs, by path.
        failure: Why it failed.
    """

    run: str
    state: str
    metric: str | None
    score: float | None
    seed: int | None
    params: dict[str, Any]
    failure: str | None
    reruns: int = 0
    rerun_of: str | None = None


def overview(
    names: Iterable[str], uri: str | None = None, comparisons: Mapping[str, pd.DataFrame] = MappingProxyType({})
) -> list[Experiment]:
    """These experiments, the most recently used first, then comparisons, of which the frames are given."""
    experiments = []
    frames = chain(((name, read(name, uri), False) for name in names), ((*each, True) for each in comparisons.items()))
    for name, frame, is_comparison in frames:
        kinds = [kind for kind in frame["kind"] if kind in PARENTS]
        # The trials of a sweep come first, with the values that they are ranked by.
        rows = compared(name, frame)
        first = rows[0] if rows and rows[0].score is not None else None
        objectives = frame.get(schema.tag_column(schema.OBJECTIVES))
        has_best = "study" not in kinds and (objectives is None or objectives.isna().all())
        statuses = _children(frame)["state"].fillna("running") if is_comparison else _children(frame)["status"]
        last = frame["start"].max()
        experiments.append(
            Experiment(
                name,
                schema.COMPARISON if is_comparison else kinds[0] if kinds else "runs",
                {str(status): int(num) for status, num in statuses.value_counts().items()},
                first.metric if first else None,
                first.score if first and has_best else None,
                None if pd.isna(last) else last.isoformat(timespec="milliseconds"),
            )
        )
    return sorted(experiments, key=lambda experiment: experiment.began or "", reverse=True)


def compared(experiment: str, frame: pd.DataFrame) -> list[ComparedRun]:
    """The runs of an experiment, as `read` gives it, best first; runs without a score come last.

    The trials of a sweep stand in the order of `tuning.ranking`, before their reruns.
    """
    children, parents = _children(frame), frame[frame["kind"].isin(PARENTS)]
    parent = parents.iloc[0].to_dict() if len(parents) else {}
    shared = _tag(parent, schema.METRIC)
    tuned = schema.sibling(shared, "tuned") if shared and _tag(parent, schema.THRESHOLD) == "tuned" else None
    prefix = schema.param_column("")
    varying = [
        name
        for name in children.columns
        if name.startswith(prefix) and name != f"{prefix}training.seed" and children[name].nunique(dropna=False) > 1
    ]
    trials = {trial.id: (rank, trial) for rank, trial in enumerate(ranked_in_frame(frame))}
    ranked_rows = []
    for row in children.to_dict("records"):
        metric = shared if shared is not None else _tag(row, schema.METRIC)
        if tuned is not None and _value(row, schema.metric_column(tuned)) is not None:
            metric = tuned  # by which the arms are compared
        params = {name.removeprefix(prefix): value for name in varying if (value := _value(row, name)) is not None}
        state = _value(row, "state") or str(row["status"]).lower()
        score = None if metric is None or state == "failed" else score_in_row(row, metric)
        rank, trial = trials.get(row["id"], (len(trials), None))
        rerun_of = _tag(row, schema.RERUN_OF)
        name = run_name(row["id"], _value(row, "arm"), _value(row, "seed"), _tag(row, schema.VARIANT))
        run = ComparedRun(
            run=name if row["kind"] == "run" else f"{experiment}/{name}",
            state=state,
            metric=metric,
            score=trial.mean if trial else score,
            seed=_value(row, "seed"),
            params=params,
            failure=_tag(row, schema.FAILURE) or None,
            reruns=len(trial.rerun_scores) if trial else 0,
            rerun_of=None if rerun_of is None else f"{experiment}/{rerun_of}",
        )
        ranked_rows.append((rank, -float("inf") if score is None or metric is None else gain(metric, score), run))
    ranked_rows.sort(key=lambda row: (row[0], -row[1]))
    return [run for *_, run in ranked_rows]


def _children(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[~frame["kind"].isin(PARENTS)]


def _tag(row: dict[Hashable, Any], tag: str) -> Any:
    return _value(row, schema.tag_column(tag))


def _value(row: dict[Hashable, Any], name: str) -> Any:
    """A cell of a row; None where it is missing. Whole numbers beside missing cells are floats in pandas."""
    value = row.get(name)
    if value is None or pd.isna(value):
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value
