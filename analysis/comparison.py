"""The arms of a study, each compared with the baseline: the records that tables, figures and the summary show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean
from typing import Final

import pandas as pd

from analysis.cells import Control, latest_cells, scores_by_arm
from analysis.decisions import DecisionFacts
from analysis.formats import ScoreFormat
from analysis.frames import (
    Declared,
    Findings,
    collapsed,
    constant,
    has_drawn_settings,
    parent_tag,
    place_of,
    scores,
    states,
    tag_values,
    test_per_train,
    unfailed,
)
from analysis.statistics.best_arm import TUNED, ArmScores, BestArm, arm_of, best_arm
from analysis.statistics.intervals import (
    FEW_SEEDS,
    Difference,
    Interval,
    holm_of,
    moderated,
    sign_test,
    t_interval,
)
from dice_ray.metrics import catalogue
from dice_ray.tracking import schema

CONSTANT: Final = "constant predictor"


def is_row(name: str) -> bool:
    """Whether a comparison has a row of this name beside those of its arms, so that no arm can have it."""
    return name == CONSTANT or name.endswith(TUNED)


@dataclass(frozen=True)
class Arm:
    """One row of a comparison.

    Attributes:
        name: The arm's name, with a suffix of `TUNED` for its scores with the decision that is fitted on dev.
        score: The mean over its seeds.
        difference: To the baseline with the same decision, over the seeds that both have, or between all seeds where
            they share none; None for the baseline itself and the constant predictor. Its p is Holm-corrected, over the
            rows with `FEW_SEEDS` seeds or more. Where runs collapsed, it is over the seeds with which neither did.
        ahead: The number of these seeds in which it is above the baseline.
        new_data: The same difference on new data; None also if that is not known.
        pr_auc: The mean area under the precision-recall curve, which does not depend on the threshold; two-class tasks
            only.
        collapsed: The number of cells that predict one class only at the threshold of .5; None for a score that does
            not depend on it, for tuned rows, and for the constant predictor.
        failed: The number of ended cells without a score.
        by_seed: The differences to the baseline, in the order of the seeds.
        over_all: Their mean with those of the seeds with which one of the two collapsed.
        num_shared: The number of seeds with a score of both, those with which one collapsed among them.
        is_primary: Whether it is with the declared decision; scores with the other one are shown, and not tested.
        collapse_p: The Holm-corrected p of the exact sign test of which of the two collapsed; NaN without a collapse.
        collapses_more: Whether it collapsed with more of the seeds that both have, or of its own if they share none.
        is_fixed: Whether it is one run without a seed, whose score has an interval over test items.
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
    over_all: float = math.nan
    num_shared: int = 0
    is_primary: bool = True
    collapse_p: float = math.nan
    collapses_more: bool = False
    is_fixed: bool = False

    @property
    def decisive(self) -> Difference | None:
        """The difference that claims rest on: on new data where that is known."""
        return self.new_data or self.difference

    @property
    def arm(self) -> str:
        """The arm whose scores these are, plain or tuned."""
        return arm_of(self.name)

    @property
    def is_tuned(self) -> bool:
        """Whether its scores are with the decision that is fitted on dev."""
        return self.name.endswith(TUNED)


