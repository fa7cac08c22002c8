"""Which trial of a search, and which arm of a study, is best: THE definition, for a ledger and for a frame of runs.

A trial's own score is optimistic, since the trial was chosen by it. So trials that were run again with other seeds are
ranked by the mean of their reruns alone, and stand before those that were not; a rerun that failed is no seed to leave
out, so a trial with more scored reruns stands before one with fewer. Of equal trials the first one is best. A trial
that failed has no rank. Whatever reads a "best" trial (retained checkpoints, `runs`, `report`, `export-preset`,
`--tuned-from`) reads it here.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dice_ray.metrics.catalogue import metric
from dice_ray.tracking import schema
from dice_ray.tuning.ledger import History

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class RankedTrial:
    """A trial with a score.

    Attributes:
        score: Its own, by which the search selected it.
        rerun_scores: The scores of its reruns with other seeds.
        lower_is_better: Whether the scores are values of a metric that is minimised, of a frame: a ledger has gains.
    """

    id: str
    score: float
    rerun_scores: tuple[float, ...] = ()
    lower_is_better: bool = False

    @property
    def mean(self) -> float:
        """The value that it is ranked by: the mean of its reruns, or its own score where it has none."""
        return statistics.fmean(self.rerun_scores) if self.rerun_scores else self.score

    @property
    def rank(self) -> tuple[int, float, float]:
        """What trials are sorted by, the best one lowest."""
        sign = 1 if self.lower_is_better else -1
        return -len(self.rerun_scores), sign * self.mean, sign * self.score


def _ranked(
    scores: Iterable[tuple[str, float | None, str | None]], *, lower_is_better: bool = False
) -> list[RankedTrial]:
    """Trials, the best first.

    Args:
        scores: Id and score of each run in the order of their start, and the id of the trial that it is a rerun of, if
            it is one. A score is None where the run failed or was not evaluated.
        lower_is_better: Whether they are values of a metric that is minimised.
    """
    scored = [(id_, score, rerun_of) for id_, score, rerun_of in scores if score is not None]
    reruns: dict[str, list[float]] = {}
    for _, score, rerun_of in scored:
        if rerun_of is not None:
            reruns.setdefault(rerun_of, []).append(score)
    trials = [
        RankedTrial(id_, score, tuple(reruns.get(id_, ())), lower_is_better)
        for id_, score, rerun_of in scored
        if rerun_of is None
    ]
    return sorted(trials, key=lambda trial: trial.rank)


def ranked_in(history: History) -> list[RankedTrial]:
    """The trials of a sweep, or the cells of a study, in a ledger, the best on dev first."""
    return _ranked((spec.id, outcome.score, spec.rerun_of) for spec, outcome in history.ended)


def ranked_in_frame(frame: pd.DataFrame) -> list[RankedTrial]:
    """The trials of a sweep in a frame of MLflow's runs, the best first; empty without a sweep or its metric."""
    parents, runs = frame[frame["kind"] == "sweep"], frame[frame["kind"].isin(["trial", "rerun"])]
    if parents.empty or runs.empty:
        return []
    name = parents.iloc[0].get(schema.tag_column(schema.METRIC))
    if not isinstance(name, str):  # the tag was deleted in MLflow
        return []
    scores = []
    for row in runs.to_dict("records"):
        score = score_in_row(row, name) if row["state"] in ("done", "pruned") else None
        rerun_of = row.get(schema.tag_column(schema.RERUN_OF))
        scores.append((str(row["id"]), score, rerun_of if isinstance(rerun_of, str) else None))
    return _ranked(scores, lower_is_better=metric(name).is_minimised)


def score_in_row(row: Mapping[Any, Any], name: str) -> float | None:
    """The value of a metric at the retained checkpoint of a run: on dev the best one, on test the only one."""
    import pandas as pd

    values = [row.get(schema.metric_column(each)) for each in (schema.sibling(name, "best"), name)]
    return next((float(value) for value in values if not pd.isna(value)), None)


def best_in(history: History) -> str | None:
    """The id of the best trial or cell on dev; None where none has a score."""
    return next((trial.id for trial in ranked_in(history)), None)


def best_arm(history: History, ids: Collection[str], controls: Collection[str] = ()) -> tuple[float, str, int] | None:
    """The highest mean of an arm over its ended cells, the arm, and their number; None on several variants.

    Controls are no arms to choose from, so none of them is best.
    """
    scores = defaultdict[str, list[float]](list)
    variants = set()
    for id_ in ids:
        if id_ in history.outcomes and (score := history.outcomes[id_].score) is not None:
            cell = history.specs[id_]
            assert cell.arm is not None, "a study has cells"
            if cell.arm not in controls:
                scores[cell.arm].append(score)
                variants.add(cell.variant)
    if len(variants) != 1:  # scores on different data are not compared
        return None
    return max((statistics.fmean(each), arm, len(each)) for arm, each in scores.items())
