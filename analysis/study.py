"""The tables of a study: arms against the baseline, over data sets and by class, and the arms that could not run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pandas as pd

from analysis.comparison import TUNED, Arm, Comparison, comparisons
from analysis.found import Found
from analysis.layout import Mark, Scale, Table
from analysis.new_data import over_data_sets
from analysis.scores import column
from analysis.statistics import ALPHA, FEW_SEEDS, Difference, holm, what_seeds_allow


def comparison(found: Found) -> list[Table]:
    """The arms of a study; a table for each data set, encoder and variant."""
    made = comparisons(found)
    return [
        _comparison("comparison" if len(made) == 1 else f"comparison_{number}", each)
        for number, each in enumerate(made, start=1)
    ]


def _comparison(name: str, made: Comparison) -> Table:
    scale = Scale.of(pd.Series([arm.score.mean for arm in made.arms]))
    rows = [_numbers(arm) for arm in made.arms]
    counts = ("seeds", "shared_seeds", "seeds_ahead", "collapsed", "failed")
    data = pd.DataFrame(rows).astype(dict.fromkeys(counts, "Int64"))
    shown = pd.DataFrame([_cells(arm, made, scale) for arm in made.arms])
    unknown = [name for name in ("new_data", "pr_auc") if not any(getattr(arm, name) for arm in made.arms)]
    data = data[[each for each in data if not str(each).startswith(tuple(unknown))]]
    title = f"{made.metric} by arm" + (f" on {made.place}" if made.place else "")
    return Table(name, title, data, shown, tuple(_notes(made, scale)), _marks(made, shown))


def _numbers(arm: Arm) -> dict[str, Any]:
    score, here, beyond = arm.score, arm.difference, arm.new_data
    return {
        "arm": arm.name,
        "mean": score.mean,
        "low": score.low,
        "high": score.high,
        "seeds": score.num or None,
        "difference": here and here.interval.mean,
        "difference_low": here and here.interval.low,
        "difference_high": here and here.interval.high,
        "shared_seeds": here and here.interval.num,
        "seeds_ahead": arm.ahead,
        "holm_p": here and here.p,
        "new_data_low": beyond and beyond.interval.low,
        "new_data_high": beyond and beyond.interval.high,
        "new_data_holm_p": beyond and beyond.p,
        "pr_auc": arm.pr_auc and arm.pr_auc.mean,
        "pr_auc_low": arm.pr_auc and arm.pr_auc.low,
        "pr_auc_high": arm.pr_auc and arm.pr_auc.high,
        "collapsed": arm.collapsed,
        "failed": arm.failed,
    }


HERE: Final = "Holm p"
INTERVAL: Final = "on new data"
BEYOND: Final = "its Holm p"
PR_AUC: Final = "PR-AUC"


def _cells(arm: Arm, made: Comparison, scale: Scale) -> dict[str, str]:
    here, beyond = arm.difference, arm.new_data
    has_pr_auc = any(arm.pr_auc for arm in made.arms)
    on_new_data = {
        INTERVAL: scale.show_bounds(beyond.interval, "+") if beyond else "",
        BEYOND: _p(beyond.p) if beyond else "",
    }
    return {
        "arm": arm.name,
        scale.heading(made.metric): scale.show_interval(arm.score),
        "seeds": str(arm.score.num or ""),
        f"minus {made.baseline}": scale.show_interval(here.interval, "+") if here else "",
        "ahead in": f"{arm.ahead} of {here.interval.num}" if here else "",
        HERE: _p(here.p) if here else "",
        **(on_new_data if any(arm.new_data for arm in made.arms) else {}),
        **({PR_AUC: scale.show_interval(arm.pr_auc) if arm.pr_auc else ""} if has_pr_auc else {}),
        "collapsed": "" if arm.collapsed is None else str(arm.collapsed),
        "failed": "" if arm.failed is None else str(arm.failed),
    }


def _marks(made: Comparison, shown: pd.DataFrame) -> dict[tuple[int, str], Mark]:
    """The best arm in bold; in grey what is not told apart from the baseline."""
    marks: dict[tuple[int, str], Mark] = {}
    score, minus = shown.columns[1], shown.columns[3]
    for number, arm in enumerate(made.arms):
        if made.best and arm.name == made.best.name:
            marks[number, score] = "bold"
        if arm.difference and not arm.difference.tells_apart:
            marks |= {(number, minus): "grey", (number, HERE): "grey"}
        if arm.new_data and not arm.new_data.tells_apart:
            marks |= {(number, INTERVAL): "grey", (number, BEYOND): "grey"}
    return marks


def _notes(made: Comparison, scale: Scale) -> Iterator[str]:
    yield "Means over seeds with 95 % t intervals; differences paired by seed; p corrected by Holm over all rows."
    if made.test_per_train:
        yield (
            "Each seed drew a test split of its own, the same for all arms: intervals and p are for other splits, with "
            f"the variance (1/n + {made.test_per_train:.2f}) s^2 of Nadeau and Bengio (2003), as training sets overlap."
        )
    elif made.why_not:
        yield f"Other seeds on this very test set. Not known on new data: {made.why_not}."
    else:
        yield (
            f"Minus {made.baseline}: with other seeds on this very test set. On new data: with other seeds and other "
            "items of the same kind (the variance over resampled items is added, after Sellam et al. 2022)."
        )
        if lost := [arm.name for arm in made.arms if arm.difference and not arm.new_data]:
            yield f"Not known on new data, since cells lack the counts of their items: {'; '.join(lost)}."
    if any(arm.name.endswith(TUNED) for arm in made.arms):
        yield (
            f"Scores at a tuned threshold are compared with {made.baseline} at its tuned threshold, the others at .5."
        )
    if any(arm.pr_auc for arm in made.arms):
        yield "PR-AUC: how well the scores rank, whatever the threshold; chance has the share of positives."
    yield from _how_sure(made, scale)
    yield _how_tuned(made.cells)
    if made.test_per_train and column(made.cells, "tags.tuned").notna().any():
        yield "The searches saw records that other splits test on: scores of tuned arms are a little too high."
    yield (
        "Bold: the best arm, each two compared on the seeds that they share. Grey, or slanted: not told apart from the "
        "baseline."
    )
    if made.num_replaced:
        yield f"Left out: {made.num_replaced} of the same arm and seed as another; the latest with a score counts."
    yield from _missing(made.cells)


def _how_sure(made: Comparison, scale: Scale) -> Iterator[str]:
    seeds = shared_seeds(made)
    yield f"At least {seeds} seeds shared with {made.baseline}: {what_seeds_allow(seeds)}."
    yield from told_apart(made, scale)
    if seeds >= FEW_SEEDS:
        yield who_wins(made, scale)


def told_apart(made: Comparison, scale: Scale) -> Iterator[str]:
    """Which arms differ from the baseline, for either question; nothing with few seeds."""
    if shared_seeds(made) < FEW_SEEDS:
        return
    said: dict[str, list[str]] = {}
    for question, name in ((where(made), "difference"), ("on new data", "new_data")):
        known = [(arm.name, difference) for arm in made.arms if (difference := getattr(arm, name))]
        apart = [f"{arm} ({scale.show(each.interval.mean, '+')})" for arm, each in known if each.tells_apart]
        if known:
            said.setdefault(", ".join(apart) or "no arm", []).append(question)
    for arms, questions in said.items():
        yield f"Told apart from {made.baseline} {' and '.join(questions)} at p {ALPHA}: {arms}."


def where(made: Comparison) -> str:
    """What the differences over seeds hold for."""
    return "on other splits" if made.test_per_train else "on this test set"


def shared_seeds(made: Comparison) -> int:
    """The fewest seeds that an arm shares with the baseline; an arm without a score, listed as failed, has none."""
    shared = [arm.difference.interval.num for arm in made.arms if arm.difference]
    return min(filter(None, shared), default=0)


def who_wins(made: Comparison, scale: Scale) -> str:
    """In one sentence: the winner, or why there is none."""
    best = made.best
    if best is None:
        return "Nothing to compare."
    ahead = f"{scale.show(best.difference.interval.mean, '+')} over {best.runner_up}"
    if best.difference.interval.num < FEW_SEEDS:
        return f"Best: {best.name}, {ahead}; no winner is named with fewer than {FEW_SEEDS} shared seeds."
    if not best.wins:
        return f"No winner: {best.name} is best, {ahead}, and is not told apart from every other arm."
    if made.test_per_train:
        beyond = where(made)
    else:
        beyond = "on new data too" if best.wins_on_new_data else f"{where(made)}, not shown on new data"
    return f"Winner: {best.name}, told apart from every other arm {beyond}; {ahead}."


def _missing(cells: pd.DataFrame) -> Iterator[str]:
    """The seeds that some arms have and others lack."""
    seeds = {str(arm): set(runs["seed"].dropna()) for arm, runs in cells.groupby("arm")}
    every = set().union(*seeds.values())
    lacking: dict[str, list[str]] = {}
    for arm, known in seeds.items():
        if known < every:
            lacking.setdefault(", ".join(map(str, sorted(every - known))), []).append(arm)
    for seed, arms in lacking.items():
        yield f"Missing: no cell of seed {seed} for {', '.join(arms)}."


def _how_tuned(cells: pd.DataFrame) -> str:
    """Whether the arms are tuned, and by which trial of how many."""
    tuned = column(cells, "tags.tuned").dropna()
    if tuned.empty:
        return "No arm is tuned: each runs with what its definition says."
    by = {str(arm): column(runs, "tags.tuned").dropna() for arm, runs in cells.groupby("arm")}
    said = [f"{arm} ({each.iloc[-1]})" if len(each) else f"{arm} (not tuned)" for arm, each in by.items()]
    return f"Tuned on dev, with seeds that are not compared here: {'; '.join(said)}."


def across_data_sets(found: Found) -> list[Table]:
    """Each arm against the baseline over data sets, one difference each; where there are several."""
    by_data: dict[str, dict[str, list[Difference]]] = {}
    baseline, metric = "", ""
    for made in comparisons(found):
        baseline, metric = made.baseline, made.metric
        place = str(column(made.cells, "tags.data").iloc[0])
        for arm in made.arms:
            if arm.difference and arm.difference.interval.num:
                by_data.setdefault(arm.name, {}).setdefault(place, []).append(arm.difference)
    if len({place for each in by_data.values() for place in each}) < 2:
        return []
    rows: list[dict[str, Any]] = []
    for name, each in by_data.items():
        means = [float(np.mean([difference.interval.mean for difference in of])) for of in each.values()]
        across, better = over_data_sets(means, len(by_data)), sum(mean > 0 for mean in means)
        rows.append(
            {"arm": name, "difference": float(np.mean(means)), "better_on": better, "data_sets": across.num}
            | {"least": across.least, "p": across.p}
        )
    for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["holm_p"] = p
    scale = Scale(percent=all(abs(row["difference"]) <= 1 for row in rows))
    shown = pd.DataFrame(
        {
            "arm": row["arm"],
            f"{scale.heading(metric)} minus {baseline}": scale.show(row["difference"], "+"),
            "better on": f"{row['better_on']} of {row['data_sets']}",
            "Holm p": _p(row["holm_p"])
            if row["data_sets"] >= row["least"]
            else f"impossible below {row['least']} data sets",
        }
        for row in rows
    )
    note = (
        "One mean difference a data set (of several variants their mean). Wilcoxon's signed-rank test over data sets "
        "(Demsar 2006), only where its least p, 2^(1-n) with n data sets, is at most .05 over the number of rows."
    )
    return [Table("across_data_sets", "Over data sets", pd.DataFrame(rows), shown, (note,))]


def left_out(found: Found) -> list[Table]:
    """The arms that a study could not run on its data, and why."""
    if not found.left_out:
        return []
    data = pd.DataFrame(found.left_out, columns=["variant", "arm", "reason"]).dropna(axis="columns", how="all")
    return [Table("left_out", "Arms left out", data, data.fillna(""))]


def _p(p: float) -> str:
    if math.isnan(p):
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
