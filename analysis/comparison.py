"""The arms of a study, each compared with the baseline: the records that tables, figures and the summary show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.columns import (
    by_seed,
    collapsed,
    column,
    constant,
    has_drawn_settings,
    parent_tag,
    place_of,
    scores,
    test_per_train,
    unfailed,
)
from analysis.findings import Findings
from analysis.item_counts import ItemParts, item_parts
from analysis.new_data import over_seeds_and_items
from analysis.statistics import FEW_SEEDS, Difference, Interval, holm_of, paired_difference, t_interval
from dice_ray.tracking import schema

CONSTANT: Final = "constant predictor"
TUNED: Final = " (tuned threshold)"
"""Suffix of an arm's name for the scores of its runs at the threshold tuned on dev."""


@dataclass(frozen=True)
class Arm:
    """One row of a comparison.

    Attributes:
        name: The arm's name, with the suffix `TUNED` for its scores at the tuned threshold.
        score: The mean over its seeds.
        difference: To the baseline at the same kind of threshold, over the seeds that both have; None for the baseline
            itself and the constant predictor. Its p is Holm-corrected over all rows.
        ahead: The number of these seeds in which it is above the baseline.
        new_data: The same difference on new data; None also if that is not known.
        pr_auc: The mean area under the precision-recall curve, which does not depend on the threshold; two-class tasks
            only.
        collapsed: The number of cells that predict one class only at the threshold of .5.
        failed: The number of cells without a score.
        by_seed: The differences to the baseline, in the order of the seeds.
    """

    name: str
    score: Interval
    difference: Difference | None = None
    ahead: int | None = None
    new_data: Difference | None = None
    pr_auc: Interval | None = None
    collapsed: int | None = None
    failed: int | None = None
    by_seed: tuple[float, ...] = ()


@dataclass(frozen=True)
class BestArm:
    """The row that is ahead of the rows of all other arms on the seeds that they share, and whether it wins.

    Attributes:
        name: The name of the row.
        runner_up: The row of another arm that is closest to it.
        difference: To the runner-up over seeds; its p is Holm-corrected over the best row against each such row.
        new_data: The same on new data; None if that is not known.
        wins: Whether it is significantly better than every row of another arm over seeds.
        wins_on_new_data: The same on new data.
        by_seed: The differences to the runner-up, in the order of the seeds.
    """

    name: str
    runner_up: str
    difference: Difference
    new_data: Difference | None
    wins: bool
    wins_on_new_data: bool
    by_seed: tuple[float, ...]


@dataclass(frozen=True)
class Control:
    """The baseline's loss with the other settings of a tuned arm: what differs from the baseline is the search alone.

    Attributes:
        arm: The arm whose settings it has, except those of the loss.
        score: The mean over its seeds.
        difference: To the baseline; its p is not corrected, so that a control fails rather too often than too seldom.
    """

    arm: str
    score: Interval
    difference: Difference

    @property
    def is_passed(self) -> bool | None:
        """Whether it cannot be told apart from the baseline; None if that cannot be tested.

        Fewer than `FEW_SEEDS` seeds cannot be tested, nor the same difference with all seeds, as of runs that collapse.
        """
        mean, num = self.difference.interval.mean, self.difference.interval.num
        is_tested = num >= FEW_SEEDS and (mean == 0 or not math.isnan(self.difference.p))
        return not self.difference.is_significant if is_tested else None


@dataclass(frozen=True)
class Comparison:
    """The arms of a study on one data set, encoder and variant.

    Attributes:
        place: Data set, encoder and variant, as far as they are known.
        cells: One row for each arm and seed.
        arms: The baseline first, then the others by their mean, those without a score, and the constant predictor.
        best: Among the baseline and the rows that share `FEW_SEEDS` seeds with it; None if no two of them share a seed.
        test_per_train: The number of test records for each training record, before any is added or dropped, if each
            seed drew its own splits, else 0. All intervals are wider by it, and hold for other splits instead of one
            test set.
        why_not: The reason why no difference on new data is known; empty if one is.
        num_replaced: The number of cells left out because another has the same arm and seed.
        rarest_class: The class with the fewest test items and their number, the mean over cells; None if not stored.
        controls: Of a tuned study; they are no arms, and their cells are not among `cells`.
    """

    place: str
    metric: str
    baseline: str
    cells: pd.DataFrame
    arms: tuple[Arm, ...]
    best: BestArm | None
    test_per_train: float
    why_not: str
    num_replaced: int
    rarest_class: tuple[str, int] | None
    controls: tuple[Control, ...] = ()


