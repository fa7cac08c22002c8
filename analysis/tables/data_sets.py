"""The arms over data sets: those of a study on several data sets, or of several studies with the same baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis.best_arm import TUNED
from analysis.columns import column
from analysis.comparison import Comparison, comparisons
from analysis.findings import Findings
from analysis.new_data import over_data_sets
from analysis.statistics import holm
from analysis.tables.base import HOLM_P, ReportTable, ScoreFormat, shown_p
from analysis.verdict import score_format


def across_data_sets(findings: Findings) -> list[ReportTable]:
    """For a study on several data sets."""
    return across_data_sets_of(comparisons(findings))


def across_data_sets_of(compared: Sequence[Comparison]) -> list[ReportTable]:
    """Each arm against the baseline, with one difference for each data set; only with two data sets or more."""
    # Differences to other baselines are of other contrasts.
    if len({each.baseline for each in compared}) != 1:
        return []
    by_arm: dict[str, dict[str, list[float]]] = {}
    for each in compared:
        data_set = str(column(each.cells, "tags.data").iloc[0])
        for arm in each.arms:
            if arm.difference and arm.difference.interval.num:
                by_arm.setdefault(arm.name, {}).setdefault(data_set, []).append(arm.difference.interval.mean)
    if len({data_set for by_data in by_arm.values() for data_set in by_data}) < 2:
        return []
    rows: list[dict[str, Any]] = []
    for name, by_data in by_arm.items():
        means = [float(np.mean(of)) for of in by_data.values()]
        # Arms on fewer data sets, as at a tuned threshold, are not tested unless this one is, and must not make its
        # test harder.
        num_arms = sum(len(other) >= len(by_data) for other in by_arm.values())
        across, better = over_data_sets(means, num_arms), sum(mean > 0 for mean in means)
        rows.append(
            {"arm": name, "difference": float(np.mean(means)), "better_on": better, "data_sets": across.num}
            | {"least": across.least, "p": across.p}
        )
    for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["holm_p"] = p
    return [
        ReportTable("across_data_sets", "Over data sets", pd.DataFrame(rows), _shown(rows, compared), _notes(compared))
    ]


def _shown(rows: Sequence[dict[str, Any]], compared: Sequence[Comparison]) -> pd.DataFrame:
    scale = ScoreFormat(percent=all(score_format(each).percent for each in compared))
    metric, *others = {each.metric for each in compared}
    heading = f"{scale.heading('score' if others else metric)} minus {compared[0].baseline}"
    return pd.DataFrame(
        {
            "arm": row["arm"],
            heading: scale.show(row["difference"], "+"),
            "better on": f"{row['better_on']} of {row['data_sets']}",
            HOLM_P: shown_p(row["holm_p"])
            if row["data_sets"] >= row["least"]
            else f"impossible below {row['least']} data sets",
        }
        for row in rows
    )


def _notes(compared: Sequence[Comparison]) -> tuple[str, ...]:
    note = (
        "One mean difference for each data set (over its variants, if it has several). Wilcoxon's signed-rank test "
        "over data sets (Demsar 2006), only if its smallest possible p, 2^(1-n) with n data sets, is at most .05 over "
        "the number of arms on n data sets or more."
    )
    metrics = sorted({each.metric for each in compared})
    mixed = [f"The data sets differ in their metric: {', '.join(metrics)}."] if len(metrics) > 1 else []
    return (note, *mixed, *_without_difference(compared))


def _without_difference(compared: Sequence[Comparison]) -> Iterator[str]:
    """The data sets, encoders and variants on which arms have no difference, as where their runs failed."""
    tested = [(each.place, arm) for each in compared for arm in each.arms if arm.difference]
    known = {(place, arm.name) for place, arm in tested if arm.difference and arm.difference.interval.num}
    with_threshold = {place for place, arm in tested if arm.name.endswith(TUNED)}
    arms_by_missing: dict[str, list[str]] = {}
    for name in dict.fromkeys(arm.name for _, arm in tested):
        places = [each.place for each in compared if not name.endswith(TUNED) or each.place in with_threshold]
        if missing := [place for place in places if (place, name) not in known]:
            arms_by_missing.setdefault("; ".join(missing), []).append(name)
    for missing_on, arms in arms_by_missing.items():
        yield f"Missing: no difference to {compared[0].baseline} on {missing_on} for {', '.join(arms)}."
