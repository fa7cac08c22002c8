"""Arms and losses over several data sets or experiments: a row for each arm or loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from analysis.comparison import CONSTANT, Comparison, comparisons
from analysis.data_sets import format_over_data_sets, over_data_sets
from analysis.formats import ScoreFormat
from analysis.frames import Findings, best_score, losses
from analysis.statistics.best_arm import TUNED
from analysis.tables.base import HOLM_P, ReportTable, numbers, shown_p
from dice_ray.metrics import catalogue


def across_data_sets(findings: Findings) -> list[ReportTable]:
    """For a study on several data sets."""
    return across_data_sets_of(comparisons(findings))


def across_data_sets_of(compared: Sequence[Comparison]) -> list[ReportTable]:
    """Each arm against the baseline, if it is the same and the data sets are two or more."""
    arms = over_data_sets(compared)
    if not arms:
        return []
    scale = format_over_data_sets(compared)
    metric, *others = sorted({each.metric for each in compared})
    data = pd.DataFrame(
        {
            "arm": arm.arm,
            "difference": arm.mean,
            "median": arm.median,
            "better_on": arm.better_on,
            "data_sets": len(arm.means),
        }
        | {"least": arm.least, "p": arm.p, "holm_p": arm.holm_p}
        for arm in arms
    )
    shown = pd.DataFrame(
        {
            "arm": arm.arm,
            f"{scale.heading('score' if others else metric)} minus {compared[0].baseline}": scale.show(arm.mean, "+"),
            "median": scale.show(arm.median, "+"),
            "better on": f"{arm.better_on} of {len(arm.means)}",
            HOLM_P: shown_p(arm.holm_p) if len(arm.means) >= arm.least else f"impossible below {arm.least} data sets",
        }
        for arm in arms
    )
    note = (
        "Mean and median of one difference for each data set, which is the mean over its variants, encoders and "
        "studies. Wilcoxon's signed-rank test over data sets (Demsar 2006), without differences of 0, and only if its "
        "smallest possible p, 2^(1-n) with n data sets, is at most .05 over the number of arms on n data sets or more."
    )
    mixed = [f"The data sets differ in their metric: {', '.join([metric, *others])}."] if others else []
    notes = (note, *mixed, *_without_difference(compared))
    return [ReportTable("across_data_sets", "Over data sets", data, shown, notes)]


def _without_difference(compared: Sequence[Comparison]) -> Iterator[str]:
    """The data sets, encoders and variants on which arms have no difference, as where their runs failed."""
    tested = [(number, arm) for number, each in enumerate(compared) for arm in each.arms if arm.difference]
    known = {(number, arm.name) for number, arm in tested if arm.difference and arm.difference.interval.num}
    with_threshold = {number for number, arm in tested if arm.is_tuned}
    arms_by_missing: dict[str, list[str]] = {}
    for name in dict.fromkeys(arm.name for _, arm in tested):
        missing = [
            each.place
            for number, each in enumerate(compared)
            if (number, name) not in known and (number in with_threshold or not name.endswith(TUNED))
        ]
        if missing:
            arms_by_missing.setdefault("; ".join(missing), []).append(name)
    for missing_on, arms in arms_by_missing.items():
        yield f"Missing: no difference to {compared[0].baseline} on {missing_on} for {', '.join(arms)}."


def arms_side_by_side(studies: Mapping[str, Sequence[Comparison]]) -> list[ReportTable]:
    """Each arm over several studies: its score, and its difference to the baseline of the same study."""
    columns: dict[str, Comparison] = {}
    for name, compared in studies.items():
        columns |= {f"{name}, {each.place}" if len(compared) > 1 else name: each for each in compared}
    if len(columns) < 2:
        return []
    names = dict.fromkeys(arm.name for comparison in columns.values() for arm in comparison.arms)
    rows = [_arm_row(name, columns) for name in sorted(names, key=lambda name: name == CONSTANT)]
    data, shown = (pd.DataFrame(part) for part in zip(*rows, strict=True))
    data = data.astype(dict.fromkeys((f"{study}: seeds" for study in columns), "Int64"))
    notes = (
        "Each study is evaluated separately: means over its seeds with 95 % intervals; differences to its own baseline "
        "are paired by seed, with intervals Holm-corrected over its own rows. Nothing is tested between studies, whose "
        "data, encoders or settings may differ.",
    )
    return [ReportTable("arms_side_by_side", "The arms, side by side", data, shown, notes)]


def _arm_row(name: str, columns: Mapping[str, Comparison]) -> tuple[dict[str, Any], dict[str, str]]:
    """An arm in every study: its numbers, and the cells that show them."""
    data: dict[str, Any] = {"arm": name}
    cells = {"arm": name}
    for study, comparison in columns.items():
        arm = next((arm for arm in comparison.arms if arm.name == name), None)
        difference = arm.difference.interval if arm and arm.difference else None
        data |= {
            f"{study}: mean": arm and arm.score.mean,
            f"{study}: seeds": arm.score.num or None if arm else None,
            **numbers(f"{study}: difference", difference),
        }
        of = comparison.score_format
        cells |= {
            f"{study}: {of.heading(comparison.metric)}": of.show_interval(arm.score) if arm else "",
            f"{study}: seeds": str(arm.score.num or "") if arm else "",
            f"{study}: minus {comparison.baseline}": of.show_interval(difference, "+") if difference else "",
        }
    return data, cells


def losses_side_by_side(experiments: Mapping[str, Findings]) -> list[ReportTable]:
    """The best score of each loss in several sweeps, with the number of its trials."""
    rows: dict[str, dict[str, Any]] = {}
    metrics: dict[str, str] = {}
    for name, findings in experiments.items():
        trials = findings.trials
        if trials.empty:
            continue
        metrics[name] = metric = findings.metric
        for loss, group in trials.groupby(losses(trials)):
            row = rows.setdefault(str(loss), {"loss": str(loss)})
            row |= {f"{name}: best {metric}": best_score(group, metric), f"{name}: trials": len(group)}
    if len(metrics) < 2:
        return []
    best = [f"{name}: best {metric}" for name, metric in metrics.items()]
    counts = [f"{name}: trials" for name in metrics]
    columns = ["loss", *(heading for pair in zip(best, counts, strict=True) for heading in pair)]
    data = pd.DataFrame(list(rows.values()), columns=columns).astype(dict.fromkeys(counts, "Int64"))
    ascending = catalogue.metric(next(iter(metrics.values()))).is_minimised
    data = data.sort_values(best[0], ascending=ascending, kind="stable", ignore_index=True)
    shown = data.astype("str").fillna("")
    for heading, metric in zip(best, metrics.values(), strict=True):
        of = ScoreFormat.of(metric, data[heading])
        shown[heading] = [of.show(value) for value in data[heading]]
        shown = shown.rename(columns={heading: of.heading(heading)})
    note = "Each search selected by these same dev scores, so they are optimistic, the more so the more trials."
    return [ReportTable("losses_side_by_side", "Best score of each loss, side by side", data, shown, (note,))]
