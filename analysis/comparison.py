"""The arms of a study, each against the baseline: the record that tables and figures draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import pandas as pd

from analysis.scores import by_seed, collapsed, constant, scores, tuned_scores
from analysis.statistics import Difference, Interval, holm, paired_difference, t_interval

CONSTANT: Final = "constant predictor"
TUNED: Final = ", tuned threshold"
"""Follows the arm's name where its runs are read at the threshold tuned on dev."""


@dataclass(frozen=True)
class Arm:
    """One row of a comparison.

    Attributes:
        name: Of the arm, or of a second reading of its runs.
        score: The mean over its seeds.
        difference: To the baseline read the same way, over the seeds shared; none for the baseline itself and the
            constant predictor.
        p: Of the difference, corrected by Holm over all rows.
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
    readings = {"": scores(cells, metric), TUNED: tuned_scores(cells, metric)}
    one_class, is_baseline = collapsed(cells, metric), cells["arm"] == baseline
    arms = []
    for reading, values in readings.items():
        against = by_seed(values[is_baseline], cells["seed"][is_baseline])
        for name, runs in cells.groupby("arm"):
            scored = by_seed(values[runs.index], runs["seed"])
            if reading and not scored:
                continue
            arms.append(
                Arm(
                    f"{name}{reading}",
                    t_interval(list(scored.values())),
                    None if name == baseline else paired_difference(scored, against),
                    collapsed=None if reading else int(one_class[runs.index].sum()),
                    failed=len(runs) - len(scored),
                )
            )
    arms.sort(key=lambda arm: (arm.name != baseline, math.isnan(arm.score.mean), -arm.score.mean))
    if (predictor := constant(cells, metric)) is not None:
        arms.append(Arm(CONSTANT, predictor))
    return _corrected(arms)


def _corrected(arms: Sequence[Arm]) -> list[Arm]:
    adjusted = holm([arm.difference.p if arm.difference else math.nan for arm in arms])
    return [replace(arm, p=p) for arm, p in zip(arms, adjusted, strict=True)]
