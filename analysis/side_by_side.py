"""Experiments side by side: the same arm or loss in a row, each experiment in columns of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from analysis.comparison import CONSTANT, Arm, Comparison, comparisons
from analysis.found import Found
from analysis.layout import Scale, Table
from analysis.scores import losses, said_by_parent, scores


def arms_side_by_side(founds: Mapping[str, Found]) -> list[Table]:
    """Each arm over several studies: its score, and its difference to the baseline of the same study."""
    columns = {
        f"{name}, {made.place}" if len(comparisons(found)) > 1 else name: made
        for name, found in founds.items()
        for made in comparisons(found)
    }
    if len(columns) < 2:
        return []
    names = dict.fromkeys(arm.name for made in columns.values() for arm in made.arms)
    in_order = sorted(names, key=lambda name: name == CONSTANT)
    rows = [_numbers(name, columns) for name in in_order]
    shown = pd.DataFrame([_cells(name, columns) for name in in_order])
    notes = (
        "Each study by itself: means over its seeds with 95 % t intervals, differences paired by seed with its own "
        "baseline. Nothing is tested between studies, whose data, encoders or settings may differ.",
    )
    return [Table("arms_side_by_side", "The arms, side by side", pd.DataFrame(rows), shown, notes)]


def _numbers(name: str, columns: Mapping[str, Comparison]) -> dict[str, Any]:
    row: dict[str, Any] = {"arm": name}
    for where, made in columns.items():
        arm = _arm(made, name)
        difference = arm.difference.interval if arm and arm.difference else None
        row |= {
            f"{where}: mean": arm and arm.score.mean,
            f"{where}: seeds": arm and arm.score.num,
            f"{where}: difference": difference and difference.mean,
            f"{where}: difference_low": difference and difference.low,
            f"{where}: difference_high": difference and difference.high,
        }
    return row


def _cells(name: str, columns: Mapping[str, Comparison]) -> dict[str, str]:
    row = {"arm": name}
    for where, made in columns.items():
        arm, scale = _arm(made, name), Scale.of(pd.Series([arm.score.mean for arm in made.arms]))
        difference = arm.difference.interval if arm and arm.difference else None
        row |= {
            f"{where}: {scale.heading(made.metric)}": scale.show_interval(arm.score) if arm else "",
            f"{where}: seeds": str(arm.score.num or "") if arm else "",
            f"{where}: minus {made.baseline}": scale.show_interval(difference, "+") if difference else "",
        }
    return row


def _arm(made: Comparison, name: str) -> Arm | None:
    return next((arm for arm in made.arms if arm.name == name), None)


def losses_side_by_side(founds: Mapping[str, Found]) -> list[Table]:
    """The best score of each loss in several sweeps, with the number of its trials."""
    reached: dict[str, dict[str, Any]] = {}
    headings: dict[str, str] = {}
    for name, found in founds.items():
        trials = found.frame[found.frame["kind"] == "trial"]
        if trials.empty:
            continue
        headings[name] = metric = said_by_parent(found.frame, "metric")
        for loss, group in trials.groupby(losses(trials)):
            row = reached.setdefault(str(loss), {"loss": str(loss)})
            row |= {f"{name}: best {metric}": scores(group, metric).max(), f"{name}: trials": len(group)}
    if len(headings) < 2:
        return []
    best = [f"{name}: best {metric}" for name, metric in headings.items()]
    counts = [f"{name}: trials" for name in headings]
    columns = ["loss", *(each for pair in zip(best, counts, strict=True) for each in pair)]
    data = pd.DataFrame(list(reached.values()), columns=columns).astype(dict.fromkeys(counts, "Int64"))
    data = data.sort_values(best[0], ascending=False, kind="stable", ignore_index=True)
    shown = data.astype("str").fillna("")
    for each in best:
        scale = Scale.of(data[each])
        shown[each] = [scale.show(value) for value in data[each]]
        shown = shown.rename(columns={each: scale.heading(each)})
    note = "Each search chose by these very scores, on dev: they are optimistic, the more so the more trials."
    return [Table("losses_side_by_side", "What each loss reached, side by side", data, shown, (note,))]
