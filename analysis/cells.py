"""The cells of a study: which one counts, the scores and test items of each arm, and what its controls show."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import pandas as pd

from analysis.frames import by_seed, scores, states, test_per_train, unfailed
from analysis.statistics.best_arm import ArmScores
from analysis.statistics.intervals import FEW_SEEDS, Difference, paired_difference
from analysis.statistics.new_data import ItemParts, item_parts
from dice_ray.metrics import catalogue
from dice_ray.tracking import schema


def latest_cells(cells: pd.DataFrame, metric: str) -> pd.DataFrame:
    """One cell for each arm and seed: the latest with a score, else the latest."""
    # The sort is stable and cells come in the order of their start: "last" is the latest one with a score.
    scored_last = scores(cells, metric).notna().sort_values(kind="stable").index
    return cells.loc[scored_last].drop_duplicates(["arm", "seed"], keep="last").sort_index()


def scores_by_arm(
    cells: pd.DataFrame,
    metric: str,
    items: Mapping[str, pd.DataFrame],
    suffix: str,
    looks: tuple[int, ...],
    costs: tuple[float, float] | None,
) -> tuple[dict[str, ArmScores], str]:
    """The plain or tuned scores by the arm's name, and the reason why their items are not known, if they are not.

    An arm without a score is left out of tuned ones, which not every task has.
    """
    values = unfailed(cells, schema.sibling(metric, "tuned")) if suffix else scores(cells, metric)
    stored = {id_: score for id_, score in zip(cells["id"], values, strict=True) if not math.isnan(score)}
    ratio, known_metric = test_per_train(cells), catalogue.metric(metric)
    if metric.startswith("test/"):
        known = item_parts(items, stored, "tuned_" if suffix else "", metric, costs)
    else:
        known = ItemParts({}, "the score is not on the test split")
    rows, seeds = {}, [int(seed) for seed in cells["seed"].dropna().unique()]
    facts = cells[["id", "arm", "seed"]].assign(score=values, has_ended=states(cells) != "unfinished")
    for name, runs in facts.groupby("arm"):
        is_fixed = bool(runs["seed"].isna().all())
        if is_fixed:  # one run, which stands beside each seed of the others
            runs = runs.loc[runs.index.repeat(len(seeds))].assign(seed=seeds)
        scored = by_seed(runs["score"], runs["seed"])
        parts = {
            int(seed): known.parts[id_]
            for id_, seed in zip(runs["id"], runs["seed"], strict=True)
            if id_ in known.parts
        }
        if scored or not suffix:
            rows[str(name)] = ArmScores(
                f"{name}{suffix}",
                scored,
                parts,
                ratio,
                known_metric.limits,
                known_metric.is_minimised,
                looks,
                frozenset(runs.loc[runs["has_ended"], "seed"]),
                is_fixed,
            )
    return rows, known.why_not


@dataclass(frozen=True)
class Control:
    """What should not differ from the baseline, and shows how large differences are that no loss makes.

    In a tuned study it has the baseline's loss with the other settings of a tuned arm: the search alone differs. With
    shared settings it has equal class weights. An A/A control is the baseline with other seeds.

    Attributes:
        arm: The arm whose settings it has, except those of the loss; the name of the baseline for the other two.
        difference: To the baseline; its p is not corrected: better that a control fails too often than too seldom.
    """

    arm: str
    difference: Difference
    has_own_seeds: bool = False

    @classmethod
    def of(cls, arm: str, baseline: ArmScores, seeds: pd.Series[int], values: pd.Series[float]) -> Self:
        """The control for an arm from its scores by seed."""
        scored = by_seed(values, seeds)
        difference = paired_difference(scored, baseline.scores, baseline.test_per_train, baseline.limits)
        return cls(arm, difference, has_own_seeds=not {*seeds} & baseline.ended)

    @property
    def is_passed(self) -> bool | None:
        """Whether it cannot be told apart from the baseline; None if that cannot be tested.

        Fewer than `FEW_SEEDS` seeds cannot be tested, nor the same difference with all seeds, as of runs that collapse.
        """
        mean, num = self.difference.interval.mean, self.difference.interval.num
        is_tested = num >= FEW_SEEDS and (mean == 0 or not math.isnan(self.difference.p))
        return not self.difference.is_significant if is_tested else None
