"""The best trial of a sweep, as the report's summary and the result of a sweep give it."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from analysis.columns import collapsed, has_objectives, losses, parent_tag, scores
from analysis.searched import chosen_values

if TYPE_CHECKING:
    from analysis.findings import Findings


@dataclass(frozen=True)
class BestTrial:
    """The trial that a sweep ranks first.

    Attributes:
        score: On dev: the mean over its reruns if it has any, else its own score.
        num_reruns: How many reruns have a score.
        settings: What the search chose, by path; None for `null`.
        is_collapsed: Whether it predicts one class only.
    """

    id: str
    loss: str
    metric: str
    score: float
    num_reruns: int
    settings: dict[str, Any]
    is_collapsed: bool


def best_trial(findings: Findings) -> BestTrial | None:
    """The first of the ranked trials; None if no trial has a score, or the sweep has several objectives."""
    if not findings.ranked or has_objectives(findings.frame):
        return None
    id_ = findings.ranked[0]
    frame = findings.frame
    runs = frame[(frame["kind"] == "trial") & (frame["id"] == id_)]
    metric, row = parent_tag(frame, "metric"), runs.iloc[0]
    reruns = findings.rerun_scores.get(id_, ())
    score = fmean(reruns) if reruns else float(scores(runs, metric).iloc[0])
    return BestTrial(
        id_,
        str(losses(runs).iloc[0]),
        metric,
        score,
        len(reruns),
        chosen_values(row),
        bool(collapsed(runs, metric).iloc[0]),
    )
