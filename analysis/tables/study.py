"""The tables of a study: its arms against the baseline, and the arms that could not run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pandas as pd

from analysis.comparison import CONSTANT, Arm, Comparison, comparisons
from analysis.decisions import DecisionFacts
from analysis.formats import PERCENT, ScoreFormat, named, on_place
from analysis.frames import Findings, tag_values
from analysis.ratios import PR_AUC
from analysis.statistics.intervals import ALPHA, FEW_SEEDS
from analysis.tables.base import HOLM_P, Mark, ReportTable, numbers, shown_p
from analysis.verdict.decision import decide
from dice_ray.errors import counted
from dice_ray.metrics.catalogue import gain
from dice_ray.tracking import schema

_ON_NEW_DATA: Final = "on new data"
_HOLM_P_ON_NEW_DATA: Final = "Holm p, new data"
_PR_AUC: Final = PERCENT.heading(PR_AUC)


def comparison(findings: Findings) -> list[ReportTable]:
    """The arms of a study, in a table for each data set, encoder and variant."""
    return [_table(name, each) for name, each in named("comparison", comparisons(findings))]


def _table(name: str, compared: Comparison) -> ReportTable:
    arms, folds = _in_order(compared)
    scale = compared.score_format
    counts = ("seeds", "shared_seeds", "seeds_ahead", "collapsed", "failed", "missed")
    data = pd.DataFrame([_numbers(arm, compared.decision) for arm in arms]).astype(dict.fromkeys(counts, "Int64"))
    unknown = tuple(name for name in ("new_data", "pr_auc") if not any(getattr(arm, name) for arm in arms))
    unknown += ("kept", "missed") if not compared.decision.promised else ()
    unknown += ("collapsed",) if compared.declared.compared_by else ()
    data = data[[name for name in data if not str(name).startswith(unknown)]]
    shown = pd.DataFrame([_cells(arm, compared, scale) for arm in arms])
    of_what = "of the settings found by one search for each arm" if compared.is_one_search else "by arm"
    title = f"{compared.metric} {of_what}{on_place(compared.place)}"
    marks = _marks(arms, compared, shown)
    return ReportTable(name, title, data, shown, tuple(_notes(compared)), marks, folds, _tips(compared))


def _in_order(compared: Comparison) -> tuple[list[Arm], dict[int, str]]:
    """One row for each arm, best first, and the constant predictor; then the rows to fold, by where each kind starts.

    Folded are the scores at the threshold that was not declared, and the arms whose runs all predict one class only.
    """

    def order(arm: Arm) -> tuple[bool, bool, float]:
        return arm.name == CONSTANT, math.isnan(arm.score.mean), -gain(compared.metric, arm.score.mean)

    arms = sorted(compared.arms, key=order)
    others = [arm for arm in arms if not arm.is_primary]
    dead = [arm for arm in arms if arm not in others and arm.collapsed and arm.collapsed == arm.score.num]
    first = [arm for arm in arms if arm not in others and arm not in dead]
    if all(arm.name == CONSTANT for arm in first):
        first, dead = [*dead, *first], []
    kinds = (
        (len(first), others, f"Not compared, {_other_threshold(compared)}"),
        (len(first) + len(others), dead, "Arms whose runs all collapsed"),
    )
    return [*first, *others, *dead], {start: name for start, rows, name in kinds if rows}


def _other_threshold(compared: Comparison) -> str:
    """Where the scores were taken that are not compared."""
    return (compared.decision.untuned if compared.is_tuned else compared.decision.tuned).strip()


def _numbers(arm: Arm, decision: DecisionFacts) -> dict[str, Any]:
    score, difference, new_data = arm.score, arm.difference, arm.new_data
    return {
        "arm": arm.name,
        "mean": score.mean,
        "low": score.low,
        "high": score.high,
        "seeds": score.num or None,
        **numbers("difference", difference.interval if difference else None),
        "shared_seeds": difference and difference.interval.num,
        "seeds_ahead": arm.ahead,
        "holm_p": difference and difference.p,
        "new_data_low": new_data and new_data.interval.low,
        "new_data_high": new_data and new_data.interval.high,
        "new_data_holm_p": new_data and new_data.p,
        **numbers("pr_auc", arm.pr_auc),
        "collapsed": arm.collapsed,
        "failed": arm.failed,
        **numbers("kept", decision.kept.get(arm.arm) if arm.is_tuned else None),
        "missed": decision.missed.get(arm.arm) if arm.is_tuned else None,
    }


def _cells(arm: Arm, compared: Comparison, scale: ScoreFormat) -> dict[str, str]:
    difference, new_data = arm.difference, arm.new_data
    cells = {
        "arm": arm.name,
        scale.heading(compared.metric): scale.show_interval(arm.score),
        "seeds": str(arm.score.num or ""),
        f"minus {compared.baseline}": scale.show_interval(difference.interval, "+") if difference else "",
        "ahead in": "" if arm.ahead is None or not difference else f"{arm.ahead} of {difference.interval.num}",
        HOLM_P: shown_p(difference.p) if difference else "",
    }
    if any(each.new_data for each in compared.arms):
        cells[_ON_NEW_DATA] = scale.show_bounds(new_data.interval, "+") if new_data else ""
        cells[_HOLM_P_ON_NEW_DATA] = shown_p(new_data.p) if new_data else ""
    if any(each.pr_auc for each in compared.arms):
        cells[_PR_AUC] = PERCENT.show_interval(arm.pr_auc) if arm.pr_auc else ""
    if not compared.declared.compared_by:
        cells["collapsed"] = "" if arm.collapsed is None else str(arm.collapsed)
    if heading := _kept(compared):
        tuned = compared.decision if arm.is_tuned and arm.arm in compared.decision.kept else None
        cells[heading] = PERCENT.show(tuned.kept[arm.arm].mean) if tuned else ""
        cells["missed in"] = f"{tuned.missed[arm.arm]} of {arm.score.num}" if tuned else ""
    if any(each.failed for each in compared.arms):
        cells["failed"] = "" if arm.failed is None else str(arm.failed)
    return cells


def _kept(compared: Comparison) -> str:
    """The heading of what a decision promises, as `recall (%), at least 90`; empty for a decision without a target."""
    decision = compared.decision
    return f"{PERCENT.heading(decision.promised)}, {decision.limit}" if decision.promised else ""


def _tips(compared: Comparison) -> dict[str, str]:
    """What each heading means."""
    baseline = compared.baseline
    return {
        "seeds": "The number of runs with a score",
        f"minus {baseline}": f"The mean difference to {baseline} over the seeds that both have, with its interval",
        "ahead in": f"In how many of these seeds the arm is better than {baseline}",
        HOLM_P: "The p value of this difference on this test set, corrected for the compared rows by Holm's method",
        _ON_NEW_DATA: "The interval of the same difference for other seeds and other test items of the same kind",
        _HOLM_P_ON_NEW_DATA: "The p value of the difference on new data, corrected in the same way",
        _PR_AUC: "The area under the precision-recall curve, which needs no threshold",
        "collapsed": f"How many runs predict one class only{compared.decision.untuned}",
        "failed": "How many runs have no score",
        _kept(compared): f"Its mean{compared.decision.tuned}, which keeps it within the limit on dev",
        "missed in": "In how many runs it is beyond the limit",
    }


def _marks(arms: Sequence[Arm], compared: Comparison, shown: pd.DataFrame) -> dict[tuple[int, str], Mark]:
    """The winner in bold; differences to the baseline that are not significant in grey."""
    marks: dict[tuple[int, str], Mark] = {}
    score, minus = shown.columns[1], shown.columns[3]
    winner = compared.best if decide(compared).outcome == "winner" else None
    for number, arm in enumerate(arms):
        if winner and arm.name == winner.name:
            marks[number, score] = "bold"
        if arm.is_primary and arm.difference and not arm.difference.is_significant:
            marks |= {(number, minus): "grey", (number, HOLM_P): "grey"}
        if arm.new_data and not arm.new_data.is_significant:
            marks |= {(number, _ON_NEW_DATA): "grey", (number, _HOLM_P_ON_NEW_DATA): "grey"}
    return marks


def _notes(compared: Comparison) -> Iterator[str]:
    looks = compared.declared.looks
    over = f", and over the looks after {', '.join(map(str, looks))} seeds" if len(looks) > 1 else ""
    yield (
        "Means over seeds with 95 % intervals. Differences are paired by seed; their p values and intervals are "
        f"Holm-corrected over the rows with {FEW_SEEDS} seeds or more{over}. An interval excludes 0 exactly where p is "
        f"at most {ALPHA}."
    )
    if fixed := [arm.name for arm in compared.primary if arm.is_fixed]:
        yield (
            f"{', '.join(fixed)}: one run, compared with each seed of the others; the interval of its score is over "
            "test items, and its own seeds are not covered."
        )
    if compared.test_per_train:
        yield (
            "Each seed drew its own test split, the same for all arms: intervals and p values are for other splits, "
            f"with the variance (1/n + {compared.test_per_train:.2f}) s^2 of Nadeau and Bengio (2003), because "
            "training sets overlap."
        )
    elif compared.why_not:
        yield f"Differences: for other seeds on this test set. On new data: not estimated, because {compared.why_not}."
    else:
        yield (
            f"Minus {compared.baseline}: for other seeds on this test set. On new data: for other seeds and other test "
            f"items of the same kind ({compared.num_units:,} items, or whole documents where they are known, are "
            "resampled, and their variance is added, after Sellam et al. 2022); never narrower than the first interval."
        )
        if unknown := [arm.name for arm in compared.primary if arm.difference and not arm.new_data]:
            yield f"Not estimated on new data, because cells lack the counts of their test items: {'; '.join(unknown)}."
    if any(not arm.is_primary for arm in compared.arms):
        yield f"Scores {_other_threshold(compared)} are shown and not compared."
    if any(arm.pr_auc for arm in compared.arms):
        yield (
            "PR-AUC: the area under the precision-recall curve, independent of the threshold; a random ranking has the "
            "share of positives."
        )
    yield from _tuning(compared)
    weights = tag_values(compared.cells, schema.CLASS_WEIGHTS).groupby(compared.cells["arm"]).first().dropna()
    if len(weights):
        yield f"Class weights: {'; '.join(f'{arm} has {range_}' for arm, range_ in weights.items())}."
    yield (
        "Bold: the winner, if there is one. Grey, or italic: not significantly different from the baseline, which "
        f"takes at least {FEW_SEEDS} seeds."
    )
    if compared.num_replaced:
        yield f"Left out, since a later run has the same arm and seed: {counted(compared.num_replaced, 'run')}."
    yield from _missing(compared.cells, is_in_looks=len(looks) > 1)


def _tuning(compared: Comparison) -> Iterator[str]:
    """Which arms were tuned, by which trial of how many, and whether that makes their scores optimistic."""
    cells = compared.cells
    if shared := compared.shared_settings:
        yield f"All arms share the settings found by {shared}, apart from those of the loss."
    if compared.declared.compared_by:
        return
    if tag_values(cells, schema.TUNED).isna().all():
        if not shared:
            yield "No arm is tuned: each runs with the settings of its definition."
        return
    by_arm = {str(arm): tag_values(runs, schema.TUNED).dropna() for arm, runs in cells.groupby("arm")}
    trials = [f"{arm} ({tags.iloc[-1] if len(tags) else 'not tuned'})" for arm, tags in by_arm.items()]
    yield f"Tuned on dev, with other seeds than those compared here: {'; '.join(trials)}."
    if compared.test_per_train:
        yield (
            "The searches used records that are in the test splits of other seeds: scores of tuned arms are slightly "
            "too high."
        )


def _missing(cells: pd.DataFrame, *, is_in_looks: bool) -> Iterator[str]:
    """The seeds that some arms have and others lack; in looks, an arm lacks none after its last one."""
    with_seeds = cells[cells["seed"].notna()]
    seeds_by_arm = {str(arm): set(runs["seed"]) for arm, runs in with_seeds.groupby("arm")}
    all_seeds = set().union(*seeds_by_arm.values())
    arms_by_missing: dict[str, list[str]] = {}
    for arm, seeds in seeds_by_arm.items():
        if missing := sorted(seed for seed in all_seeds - seeds if not is_in_looks or seed < max(seeds)):
            arms_by_missing.setdefault(", ".join(map(str, missing)), []).append(arm)
    for missing_seeds, arms in arms_by_missing.items():
        yield f"Missing: no cell of seed {missing_seeds} for {', '.join(arms)}."


def left_out(findings: Findings) -> list[ReportTable]:
    """The arms that a study could not run on its data, and the reasons."""
    if not findings.left_out:
        return []
    data = pd.DataFrame(findings.left_out, columns=["variant", "arm", "reason"]).dropna(axis="columns", how="all")
    return [ReportTable("left_out", "Arms left out", data, data.fillna(""))]