@dataclass(frozen=True)
class Comparison:
    """The arms of a study on one data set, encoder and variant.

    Attributes:
        place: Data set, encoder and variant, as far as they are known.
        cells: One row for each arm and seed.
        arms: The baseline first, then the others by their mean, those without a score, and the constant predictor.
        best: Among the baseline and the primary rows with `FEW_SEEDS` seeds; None for fewer than two.
        declared: What was declared before the first run.
        decision: What the runs decide by.
        test_per_train: The number of test records for each training record, before any is added or dropped, if each
            seed drew its own splits, else 0. All intervals are wider by it, and hold for other splits instead of one
            test set.
        why_not: The reason why no difference on new data is known; empty if one is.
        better_untuned: Where tuned scores are compared, the arms that are better than the baseline by plain ones. They
            are corrected among themselves, and no claim about the arms rests on them.
        num_units: The fewest test items of a cell, or documents where they are known, which new data has others of; 0
            if they are not known.
        num_replaced: The number of cells left out because another has the same arm and seed.
        controls: Of a tuned study; they are no arms, and their cells are not among `cells`.
    """

    place: str
    metric: str
    baseline: str
    cells: pd.DataFrame
    arms: tuple[Arm, ...]
    best: BestArm | None
    declared: Declared
    decision: DecisionFacts
    test_per_train: float
    why_not: str
    num_replaced: int
    controls: tuple[Control, ...] = ()
    num_units: int = 0
    better_untuned: tuple[str, ...] = ()

    @property
    def score_format(self) -> ScoreFormat:
        """How its table writes the scores."""
        return ScoreFormat.of(self.metric, (arm.score.mean for arm in self.arms))

    @property
    def care(self) -> float:
        """The smallest difference that matters, as scores are stored; 0 if none is declared."""
        return self.declared.care / (100 if self.score_format.percent else 1)

    @property
    def lower_is_better(self) -> bool:
        return catalogue.metric(self.metric).is_minimised

    @property
    def primary(self) -> tuple[Arm, ...]:
        """The rows that are compared, and the baseline's: one for each arm, best first."""
        return tuple(arm for arm in self.arms if arm.is_primary and arm.name != CONSTANT)

    @property
    def reference(self) -> Arm:
        """The row of the baseline that the others are compared with."""
        return next(arm for arm in self.primary if arm.arm == self.baseline)

    @property
    def num_tests(self) -> int:
        """How many p values Holm's correction counts."""
        differences = [arm.decisive for arm in self.arms if arm.decisive]
        return sum(each.interval.num >= FEW_SEEDS and not math.isnan(each.p) for each in differences) + sum(
            not math.isnan(arm.collapse_p) for arm in self.arms
        )

    @property
    def where_scored(self) -> str:
        """The declared decision, as the end of a phrase; empty if the score does not depend on it."""
        if self.is_tuned:
            return self.decision.tuned
        return self.decision.untuned if catalogue.metric(self.metric).needs_threshold else ""

    @property
    def is_tuned(self) -> bool:
        """Whether the arms are compared with the decision that is fitted on dev."""
        return any(arm.is_tuned and arm.is_primary for arm in self.arms)

    @property
    def shared_settings(self) -> str:
        """The trial whose settings all arms share; empty for none."""
        known = tag_values(self.cells, schema.SHARED).dropna()
        return str(known.iloc[-1]) if len(known) else ""

    @property
    def is_one_search(self) -> bool:
        """Whether arms have all their settings from a search each: their difference may be that of the searches."""
        return bool(tag_values(self.cells, schema.TUNED).notna().any()) and not self.shared_settings

    @property
    def has_failed_control(self) -> bool:
        return any(control.is_passed is False for control in self.controls)


@lru_cache(maxsize=1)
def comparisons(findings: Findings) -> tuple[Comparison, ...]:
    """A comparison for each data set, encoder and variant of a study, in the order of the study; empty without cells.

    Empty too if the variants are drawn settings, over which `budget.at_budget` compares.
    Cached, because every table and figure of a report asks for it.
    """
    frame, cells = findings.frame, findings.cells
    if cells.empty or has_drawn_settings(frame):
        return ()
    metric, baseline, declared = findings.metric, parent_tag(frame, schema.BASELINE), Declared.in_frame(frame)
    groups = cells.groupby(place_of(cells, schema.DATA, schema.ENCODER, schema.VARIANT), sort=False)
    return tuple(compare(group, metric, baseline, declared, findings.items, str(place)) for place, group in groups)


