"""The arms of a study, each against the baseline: the record that tables and figures draw."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pandas as pd

from analysis.scores import by_seed, collapsed, constant, scores, tuned_scores
from analysis.statistics import Difference, Interval, holm, paired_difference, t_interval

CONSTANT: Final = "constant predictor"


@dataclass(frozen=True)
class Arm:
    """One row of a comparison.

    Attributes:
        name: Of the arm, or of a second reading of its runs.
        score: The mean over its seeds.
        difference: To the baseline over the seeds shared; none for the baseline itself and the constant predictor.
        p: Of the difference, corrected by Holm over the arms.
        collapsed: Cells that predict one class only at the threshold of .5.
        failed: Cells without a score.
    """

    name: str
    score: Interval
    difference: Difference | None = None
    p: float = math.nan
    collapsed: int | None = None
    failed: int | None = None


def compare(cells: pd.DataFrame, metric: str, baseline: str) -> list[Arm]:
    """The baseline first, then the arms by their mean, those without a score, and the constant predictor."""
    reference = cells[cells["arm"] == baseline]
    against = by_seed(scores(reference, metric), reference["seed"])
    arms = []
    for name, runs in cells.groupby("arm"):
        for reading, values, num_collapsed in _readings(str(name), runs, metric):
            scored = by_seed(values, runs["seed"])
            arms.append(
                Arm(
                    reading,
                    t_interval(list(scored.values())),
                    None if reading == baseline else paired_difference(scored, against),
                    collapsed=num_collapsed,
                    failed=len(runs) - len(scored),
                )
            )
    arms.sort(key=lambda arm: (arm.name != baseline, math.isnan(arm.score.mean), -arm.score.mean))
    if (predictor := constant(cells, metric)) is not None:
        arms.append(Arm(CONSTANT, predictor))
    return _corrected(arms)


def _readings(arm: str, runs: pd.DataFrame, metric: str) -> Iterator[tuple[str, pd.Series[float], int | None]]:
    """The score at .5 and, where there is one, at the threshold tuned on dev: two readings of the same runs."""
    yield arm, scores(runs, metric), int(collapsed(runs, metric).sum())
    tuned = tuned_scores(runs, metric)
    if tuned.notna().any():
        yield f"{arm}, tuned threshold", tuned, None


def _corrected(arms: Sequence[Arm]) -> list[Arm]:
    adjusted = holm([arm.difference.p if arm.difference else math.nan for arm in arms])
    return [replace(arm, p=p) for arm, p in zip(arms, adjusted, strict=True)]
