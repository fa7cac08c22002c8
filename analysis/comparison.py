"""The arms of a study, each against the baseline: the record that tables, figures and summaries draw."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.found import Found
from analysis.items import Items, item_parts
from analysis.new_data import over_seeds_and_items
from analysis.scores import (
    by_seed,
    collapsed,
    constant,
    place_of,
    pr_aucs,
    said_by_parent,
    scores,
    test_per_train,
    tuned_scores,
)
from analysis.statistics import Difference, Interval, holm_of, paired_difference, t_interval

CONSTANT: Final = "constant predictor"
TUNED: Final = ", tuned threshold"
"""Follows the arm's name where its runs are read at the threshold tuned on dev."""


@dataclass(frozen=True)
class Arm:
    """One row of a comparison.

    Attributes:
        name: Of the arm, or of a second reading of its runs.
        score: The mean over its seeds.
        difference: Over seeds, to the baseline read the same way, over the seeds shared; none for the baseline
            itself and the constant predictor. Its p is corrected by Holm over all rows.
        ahead: In how many of these seeds it is above the baseline.
        new_data: The same on new data; none also where it is not known.
        pr_auc: The mean area under the precision-recall curve, which no threshold changes; two classes have it.
        collapsed: Cells that predict one class only at the threshold of .5.
        failed: Cells without a score.
    """

    name: str
    score: Interval
    difference: Difference | None = None
    ahead: int | None = None
    new_data: Difference | None = None
    pr_auc: Interval | None = None
    collapsed: int | None = None
    failed: int | None = None


@dataclass(frozen=True)
class Best:
    """The row that is ahead of those of all other arms, on the seeds that they share; and whether that is not chance.

    Attributes:
        name: As the row.
        runner_up: The row of another arm that is closest to it.
        difference: To the runner-up over seeds; its p is corrected by Holm over the best against each such row.
        new_data: The same on new data, where it is known.
        wins: Whether it is told apart from every row of another arm over seeds.
        wins_on_new_data: The same on new data.
    """

    name: str
    runner_up: str
    difference: Difference
    new_data: Difference | None
    wins: bool
    wins_on_new_data: bool


@dataclass(frozen=True)
class Comparison:
    """The arms of a study on one data set, encoder and variant.

    Attributes:
        place: Data set, encoder and variant, those that are known.
        cells: One for each arm and seed.
        arms: The baseline first, then the others by their mean, those without a score, and the constant predictor.
        best: None where there is nothing to compare.
        test_per_train: How many test records there are for each training record, before any is added or dropped,
            where each seed drew splits of its own, else 0: all intervals are wider by it, and hold for other splits,
            not for one test set.
        why_not: Why nothing is known on new data, where nothing is.
        num_replaced: Cells left out since another has their arm and seed.
    """

    place: str
    metric: str
    baseline: str
    cells: pd.DataFrame
    arms: tuple[Arm, ...]
    best: Best | None
    test_per_train: float
    why_not: str
    num_replaced: int


@lru_cache(maxsize=1)
def comparisons(found: Found) -> tuple[Comparison, ...]:
    """A comparison for each data set, encoder and variant of a study; made once for all tables and figures."""
    frame = found.frame
    cells = frame[frame["kind"] == "cell"]
    if cells.empty:
        return ()
    metric, baseline = said_by_parent(frame, "metric"), said_by_parent(frame, "baseline")
    groups = cells.groupby(place_of(cells, "data", "encoder", "variant"), sort=False)  # as the study has them
    return tuple(compare(group, metric, baseline, found.items, str(place)) for place, group in groups)


def compare(
    cells: pd.DataFrame, metric: str, baseline: str, items: Mapping[str, pd.DataFrame] | None = None, place: str = ""
) -> Comparison:
    """The arms against the baseline, over the seeds that they share.

    Args:
        cells: Of one place.
        metric: That the study compares.
        baseline: The arm that the others are compared to.
        items: The counts of each test item by the id of a cell.
        place: What the cells share.
    """
    once = _once_each(cells, metric)
    ratio = test_per_train(once)
    readings = {suffix: _rows(once, metric, items or {}, suffix) for suffix in ("", TUNED)}
    one_class, areas, arms = collapsed(once, metric), pr_aucs(once, metric), []
    for suffix, (rows, _) in readings.items():
        for name, row in rows.items():
            runs = once["arm"] == name
            against = None if name == baseline else rows.get(baseline, Row(baseline, {}, {}))
            arms.append(
                Arm(
                    row.name,
                    t_interval(list(row.scores.values()), ratio),
                    row.minus(against) if against else None,
                    row.ahead_of(against) if against else None,
                    row.minus_on_new_data(against) if against else None,
                    pr_auc=None
                    if suffix or areas[runs].isna().all()
                    else t_interval(areas[runs].dropna().tolist(), ratio),
                    collapsed=None if suffix else int(one_class[runs].sum()),
                    failed=int(runs.sum()) - len(row.scores),
                )
            )
    arms.sort(key=lambda arm: (arm.name != baseline, math.isnan(arm.score.mean), -arm.score.mean))
    best = best_of([row for rows, _ in readings.values() for row in rows.values()])
    if (predictor := constant(once, metric)) is not None:
        arms.append(Arm(CONSTANT, predictor))
    why_not = "" if any(arm.new_data for arm in arms) else readings[""][1]
    num_replaced = len(cells) - len(once)
    return Comparison(place, metric, baseline, once, tuple(_corrected(arms)), best, ratio, why_not, num_replaced)