@lru_cache(maxsize=1)
def comparisons(findings: Findings) -> tuple[Comparison, ...]:
    """A comparison for each data set, encoder and variant of a study, in the order of the study; empty without cells.

    Empty too if the variants are drawn settings, over which `budget.at_budget` compares.
    Cached, because every table and figure of a report asks for it.
    """
    frame = findings.frame
    cells = frame[frame["kind"] == "cell"]
    if cells.empty or has_drawn_settings(frame):
        return ()
    metric, baseline = parent_tag(frame, "metric"), parent_tag(frame, "baseline")
    groups = cells.groupby(place_of(cells, "data", "encoder", "variant"), sort=False)
    return tuple(
        compare(group, metric, baseline, findings.items, str(place), findings.classes) for place, group in groups
    )


def compare(
    cells: pd.DataFrame,
    metric: str,
    baseline: str,
    items: Mapping[str, pd.DataFrame] | None = None,
    place: str = "",
    classes: Mapping[str, pd.DataFrame] | None = None,
) -> Comparison:
    """Compare the arms with the baseline, over the seeds that they share.

    Args:
        cells: The cells of one data set, encoder and variant.
        metric: The metric that the study compares.
        baseline: The name of the arm that the others are compared with.
        items: The counts of each test item by the id of the cell.
        place: Data set, encoder and variant, for titles.
        classes: Support and counts of each class by the id of the cell.
    """
    latest = _latest(cells, metric)
    is_control = column(latest, "tags.control").notna()
    once = latest[~is_control]
    ratio = test_per_train(once)
    readings = {suffix: _rows(once, metric, items or {}, suffix) for suffix in ("", TUNED)}
    one_class, areas, arms = collapsed(once, metric), unfailed(once, schema.pr_auc_metric(metric)), []
    for suffix, (rows, _) in readings.items():
        for name, row in rows.items():
            runs = once["arm"] == name
            score = t_interval(list(row.scores.values()), ratio)
            arm = Arm(row.name, score, failed=int(runs.sum()) - len(row.scores))
            if name != baseline:
                against = rows.get(baseline, ArmScores(baseline, {}, {}))
                differences = row.differences_to(against)
                difference, new_data = row.minus(against), row.minus_on_new_data(against)
                ahead = sum(each > 0 for each in differences)
                arm = replace(arm, difference=difference, ahead=ahead, new_data=new_data, by_seed=differences)
            # PR-AUC does not depend on the threshold, and collapses are counted at .5: both are in the plain row only.
            if not suffix:
                area = areas[runs].dropna().tolist()
                arm = replace(
                    arm, pr_auc=t_interval(area, ratio) if area else None, collapsed=int(one_class[runs].sum())
                )
            arms.append(arm)
    arms.sort(key=lambda arm: (arm.name != baseline, math.isnan(arm.score.mean), -arm.score.mean))
    compared = {arm.name for arm in arms if arm.name.removesuffix(TUNED) == baseline or len(arm.by_seed) >= FEW_SEEDS}
    best = best_of([row for rows, _ in readings.values() for row in rows.values() if row.name in compared])
    if (predictor := constant(once, metric)) is not None:
        arms.append(Arm(CONSTANT, predictor))
    why_not = "" if any(arm.new_data for arm in arms) else readings[""][1]
    num_replaced = len(cells) - len(latest)
    corrected, rarest = tuple(_corrected(arms)), _rarest_class(once, classes or {})
    plain = readings[""][0].get(baseline, ArmScores(baseline, {}, {}))
    controls = tuple(
        _control(str(arm), plain, by_seed(scores(runs, metric), runs["seed"]))
        for arm, runs in latest[is_control].groupby(column(latest, "tags.control")[is_control])
    )
    return Comparison(place, metric, baseline, once, corrected, best, ratio, why_not, num_replaced, rarest, controls)


def _control(arm: str, baseline: ArmScores, scored: Mapping[int, float]) -> Control:
    difference = paired_difference(scored, baseline.scores, baseline.test_per_train)
    return Control(arm, t_interval(list(scored.values()), baseline.test_per_train), difference)


@dataclass(frozen=True)
class ArmScores:
    """The scores of an arm by seed, plain or at the tuned threshold, and the contributions of test items if known."""

    name: str
    scores: Mapping[int, float]
    parts: Mapping[int, NDArray[np.floating]]
    test_per_train: float = 0.0

    @property
    def arm(self) -> str:
        return self.name.removesuffix(TUNED)

    def minus(self, other: ArmScores) -> Difference:
        return paired_difference(self.scores, other.scores, self.test_per_train)

    def shared_with(self, other: ArmScores) -> list[int]:
        return sorted(self.scores.keys() & other.scores.keys())

    def lead_over(self, other: ArmScores) -> float:
        """The mean difference over the seeds that both have."""
        return float(np.mean(self.differences_to(other)))

    def differences_to(self, other: ArmScores) -> tuple[float, ...]:
        return tuple(self.scores[seed] - other.scores[seed] for seed in self.shared_with(other))

    def minus_on_new_data(self, other: ArmScores) -> Difference | None:
        """The difference on new data; None if a seed that both have lacks its items."""
        seeds = self.shared_with(other)
        if not seeds or not set(seeds) <= self.parts.keys() & other.parts.keys():
            return None
        return over_seeds_and_items(*(np.stack([row.parts[seed] for seed in seeds]) for row in (self, other)))


