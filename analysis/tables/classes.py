"""The table of classes: support and the F1 of each arm, the rarest class first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pandas as pd

from analysis.comparison import CONSTANT, Comparison, comparisons
from analysis.formats import PERCENT, named, on_place
from analysis.frames import Findings
from analysis.statistics.intervals import Interval, t_interval
from analysis.tables.base import Mark, ReportTable
from dice_ray.errors import counted

NUM_ARMS: Final = 5
"""Arms shown beside the baseline; the CSV file holds all."""


def by_class(findings: Findings) -> list[ReportTable]:
    """The F1 of each class by arm, in a table for each data set, encoder and variant."""
    compared = [each for each in comparisons(findings) if any(id_ in findings.classes for id_ in each.cells["id"])]
    return [_table(name, each, findings.classes, findings.items) for name, each in named("classes", compared)]


def _table(
    name: str, compared: Comparison, classes: Mapping[str, pd.DataFrame], items: Mapping[str, pd.DataFrame]
) -> ReportTable:
    scored = compared.cells[compared.cells["id"].isin(list(classes)) & (compared.cells["state"] != "failed")]
    of_cells = [(str(arm), classes[id_]) for arm, id_ in zip(scored["arm"], scored["id"], strict=True)]
    supports = pd.concat([of_class["support"] for _, of_class in of_cells]).groupby(level=0)
    # The mean over cells, because seeds may have their own test splits.
    support = supports.mean().round().astype(int).sort_values(kind="stable")
    f1: dict[str, dict[str, list[float]]] = {}
    for arm, of_class in of_cells:
        below = 2 * of_class["tp"] + of_class["fp"] + of_class["fn"]
        for label, value in (2 * of_class["tp"] / below).where(below > 0, 0.0).items():  # 0/0, an absent class, is 0
            f1.setdefault(arm, {}).setdefault(str(label), []).append(float(value))
    ratio = compared.test_per_train
    intervals = {arm: {label: t_interval(values, ratio) for label, values in of.items()} for arm, of in f1.items()}
    num_items = single_label([of for _, of in of_cells], [items[id_] for id_ in scored["id"] if id_ in items])
    chosen = [arm.name for arm in compared.arms if arm.name in intervals]
    rows = [
        {"class": label, "support": int(support[label]), "arm": arm}
        | {"f1": of.mean, "low": of.low, "high": of.high, "seeds": of.num}
        for label in support.index
        for arm in chosen
        if (of := intervals[arm].get(str(label)))
    ]
    shown, marks = _shown(support, intervals, chosen[: 1 + NUM_ARMS], num_items)
    num = scored.groupby("arm").size()
    seeds = counted(num.min(), "seed") if num.nunique() == 1 else f"{num.min()} to {num.max()} seeds"
    notes = [
        f"Mean F1 of each class over seeds{compared.at_threshold}, with 95 % intervals; rare classes first. "
        "Nothing is corrected for the number of classes. Bold: the best mean of a class among these arms.",
        f"{seeds} each.",
    ]
    if num_items:
        notes.append("Constant predictor: the F1 of a class if that class is predicted for every item.")
    if len(chosen) > 1 + NUM_ARMS:
        notes.append(f"The baseline and the {NUM_ARMS} best arms of {len(chosen)}; {name}.csv has all.")
    return ReportTable(
        name, f"F1 (%) by class{on_place(compared.place)}", pd.DataFrame(rows), shown, tuple(notes), marks
    )


def _shown(
    support: pd.Series[int], intervals: Mapping[str, Mapping[str, Interval]], arms: Sequence[str], num_items: int
) -> tuple[pd.DataFrame, dict[tuple[int, str], Mark]]:
    rows: list[dict[str, Any]] = []
    marks: dict[tuple[int, str], Mark] = {}
    for number, (label, count) in enumerate(support.items()):
        of_arms = {arm: intervals[arm].get(str(label), Interval(math.nan, math.nan, math.nan, 0)) for arm in arms}
        rows.append(
            {"class": str(label), "support": f"{count:,}"}
            | {_heading(arm): PERCENT.show_interval(of) for arm, of in of_arms.items()}
            # Predicted for all items, a class has tp = count, fp = num_items - count and fn = 0.
            | ({CONSTANT: PERCENT.show(2 * count / (count + num_items))} if num_items else {})
        )
        known = {arm: of.mean for arm, of in of_arms.items() if not math.isnan(of.mean)}
        if known and max(known.values()) > 0:
            marks[number, _heading(max(known, key=lambda arm: known[arm]))] = "bold"
    return pd.DataFrame(rows), marks


def _heading(arm: str) -> str:
    """The heading of an arm's column, which must not be that of another column."""
    return f"arm {arm}" if arm in ("class", "support") else arm


def single_label(of_cells: Sequence[pd.DataFrame], items: Sequence[pd.DataFrame]) -> int:
    """The number of items if each has exactly one of these classes, as a constant predictor needs; else 0."""
    # With one label for each item, every false positive of a class is the false negative of another one.
    num_items = len(items[0]) if items else 0
    is_single = all(of["support"].sum() == num_items and of["fp"].sum() == of["fn"].sum() for of in of_cells)
    return num_items if is_single else 0