@dataclass(frozen=True)
class Row:
    """One reading of an arm's cells by seed: their scores, and what their test items add to them, where it is known."""

    name: str
    scores: Mapping[int, float]
    parts: Mapping[int, NDArray[np.floating]]
    test_per_train: float = 0.0

    @property
    def arm(self) -> str:
        return self.name.removesuffix(TUNED)

    def minus(self, other: Row) -> Difference:
        return paired_difference(self.scores, other.scores, self.test_per_train)

    def ahead_of(self, other: Row) -> int:
        return sum(self.scores[seed] > other.scores[seed] for seed in self.scores.keys() & other.scores.keys())

    def shares_with(self, other: Row) -> bool:
        return not self.scores.keys().isdisjoint(other.scores)

    def lead_over(self, other: Row) -> float:
        """By how much it is ahead on the seeds that both have."""
        seeds = self.scores.keys() & other.scores.keys()
        return float(np.mean([self.scores[seed] - other.scores[seed] for seed in seeds]))

    def minus_on_new_data(self, other: Row) -> Difference | None:
        """None where a seed that both have lacks its items."""
        seeds = sorted(self.scores.keys() & other.scores.keys())
        if not seeds or not set(seeds) <= self.parts.keys() & other.parts.keys():
            return None
        return over_seeds_and_items(*(np.stack([row.parts[seed] for seed in seeds]) for row in (self, other)))


def _rows(
    cells: pd.DataFrame, metric: str, items: Mapping[str, pd.DataFrame], suffix: str
) -> tuple[dict[str, Row], str]:
    """The rows of a reading by the arm's name, and why nothing is known of their items, if nothing is.

    An arm without a score has no row at the tuned threshold, which not every task has.
    """
    values = tuned_scores(cells, metric) if suffix else scores(cells, metric)
    stored = {id_: score for id_, score in zip(cells["id"], values, strict=True) if not math.isnan(score)}
    ratio = test_per_train(cells)
    if metric.startswith("test/"):
        known = item_parts(items, stored, "tuned_" if suffix else "")
    else:
        known = Items({}, "the score is not that of the test split")
    rows = {}
    for name, runs in cells.groupby("arm"):
        scored = by_seed(values[runs.index], runs["seed"])
        parts = {
            int(seed): known.parts[id_]
            for id_, seed in zip(runs["id"], runs["seed"], strict=True)
            if id_ in known.parts
        }
        if scored or not suffix:
            rows[str(name)] = Row(f"{name}{suffix}", scored, parts, ratio)
    return rows, known.why_not


def best_of(rows: Sequence[Row]) -> Best | None:
    """The row that is ahead of each of another arm, or closest to it: it wins where it is told apart from all of them.

    Each two are compared on the seeds that they share, so that none is best by having run on the easy ones. With the
    same seeds for all it is the row with the best mean.
    The same runs at another threshold are no rival: which loss is best, they do not ask.
    Holm's correction takes the smallest p first, so that what is left of it at the runner-up, mostly the largest, is
    the level itself: of two arms that are equally good and best, one wins by chance in 5 % of studies.
    """
    others_of = {row.name: [other for other in rows if other.scores and other.arm != row.arm] for row in rows}
    rivals = {row.name: [other for other in others_of[row.name] if row.shares_with(other)] for row in rows}
    fewest = min((len(others_of[name]) - len(rivals[name]) for name in rivals if rivals[name]), default=0)
    compared = [row for row in rows if rivals[row.name] and len(others_of[row.name]) - len(rivals[row.name]) == fewest]
    if not compared:
        return None
    first = max(compared, key=lambda row: min(row.lead_over(other) for other in rivals[row.name]))
    others = sorted(rivals[first.name], key=first.lead_over)
    here = holm_of([first.minus(other) for other in others])
    beyond = [first.minus_on_new_data(other) for other in others]
    new_data = holm_of([each for each in beyond if each])
    return Best(
        first.name,
        others[0].name,
        here[0],
        new_data[0] if beyond[0] else None,
        wins=not fewest and all(each.is_ahead for each in here),
        wins_on_new_data=not fewest and len(new_data) == len(others) and all(each.is_ahead for each in new_data),
    )


def _corrected(arms: Sequence[Arm]) -> list[Arm]:
    """Each p corrected by Holm over all rows, for either question by itself."""
    here = iter(holm_of([arm.difference for arm in arms if arm.difference]))
    beyond = iter(holm_of([arm.new_data for arm in arms if arm.new_data]))
    return [
        replace(
            arm,
            difference=next(here) if arm.difference else None,
            new_data=next(beyond) if arm.new_data else None,
        )
        for arm in arms
    ]


def _once_each(cells: pd.DataFrame, metric: str) -> pd.DataFrame:
    """One cell for each arm and seed: the latest with a score, else the latest."""
    scored_last = scores(cells, metric).notna().sort_values(kind="stable").index
    return cells.loc[scored_last].drop_duplicates(["arm", "seed"], keep="last").sort_index()