def compare(
    cells: pd.DataFrame,
    metric: str,
    baseline: str,
    declared: Declared,
    items: Mapping[str, pd.DataFrame] | None = None,
    place: str = "",
) -> Comparison:
    """Compare the arms with the baseline, over the seeds that they share.

    The cells are those of one data set, encoder and variant, the `place`; `items` has the counts of each test item by
    the id of a cell.
    """
    latest = latest_cells(cells, metric)
    is_control = tag_values(latest, schema.CONTROL).notna()
    once = latest[~is_control]
    decision = DecisionFacts.of(once, metric)
    plain, why_not = scores_by_arm(once, metric, items or {}, "", declared.looks, decision.costs)
    tuned, _ = scores_by_arm(once, metric, items or {}, decision.suffix, declared.looks, decision.costs)
    is_tuned = declared.threshold == "tuned" and baseline in tuned
    if is_tuned:  # predictions without those of dev are compared as they are, and arms without any score are told
        given = set(once["arm"][tag_values(once, schema.PREDICTIONS).notna()])
        given |= {name for name, row in plain.items() if not row.scores}
        tuned |= {name: plain.pop(name) for name in given - tuned.keys()}
    primary, other = (tuned, plain) if is_tuned else (plain, tuned)
    ratio, limits = test_per_train(once), catalogue.metric(metric).limits
    absent = ArmScores(baseline, {}, {}, ratio, limits)
    reference = primary.setdefault(baseline, absent)
    if declared.compared_by:
        why_not = "the test items of these runs are not known"
    # Few columns: those of all settings and metrics would be copied with the rows of each arm.
    runs = once[["arm", "seed"]].assign(
        has_ended=states(once) != "unfinished",
        is_collapsed=collapsed(once, metric),
        area=unfailed(once, schema.sibling(metric, "pr_auc")),
    )
    of_collapsed: Mapping[str, Set[int]] = {}
    if not is_tuned and catalogue.metric(metric).needs_threshold:
        of_collapsed = {str(arm): set(seeds) for arm, seeds in runs[runs["is_collapsed"]].groupby("arm")["seed"]}
    arms = _corrected([_arm(row, reference, runs, metric, of_collapsed) for row in primary.values()])
    others = _corrected([_arm(row, other.get(baseline, absent), runs, metric, {}) for row in other.values()])
    for arm in others:
        difference = arm.difference and arm.difference.untested
        arms.append(replace(arm, is_primary=False, difference=difference, new_data=None))
    arms.sort(
        key=lambda arm: (
            arm.arm != baseline,
            arm.arm == baseline and not arm.is_primary,
            math.isnan(arm.score.mean),
            -catalogue.gain(metric, arm.score.mean),
        )
    )
    compared = {arm.name for arm in arms if arm.arm == baseline or arm.num_shared >= FEW_SEEDS}
    if declared.compared_by:  # whether a run of another program collapsed is not known
        arms = [replace(arm, collapsed=None, collapses_more=False) for arm in arms]
    if (predictor := constant(once, metric)) is not None:
        arms.append(Arm(CONSTANT, predictor))
    if not any(arm.by_seed for arm in arms):
        why_not = f"no arm shares a seed with {baseline}"
    of_controls = latest[is_control]
    values = unfailed(of_controls, schema.sibling(metric, "tuned")) if is_tuned else scores(of_controls, metric)
    # Two controls may be of one arm: the scale of the loss, and other seeds.
    controls = of_controls.groupby(["arm", tag_values(of_controls, schema.CONTROL)])
    return Comparison(
        place,
        metric,
        baseline,
        cells=once,
        arms=tuple(arms),
        best=best_arm([row for row in primary.values() if row.name in compared]),
        declared=declared,
        decision=decision,
        test_per_train=ratio,
        why_not="" if any(arm.new_data for arm in arms) else why_not or "cells lack the counts of their test items",
        num_replaced=len(cells) - len(latest),
        controls=tuple(
            Control.of(str(arm), reference, each["seed"], values[each.index]) for (_, arm), each in controls
        ),
        better_untuned=tuple(arm.arm for arm in others if is_tuned and arm.decisive and arm.decisive.is_ahead),
        num_units=min((len(part) for row in plain.values() for part in row.parts.values()), default=0),
    )


