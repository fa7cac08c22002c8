"""The best trial of a sweep: the record that words and results tell of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from analysis.scores import losses, said_by_parent, scores

if TYPE_CHECKING:
    from analysis.found import Found


@dataclass(frozen=True)
class BestTrial:
    """The trial with the best score on dev.

    Attributes:
        settings: What the search chose, by path.
    """

    id: str
    loss: str
    metric: str
    score: float
    settings: dict[str, Any]


def best_trial(found: Found) -> BestTrial | None:
    """The first of the best ones; none where no trial has a score."""
    trials = found.frame[found.frame["kind"] == "trial"]
    if trials.empty:
        return None
    metric = said_by_parent(found.frame, "metric")
    score = scores(trials, metric).reset_index(drop=True)
    if score.isna().all():
        return None
    row = trials.iloc[int(score.argmax())]
    chosen = {
        path: row[f"params.{path}"] for path in str(row.get("tags.searched", "")).split() if f"params.{path}" in row
    }
    settings = {path: value for path, value in chosen.items() if not pd.isna(value)}
    return BestTrial(
        str(row["id"]), str(losses(trials).iloc[int(score.argmax())]), metric, float(score.max()), settings
    )
