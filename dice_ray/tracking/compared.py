"""The experiments of a store, and the runs of one side by side: the score first, then only what varies."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dice_ray.tracking import schema
from dice_ray.tracking.reader import read

PARENTS = ("sweep", "study")


@dataclass(frozen=True)
class Experiment:
    """An experiment in a line.

    Attributes:
        kind: What it holds: a sweep, a study, or runs trained alone.
        runs: How many, its parent left out, by what became of them in MLflow's words.
        metric: What is maximised.
        best: Its best value.
        began: When the last run began, ISO 8601.
    """

    name: str
    kind: str
    runs: dict[str, int]
    metric: str | None
    best: float | None
    began: str | None


@dataclass(frozen=True)
class Compared:
    """A run among others.

    Attributes:
        run: As commands name it: `NAME`, `SWEEP/TRIAL`, `STUDY/ARM/SEED`, `STUDY/VARIANT/ARM/SEED`.
        state: What became of it: ours where it ended by itself, else MLflow's.
        metric: What is maximised.
        score: Its value, of the best checkpoint; a run that failed has none.
        params: What differs between the runs, by path; without what the run does not have.
        failure: Why it failed.
    """

    run: str
    state: str
    metric: str | None
    score: float | None
    seed: int | None
    params: dict[str, Any]
    failure: str | None


def overview(names: list[str], uri: str | None = None) -> list[Experiment]:
    """A line for each of these experiments, the one that was used last first."""
    found = []
    for name in names:
        frame = read(name, uri)
        kinds = [kind for kind in frame["kind"] if kind in PARENTS]
        rows = compared(name, frame)
        best = rows[0] if rows and rows[0].score is not None else None
        last = frame["start"].max()
        found.append(
            Experiment(
                name,
                kinds[0] if kinds else "runs",
                {str(status): int(num) for status, num in _children(frame)["status"].value_counts().items()},
                best.metric if best else None,
                best.score if best else None,
                None if pd.isna(last) else last.isoformat(timespec="milliseconds"),
            )
        )
    return sorted(found, key=lambda experiment: experiment.began or "", reverse=True)


def compared(experiment: str, frame: pd.DataFrame) -> list[Compared]:
    """The runs of an experiment, as `read` gives it, best first; those without a score come last."""
    own, parents = _children(frame), frame[frame["kind"].isin(PARENTS)]
    metric_of = f"tags.{schema.METRIC.removeprefix(schema.PREFIX)}"
    shared = parents[metric_of].iloc[0] if len(parents) else None
    varying = [
        name
        for name in own.columns
        if name.startswith("params.") and name != "params.training.seed" and own[name].nunique(dropna=False) > 1
    ]
    found = []
    for row in own.to_dict("records"):
        metric = shared if shared is not None else _value(row, metric_of)
        params = {name.removeprefix("params."): value for name in varying if (value := _value(row, name)) is not None}
        seed = _value(row, "seed")
        state = _value(row, "state") or str(row["status"]).lower()
        score = None if metric is None or state == "failed" else _score(row, metric)
        failure = _value(row, "tags.failure") or None
        found.append(Compared(_called(experiment, row), state, metric, score, seed, params, failure))
    return sorted(found, key=lambda run: -float("inf") if run.score is None else run.score, reverse=True)


def _children(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[~frame["kind"].isin(PARENTS)]


def _called(experiment: str, row: dict[Hashable, Any]) -> str:
    if row["kind"] == "run":
        return str(row["id"])
    if row["kind"] != "cell":
        return f"{experiment}/{row['id']}"
    variant = _value(row, f"tags.{schema.VARIANT.removeprefix(schema.PREFIX)}")
    return "/".join(part for part in (experiment, variant, row["arm"], str(row["seed"])) if part is not None)


def _score(row: dict[Hashable, Any], metric: str) -> float | None:
    """Of the checkpoint that was kept: on dev the best value, on test the only one."""
    best = _value(row, f"metrics.{schema.best_metric(metric)}")
    found = best if best is not None else _value(row, f"metrics.{metric}")
    return None if found is None else float(found)


def _value(row: dict[Hashable, Any], name: str) -> Any:
    """A cell, none where it is missing."""
    value = row.get(name)
    return None if value is None or pd.isna(value) else value