def _arm(
    row: ArmScores,
    baseline: ArmScores,
    runs: pd.DataFrame,
    metric: str,
    of_collapsed: Mapping[str, Set[int]],
) -> Arm:
    """The record of a row, compared with the row of the baseline at the same threshold.

    The seeds of `of_collapsed`, with which an arm collapsed, are judged apart from the scores of the others: one
    collapse makes the spread so large that a t test over all seeds shows nothing.
    """
    runs = runs[runs["arm"] == row.arm]
    failed = 0 if row.is_fixed else int((runs["has_ended"] & ~runs["seed"].isin(row.scores)).sum())
    arm = Arm(row.name, row.interval, failed=failed, is_fixed=row.is_fixed)
    if row.arm != baseline.arm:
        mine, its = of_collapsed.get(row.arm, set()), of_collapsed.get(baseline.arm, set())
        with_each = {*row.scores} if row.is_fixed and mine else mine  # one run, beside each seed of the baseline
        shared = set(row.shared_with(baseline))
        only_mine, only_its = len((mine - its) & shared), len((its - mine) & shared)
        learned = replace(row, scores={seed: value for seed, value in row.scores.items() if seed not in mine | its})
        if shared and not learned.shared_with(baseline):  # nothing but collapses: as before, but never tested
            difference, on_new_data, by_seed = row.minus(baseline).untested, None, row.differences_to(baseline)
        else:
            difference, on_new_data = learned.minus(baseline), learned.on_new_data(baseline)
            by_seed = learned.differences_to(baseline)
        arm = replace(
            arm,
            difference=difference,
            ahead=sum(each < 0 if row.lower_is_better else each > 0 for each in by_seed) if by_seed else None,
            new_data=on_new_data,
            by_seed=by_seed,
            over_all=fmean(row.differences_to(baseline)) if shared else difference.interval.mean,
            num_shared=len(shared) or difference.interval.num,
            collapse_p=sign_test(only_mine, only_its, row.looks_with(baseline)),
            collapses_more=_share(with_each, shared or {*row.scores}) > _share(its, shared or {*baseline.scores}),
        )
    # PR-AUC does not depend on the threshold, and collapses are counted at .5: both are in the plain row only.
    if not arm.is_tuned:
        area = runs["area"].dropna().tolist()
        num_collapsed = int(runs["is_collapsed"].sum()) if catalogue.metric(metric).needs_threshold else None
        arm = replace(arm, pr_auc=t_interval(area, row.test_per_train) if area else None, collapsed=num_collapsed)
    return arm


def _share(collapsed: Set[int], seeds: Set[int]) -> float:
    return len(collapsed & seeds) / len(seeds) if seeds else 0.0


def _corrected(arms: Sequence[Arm]) -> list[Arm]:
    """The arms with Holm-corrected p values, over seeds and on new data separately.

    The tests of collapses are in the same family, and so is an arm whose items are lost, with its difference on these
    items. Arms with fewer than `FEW_SEEDS` seeds are never called significant, and do not count.
    """
    collapses = [Difference(Interval(0.0, num=FEW_SEEDS), arm.collapse_p) for arm in arms]
    none = Difference(Interval(math.nan), math.nan)  # of no seeds, so that it does not count
    here = _holm_of_compared([*(arm.difference or none for arm in arms), *collapses])
    decisive = _holm_of_compared([*(arm.decisive or none for arm in arms), *collapses])
    return [
        replace(arm, difference=arm.difference and on_these, new_data=arm.new_data and on_new, collapse_p=each.p)
        for arm, on_these, on_new, each in zip(arms, here, decisive, decisive[len(arms) :], strict=False)
    ]


def _holm_of_compared(differences: Sequence[Difference]) -> list[Difference]:
    compared = iter(holm_of(moderated([each for each in differences if each.interval.num >= FEW_SEEDS])))
    return [next(compared) if each.interval.num >= FEW_SEEDS else replace(each, p=math.nan) for each in differences]
