"""The report on the imbalance of data sets: the paper's Table 1 for any of them, their splits, and their labels."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Final

import pandas as pd

from analysis.figures.paper import imbalance_bars
from analysis.paper.printed import table_1
from analysis.report import Report
from analysis.tables.base import ReportTable

if TYPE_CHECKING:
    from dice_ray.tasks.inspection import Inspection

_NUM_LABELS: Final = 20
"""Labels shown of each data set; the CSV file holds all."""


def imbalance_report(inspections: Sequence[Inspection]) -> Report:
    """Tables and a bar chart of inspected data sets."""
    title = ", ".join(data.name for data in inspections)
    return Report(
        title, (_imbalance(inspections), _splits(inspections), _labels(inspections)), (imbalance_bars(inspections),)
    )


def _imbalance(inspections: Sequence[Inspection]) -> ReportTable:
    """Table 1 of the paper: the counts of each training split, with the paper's counts beside them."""
    rows: list[dict[str, object]] = []
    published_by_name = table_1()
    notes = list(dict.fromkeys(f"{data.task} counts: {data.convention}" for data in inspections))
    for data in inspections:
        train = data.splits["train"]
        counts = {"# neg": train.negatives, "# pos": train.positives, "ratio": train.ratio}
        rows.append({"data": data.name, "task": data.task, **counts})
        if published := published_by_name.get(data.name):
            rows[-1]["paper's # neg"] = published["negatives"]
            rows[-1]["paper's # pos"] = published["positives"]
            rows[-1]["paper's ratio"] = float(published["ratio"])
            if published["note"]:
                notes.append(f"{published['title']} as published: {published['note']}.")
    frame = pd.DataFrame(rows)
    if "paper's ratio" in frame:
        notes.append("The paper counts its own training splits; files with another part of the data have other counts.")
    title = "Negatives and positives of the training split"
    return ReportTable("imbalance", title, frame, frame.map(_shown), tuple(notes))


def _splits(inspections: Sequence[Inspection]) -> ReportTable:
    """Size, imbalance and lengths of each split; dropped rows and duplicates are in the notes."""
    rows = [
        {
            "data": data.name,
            "split": split,
            "records": facts.num_records,
            "# neg": facts.negatives,
            "# pos": facts.positives,
            "ratio": facts.ratio,
            "unit": data.unit,
            "total": facts.lengths.total,
            "median": facts.lengths.median,
            "95 %": facts.lengths.percentile_95,
            "longest": facts.lengths.longest,
            "duplicates": facts.duplicates,
        }
        for data in inspections
        for split, facts in data.splits.items()
    ]
    frame = pd.DataFrame(rows)
    notes = [f"{data.name}: {split} is {how}" for data in inspections for split, how in data.load.drawn.items()]
    notes += [
        f"{data.name}: {line.strip()}"
        for data in inspections
        for line in str(data.load).splitlines()
        if not line.startswith("data:")
    ]
    notes.append("Lengths are per record; a duplicate has the content of an earlier record of its split.")
    return ReportTable("splits", "Splits", frame, frame.map(_shown), tuple(notes))


def _labels(inspections: Sequence[Inspection]) -> ReportTable:
    """The count of each label in each split and its share of train; the most frequent label of train first."""
    rows = [
        {"data": data.name, "label": label}
        | {split: facts.labels.get(label, 0) for split, facts in data.splits.items()}
        | {"share of train": data.splits["train"].labels.get(label, 0) / sum(data.splits["train"].labels.values())}
        for data in inspections
        for label in dict.fromkeys(label for facts in data.splits.values() for label in facts.labels)
    ]
    names = [split for split in ("train", "dev", "test") if any(split in data.splits for data in inspections)]
    frame = pd.DataFrame(rows, columns=["data", "label", *names, "share of train"])
    frame = frame.astype(dict.fromkeys(names, "Int64"))
    first = frame.groupby("data", sort=False).head(_NUM_LABELS)
    shown = first.drop(columns="share of train").map(_shown)
    shown["train (%)"] = [f"{100 * share:.2f}" for share in first["share of train"]]
    left_out = len(frame) - len(first)
    notes = (f"The first {_NUM_LABELS} labels of each; labels.csv has {left_out} more.",) if left_out else ()
    return ReportTable("labels", "Labels", frame, shown, notes)


def _shown(value: object) -> str:
    """A cell as text: an integer with commas, a ratio with two decimals, an empty string for a missing value."""
    if value is None or value is pd.NA or value != value:
        return ""
    if isinstance(value, float):
        return f"{value:,.2f}".removesuffix(".00")
    return f"{value:,}" if isinstance(value, Integral) else str(value)
