"""The best trial of a sweep: the record that words and results tell of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from analysis.scores import losses, of_reruns, said_by_parent, scores

if TYPE_CHECKING:
    from analysis.found import Found


@dataclass(frozen=True)
class BestTrial:
    """The trial that a sweep ranks first.

    Attributes:
        score: On dev; the mean over its reruns, where it was run again.
        num_reruns: How many these are.
        settings: What the search chose, by path.
    """

    id: str
    loss: str
    metric: str
    score: float
    num_reruns: int
    settings: dict[str, Any]


def best_trial(found: Found) -> BestTrial | None:
    """First by how many reruns have a score, then by their mean, else by its own score; none where none has one."""
    trials = found.frame[found.frame["kind"] == "trial"].reset_index(drop=True)
    if trials.empty:
        return None
    metric = said_by_parent(found.frame, "metric")
    again = of_reruns(found.frame, metric)
    ranked = pd.DataFrame(
        {
            "reruns": [again[id_].num if id_ in again else 0 for id_ in trials["id"]],
            "mean": [again[id_].mean if id_ in again else 0.0 for id_ in trials["id"]],
            "score": scores(trials, metric),
        }
    )
    ranked = ranked.dropna(subset="score").sort_values([*ranked], ascending=False, kind="stable")
    if ranked.empty:
        return None
    at = int(ranked.index[0])
    row = trials.iloc[at]
    chosen = {
        path: row[f"params.{path}"] for path in str(row.get("tags.searched", "")).split() if f"params.{path}" in row
    }
    settings = {path: value for path, value in chosen.items() if not pd.isna(value)}
    id_, loss = str(row["id"]), str(losses(trials).iloc[at])
    interval = again.get(id_)
    score, num_reruns = (interval.mean, interval.num) if interval else (float(ranked["score"].iloc[0]), 0)
    return BestTrial(id_, loss, metric, score, num_reruns, settings)