def _rows(
    cells: pd.DataFrame, metric: str, items: Mapping[str, pd.DataFrame], suffix: str
) -> tuple[dict[str, ArmScores], str]:
    """The plain or tuned scores by the arm's name, and the reason why their items are not known, if they are not.

    An arm without a score is left out at the tuned threshold, which not every task has.
    """
    values = unfailed(cells, schema.tuned_metric(metric)) if suffix else scores(cells, metric)
    stored = {id_: score for id_, score in zip(cells["id"], values, strict=True) if not math.isnan(score)}
    ratio = test_per_train(cells)
    if metric.startswith("test/"):
        known = item_parts(items, stored, "tuned_" if suffix else "")
    else:
        known = ItemParts({}, "the score is not on the test split")
    rows = {}
    for name, runs in cells.groupby("arm"):
        scored = by_seed(values[runs.index], runs["seed"])
        parts = {
            int(seed): known.parts[id_]
            for id_, seed in zip(runs["id"], runs["seed"], strict=True)
            if id_ in known.parts
        }
        if scored or not suffix:
            rows[str(name)] = ArmScores(f"{name}{suffix}", scored, parts, ratio)
    return rows, known.why_not


def best_of(rows: Sequence[ArmScores]) -> BestArm | None:
    """The best row, and whether it is significantly better than every row of another arm; None without two to compare.

    The best row has the largest smallest lead over the rows of other arms (its rivals). Each pair is compared on the
    seeds that both have, so that no arm is best because it ran on the easy seeds only; with the same seeds for all
    arms, it is the row with the best mean. The two rows of one arm, plain and at the tuned threshold, are not rivals:
    the question is which arm is best.

    Holm's correction multiplies the smallest p by the number of tests and the largest by 1. The runner-up usually has
    the largest, so that of two arms that are equally good and best, one wins by chance in 5 % of studies.
    """
    # The leads form no order if the shared seeds differ (three arms can each be ahead of the next in a circle), so the
    # smallest lead decides, not a sort.
    others_of = {row.name: [other for other in rows if other.scores and other.arm != row.arm] for row in rows}
    rivals = {row.name: [other for other in others_of[row.name] if row.shared_with(other)] for row in rows}
    # A row could lead by sharing no seed with a strong rival: only the rows that miss the fewest rivals compete, and
    # none wins that misses one.
    fewest = min((len(others_of[name]) - len(rivals[name]) for name in rivals if rivals[name]), default=0)
    compared = [row for row in rows if rivals[row.name] and len(others_of[row.name]) - len(rivals[row.name]) == fewest]
    if not compared:
        return None
    first = max(compared, key=lambda row: min(row.lead_over(other) for other in rivals[row.name]))
    others = sorted(rivals[first.name], key=first.lead_over)
    differences = holm_of([first.minus(other) for other in others])
    on_new_data = [first.minus_on_new_data(other) for other in others]
    known = holm_of([difference for difference in on_new_data if difference])
    return BestArm(
        first.name,
        others[0].name,
        differences[0],
        known[0] if on_new_data[0] else None,
        wins=not fewest and all(difference.is_ahead for difference in differences),
        wins_on_new_data=not fewest and len(known) == len(others) and all(difference.is_ahead for difference in known),
        by_seed=first.differences_to(others[0]),
    )


def _corrected(arms: Sequence[Arm]) -> list[Arm]:
    """The arms with p values Holm-corrected over all rows, on this test set and on new data separately."""
    differences = iter(holm_of([arm.difference for arm in arms if arm.difference]))
    on_new_data = iter(holm_of([arm.new_data for arm in arms if arm.new_data]))
    return [
        replace(
            arm,
            difference=next(differences) if arm.difference else None,
            new_data=next(on_new_data) if arm.new_data else None,
        )
        for arm in arms
    ]


def _rarest_class(cells: pd.DataFrame, classes: Mapping[str, pd.DataFrame]) -> tuple[str, int] | None:
    supports = [classes[id_]["support"] for id_ in cells["id"] if id_ in classes]
    if not supports:
        return None
    # The mean over cells as in the table of classes: each seed may have its own test split.
    support = pd.concat(supports).groupby(level=0).mean().round().astype(int)
    return (str(support.idxmin()), int(support.min())) if len(support) else None


def _latest(cells: pd.DataFrame, metric: str) -> pd.DataFrame:
    """One cell for each arm and seed: the latest with a score, else the latest."""
    # The sort is stable and cells come in the order of their start: "last" is the latest one with a score.
    scored_last = scores(cells, metric).notna().sort_values(kind="stable").index
    return cells.loc[scored_last].drop_duplicates(["arm", "seed"], keep="last").sort_index()
