"""The table of a study over imbalance ratios: the scores of each arm by ratio, plain, tuned and as PR-AUC."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd

from analysis.formats import named, on_place
from analysis.frames import Findings
from analysis.ratios import AT_HALF, PR_AUC, ByRatio, by_ratio
from analysis.tables.base import Mark, ReportTable

WORSE: Final = " (worse)"
"""In words, because bold marks what is better, and grey what is not significantly different, in the other tables."""


def scores_by_ratio(findings: Findings) -> list[ReportTable]:
    """For each data set and encoder of a study over training sets of several imbalance ratios."""
    return [_table(name, of) for name, of in named("scores_by_ratio", by_ratio(findings))]


def _table(name: str, of: ByRatio) -> ReportTable:
    numbers: list[dict[str, Any]] = []
    shown: list[dict[str, str]] = []
    marks: dict[tuple[int, str], Mark] = {}
    for reading in of.readings:
        score_format = reading.score_format
        what = reading.name if reading.name in (PR_AUC, of.metric) else f"{of.metric}, {reading.name}"
        for arm, scores in reading.scores.items():
            found = {ratio: reading.significantly.get((arm, ratio)) for ratio in scores}
            marks |= {(len(shown), heading(ratio)): "bold" for ratio in scores if found[ratio] == "better"}
            numbers += [
                {"score": what, "arm": arm, "negatives": ratio}
                | {"mean": score.mean, "low": score.low, "high": score.high, "seeds": score.num or None}
                | {"significantly": found[ratio]}
                for ratio, score in scores.items()
            ]
            known = {
                ratio: score_format.show_interval(score) + WORSE * (found[ratio] == "worse")
                for ratio, score in scores.items()
            }
            by_heading = {heading(ratio): known.get(ratio, "") for ratio in of.comparisons}
            shown.append({"score": score_format.heading(what), "arm": arm, **by_heading})
    data = pd.DataFrame(numbers).astype({"seeds": "Int64"})
    where = f" {AT_HALF}, or at its tuned threshold for scores at a tuned threshold" if of.plain == AT_HALF else ""
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


def heading(ratio: float) -> str:
    """The heading of a ratio, such as `1:30`."""
    return f"1:{ratio:g}"
