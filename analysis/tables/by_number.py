"""Scores by a number: the tuning budget, with what the variance comes from, and the ratio of negatives to positives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pandas as pd

from analysis.budget import AtBudget, at_budget
from analysis.comparison import CONSTANT
from analysis.formats import named, on_place
from analysis.frames import Findings
from analysis.ratios import PR_AUC, ByRatio, by_ratio
from analysis.statistics.intervals import ALPHA
from analysis.statistics.variance import BOTH, LOSS, RESIDUAL, SEED, SETTINGS
from analysis.tables.base import HOLM_P, Mark, ReportTable, numbers, shown_p
from analysis.verdict.equal_budget import failed_in_variance
from dice_ray.errors import counted

_MEANINGS: Final = {
    LOSS: "which arm it is, over all settings",
    SETTINGS: "the settings{varied}, over all arms",
    SEED: "the seed, over all arms and settings",
    BOTH: "which settings suit which arm",
    RESIDUAL: "all else, such as the seed of a single run",
}


def at_equal_budget(findings: Findings) -> list[ReportTable]:
    """The arms at the budget of the verdict, then at other ones, in a table for each data set and encoder."""
    studied = [each for each in at_budget(findings) if each.arms]
    return [_budget_table(name, each) for name, each in named("at_equal_budget", studied)]


def _budget_table(name: str, of: AtBudget) -> ReportTable:
    known = {budget for arm in of.arms for budget in arm.differences}
    budgets = sorted({of.budget} | known, key=lambda budget: (budget != of.budget, budget))
    score_format, minus = of.score_format, f"minus {of.baseline}"
    rows: list[dict[str, Any]] = []
    shown: list[dict[str, str]] = []
    marks: dict[tuple[int, str], Mark] = {}
    for budget in budgets:
        arms = [(arm.name, arm.scores[budget - 1], arm.differences.get(budget)) for arm in of.arms]
        arms += [(CONSTANT, of.constant, None)] if of.constant else []
        for arm, score, difference in arms:
            if difference and not (of.is_decided and difference.is_significant):
                marks |= {(len(shown), heading): "grey" for heading in (minus, HOLM_P)}
            rows.append(
                {"best_of": budget, "arm": arm, "mean": score.mean, "low": score.low, "high": score.high}
                | numbers("difference", difference.interval if difference else None)
                | {"holm_p": difference and difference.p}
            )
            shown.append(
                {
                    "best of": str(budget),
                    "arm": arm,
                    score_format.heading(of.metric): score_format.show_interval(score),
                    minus: score_format.show_interval(difference.interval, "+") if difference else "",
                    HOLM_P: shown_p(difference.p) if difference else "",
                }
            )
    folds = {len(shown) // len(budgets): "At other budgets"} if len(budgets) > 1 else {}
    title = f"{of.metric} at equal tuning budget{on_place(of.place)}"
    return ReportTable(name, title, pd.DataFrame(rows), pd.DataFrame(shown), tuple(_budget_notes(of)), marks, folds)


def _budget_notes(of: AtBudget) -> Iterator[str]:
    seeds, method = "each with a seed of its own", "the jackknife over settings"
    if of.is_crossed:
        seeds = f"the mean over {counted(of.num_seeds, 'seed')}"
        method += " and the analysis of variance"
    yield (
        f"Best of n: the expected {of.metric} of the run with the best dev score of n settings, over all subsets of n "
        f"of the {counted(of.num_draws, 'setting')} (without replacement), {seeds}. All arms have the same settings "
        f"and seeds{', apart from what one draws for itself' if of.own else ''}, so that differences are paired by "
        "both."
    )
    yield (
        f"Intervals of 95 % over settings and seeds, both drawn at random: {method}, with the degrees of freedom of "
        "the settings that decide the best of n. Those of differences are Holm-corrected over the arms at each n: an "
        f"interval excludes 0 exactly where p is at most {ALPHA}."
    )
    if of.test_per_train:
        yield (
            f"Each seed drew its own test split: the variance of {'seeds' if of.is_crossed else 'settings and seeds'} "
            f"has the factor 1/{'R' if of.is_crossed else 'N'} + {of.test_per_train:.2f} of Nadeau and Bengio (2003)."
        )
    yield "Grey, or italic: not significantly different from the baseline."


def variance_components(findings: Findings) -> list[ReportTable]:
    """How far single test scores differ between losses, settings and seeds, of crossed studies."""
    studied = [each for each in at_budget(findings) if any(found.mean for found in each.deviations.values())]
    return [_variance_table(name, each) for name, each in named("variance_components", studied)]


def _variance_table(name: str, of: AtBudget) -> ReportTable:
    varied = f" ({', '.join(of.varied)})" if of.varied else ""
    # With one seed which settings suit which arm is not told apart from the residual.
    meanings = _MEANINGS if BOTH in of.deviations else _MEANINGS | {RESIDUAL: f"{_MEANINGS[BOTH]}, and all else"}
    data = pd.DataFrame(
        {"source": source, "standard_deviation": found.mean, "low": found.low, "high": found.high}
        for source, found in of.deviations.items()
    )
    shown = pd.DataFrame(
        {
            "source": source,
            f"standard deviation of {of.score_format.heading(of.metric)}": of.score_format.show_interval(found),
            "what varies": meanings[source].format(varied=varied),
        }
        for source, found in of.deviations.items()
    )
    note = (
        f"Variance components of {of.metric} of single runs: {len(of.arms)} arms, {of.num_draws} settings and "
        f"{counted(of.num_seeds, 'seed')}, each combination once, all effects random (analysis of variance; a negative "
        "estimate is 0). The 95 % intervals of loss and settings are about these arms and settings, by the F test "
        f"against the interaction: they do not say how far other losses or settings differ.{failed_in_variance(of)}"
    )
    return ReportTable(name, f"Sources of variance{on_place(of.place)}", data, shown, (note,))


def scores_by_ratio(findings: Findings) -> list[ReportTable]:
    """For each data set and encoder of a study over training sets of several imbalance ratios."""
    return [_ratio_table(name, of) for name, of in named("scores_by_ratio", by_ratio(findings))]


def _ratio_table(name: str, of: ByRatio) -> ReportTable:
    rows: list[dict[str, Any]] = []
    shown: list[dict[str, str]] = []
    marks: dict[tuple[int, str], Mark] = {}
    headings = {ratio: f"1:{ratio:g}" for ratio in of.comparisons}
    for reading in of.readings:
        score_format = reading.score_format
        what = reading.name if reading.name in (PR_AUC, of.metric) else f"{of.metric}, {reading.name}"
        for arm, scores in reading.scores.items():
            cells = dict.fromkeys(headings.values(), "")
            for ratio, score in scores.items():
                found = reading.significantly.get((arm, ratio))
                if found == "better":
                    marks[len(shown), headings[ratio]] = "bold"
                # In words: grey, in the other tables, is what is not significantly different.
                cells[headings[ratio]] = score_format.show_interval(score) + " (worse)" * (found == "worse")
                rows.append(
                    {"score": what, "arm": arm, "negatives": ratio}
                    | {"mean": score.mean, "low": score.low, "high": score.high, "seeds": score.num or None}
                    | {"significantly": found}
                )
            shown.append({"score": score_format.heading(what), "arm": arm, **cells})
    data = pd.DataFrame(rows).astype({"seeds": "Int64"})
    where = ", scored in the same way" if of.plain != of.metric else ""
    return ReportTable(
        name,
        f"Scores by imbalance ratio{on_place(of.place)}",
        data,
        pd.DataFrame(shown),
        (
            "In the columns: the negatives for each positive in the training split. Dev and test keep the share of "
            "positives of the data.",
            f"Means over seeds with 95 % intervals. Bold: significantly better than {of.baseline}{where}; (worse): "
            "significantly worse. Each ratio is tested by itself, as in its own table below."
            + (f" {PR_AUC} is not tested." if any(each.name == PR_AUC for each in of.readings) else ""),
        ),
        marks,
    )
