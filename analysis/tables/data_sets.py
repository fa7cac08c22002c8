"""The table of arms over data sets: of one study on several, or of several studies with the same baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from analysis.comparison import Comparison, comparisons
from analysis.data_sets import format_over_data_sets, over_data_sets
from analysis.frames import Findings
from analysis.statistics.best_arm import TUNED
from analysis.tables.base import HOLM_P, ReportTable, shown_p


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
    with_threshold = {number for number, arm in tested if arm.at_tuned_threshold}
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
