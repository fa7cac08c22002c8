"""Tables of test items: the F1 of each class, its confusion counts, and the items that are wrong most often."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from analysis.comparison import CONSTANT, Comparison, comparisons
from analysis.formats import PERCENT, named, on_place
from analysis.frames import Findings, collapsed
from analysis.statistics.intervals import Interval, t_interval
from analysis.tables.base import Mark, ReportTable
from dice_ray.errors import counted
from dice_ray.metrics.catalogue import gain
from dice_ray.tracking import schema

_KINDS: Final = {"tp": "true positives", "fp": "false positives", "fn": "false negatives", "tn": "true negatives"}
_NUM_ARMS: Final = 5
"""Arms shown beside the baseline; the CSV file holds all."""


def by_class(findings: Findings) -> list[ReportTable]:
    """The F1 of each class by arm, in a table for each data set, encoder and variant."""
    compared = [each for each in comparisons(findings) if _scored(each, findings.classes)]
    return [_classes(name, each, findings) for name, each in named("classes", compared)]


def _classes(name: str, compared: Comparison, findings: Findings) -> ReportTable:
    scored = _scored(compared, findings.classes)
    supports = pd.concat([findings.classes[id_]["support"] for _, id_ in scored]).groupby(level=0)
    # The mean over cells, because seeds may have their own test splits.
    support = supports.mean().round().astype(int).sort_values(kind="stable")
    f1: dict[str, dict[str, list[float]]] = {}
    for arm, id_ in scored:
        of_class = findings.classes[id_]
        below = 2 * of_class["tp"] + of_class["fp"] + of_class["fn"]
        for label, value in (2 * of_class["tp"] / below).where(below > 0, 0.0).items():  # 0/0, an absent class, is 0
            f1.setdefault(arm, {}).setdefault(str(label), []).append(float(value))
    ratio = compared.test_per_train
    intervals = {arm: {label: t_interval(values, ratio) for label, values in of.items()} for arm, of in f1.items()}
    num_items = _num_of_one_label(scored, findings)
    chosen = [arm.name for arm in compared.arms if arm.name in intervals]
    rows = [
        {"class": label, "support": int(support[label]), "arm": arm}
        | {"f1": of.mean, "low": of.low, "high": of.high, "seeds": of.num}
        for label in support.index
        for arm in chosen
        if (of := intervals[arm].get(str(label)))
    ]
    shown, marks = _shown_classes(support, intervals, chosen[: 1 + _NUM_ARMS], num_items)
    bold = " Bold: the best mean of a class among these arms."
    if compared.is_tuned:  # by another decision than the verdict's none is the best
        marks, bold = {}, ""
    seeds = Counter(arm for arm, _ in scored).values()
    least, most = min(seeds), max(seeds)
    notes = [
        f"Mean F1 of each class over seeds{compared.decision.untuned}, with 95 % intervals; rare classes first. "
        f"Nothing is corrected for the number of classes.{bold}",
        f"{counted(least, 'seed') if least == most else f'{least} to {most} seeds'} each.",
    ]
    if num_items:
        notes.append("Constant predictor: the F1 of a class if that class is predicted for every item.")
    if len(chosen) > 1 + _NUM_ARMS:
        notes.append(f"The baseline and the {_NUM_ARMS} best arms of {len(chosen)}; the CSV file has all.")
    title = f"F1 (%) by class{on_place(compared.place)}"
    return ReportTable(name, title, pd.DataFrame(rows), shown, tuple(notes), marks)


def _shown_classes(
    support: pd.Series[int], intervals: Mapping[str, Mapping[str, Interval]], arms: Sequence[str], num_items: int
) -> tuple[pd.DataFrame, dict[tuple[int, str], Mark]]:
    rows: list[dict[str, Any]] = []
    marks: dict[tuple[int, str], Mark] = {}
    for number, (label, count) in enumerate(support.items()):
        of_arms = {arm: intervals[arm].get(str(label), Interval(math.nan)) for arm in arms}
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


def confusion(findings: Findings) -> list[ReportTable]:
    """The mean counts of each class by arm, in a table for each data set, encoder and variant."""
    compared = [each for each in comparisons(findings) if _scored(each, findings.classes)]
    return [_confusion(name, each, findings) for name, each in named("confusion", compared)]


def _confusion(name: str, compared: Comparison, findings: Findings) -> ReportTable:
    scored = _scored(compared, findings.classes)
    num_items = _num_of_one_label(scored, findings)
    counts = pd.concat([findings.classes[id_].assign(arm=arm) for arm, id_ in scored])
    counts = counts.rename_axis("class").reset_index()
    if num_items:
        counts["tn"] = num_items - counts[["tp", "fp", "fn"]].sum(axis=1)
    kinds = [kind for kind in _KINDS if kind in counts]
    means = counts.groupby(["class", "arm"])[kinds].mean()
    classes, arms = list(findings.classes[scored[0][1]].index), _best_first(compared, {arm for arm, _ in scored})
    # The counts of one of two classes are those of the other: the last one is the positive class.
    is_binary = bool(num_items) and len(classes) == 2
    rows = [
        {"class": label, "arm": arm, **means.loc[(label, arm)].to_dict()}
        for label in (classes[-1:] if is_binary else classes)
        for arm in arms
        if (label, arm) in means.index
    ]
    data = pd.DataFrame(rows)
    best = [arm for arm in arms if arm != compared.baseline][:1]
    chosen = data if is_binary else data[data["arm"].isin([compared.baseline, *best])]
    shown = chosen.drop(columns="class") if is_binary else chosen
    shown = shown.rename(columns=_KINDS).map(lambda cell: cell if isinstance(cell, str) else f"{cell:,.1f}")
    of = f"class {classes[-1]}" if is_binary else "each class"
    notes = [f"Mean counts over seeds{compared.decision.untuned}."]
    if len(chosen) < len(data):
        notes.append("The baseline and the best other arm; the CSV file has all.")
    title = f"Confusion counts of {of} by arm{on_place(compared.place)}"
    return ReportTable(name, title, data, shown.reset_index(drop=True), tuple(notes))


def worst_items(findings: Findings) -> list[ReportTable]:
    """The test items that are wrong in most runs, in a table for each data set, encoder and variant."""
    compared = [each for each in comparisons(findings) if _living(each, findings)]
    tables = (_worst(name, each, findings) for name, each in named("worst_items", compared))
    return [table for table in tables if len(table.data)]


def _worst(name: str, compared: Comparison, findings: Findings) -> ReportTable:
    living, is_tuned = _living(compared, findings), _are_tuned(compared, findings)
    arms = _best_first(compared, {arm for arm, _ in living})
    shown_arms = dict.fromkeys([*arms[:1], *([compared.baseline] if compared.baseline in arms else [])])
    items = [findings.items[id_] for _, id_ in living]
    every = _errors(items, is_tuned=is_tuned)
    stored = [table[schema.LABEL_PROBABILITY] for table in items if schema.LABEL_PROBABILITY in table]
    every[schema.LABEL_PROBABILITY] = pd.concat(stored).groupby(level=0).mean() if stored else np.nan
    wrong = every[every["wrong"] > 0].copy()
    # The sort is stable: of equally bad items whose labels are equally improbable, the first of the file.
    wrong["share"] = wrong["wrong"] / wrong["runs"]
    order = {"share": False, "errors": False, schema.LABEL_PROBABILITY: True}
    wrong = wrong.sort_values(list(order), ascending=list(order.values()), kind="stable").head(10)
    data = wrong[["wrong", "missed", "false_alarm", "runs"]].astype(int).rename_axis("item").reset_index()
    shown = pd.DataFrame({"item": data["item"], "wrong in": _of(data["wrong"], data["runs"])})
    for arm in shown_arms:
        of_arm = _errors([findings.items[id_] for other, id_ in living if other == arm], is_tuned=is_tuned)
        of_arm = of_arm.reindex(data["item"])
        shown[f"wrong in {arm}"] = _of(of_arm["wrong"], of_arm["runs"])
    # Where each item has one label, a wrong one is both missed and a false alarm.
    if not data["wrong"].equals(data["missed"]) or not data["wrong"].equals(data["false_alarm"]):
        shown["missed in"] = _of(data["missed"], data["runs"])
        shown["false alarm in"] = _of(data["false_alarm"], data["runs"])
    always = int((every["wrong"] == every["runs"]).sum())
    where = compared.decision.tuned if is_tuned else f"{compared.decision.untuned}, without those that collapsed"
    notes = [
        f"Over the runs of all arms{where}. "
        + ("Missed: with a false negative; false alarm: with a false positive. " if "missed in" in shown else "")
        + "An item is named by the id of its record in the test split.",
        f"Wrong in every run: {always:,} of {counted(len(every), 'item')}.",
    ]
    probability = wrong[schema.LABEL_PROBABILITY].to_numpy()
    if not np.isnan(probability).all():
        data[schema.LABEL_PROBABILITY] = probability
        shown["probability"] = ["" if np.isnan(of) else f"{of:.3f}" for of in probability]
        notes.append(
            "Probability: the mean that the runs give to the item's own label. Of items that are wrong equally often, "
            "the most confident errors come first; a probability near 0 in every run is often a wrong label."
        )
    with_texts = [findings.item_texts[id_] for id_ in compared.cells["id"] if id_ in findings.item_texts]
    if texts := {str(item): text for table in with_texts for item, text in table["text"].items()}:
        data["text"] = data["item"].map(texts)
        shown["text"] = [text if len(text) <= 200 else f"{text[:199]}…" for text in data["text"].fillna("")]
    title = f"The test items that are wrong most often{on_place(compared.place)}"
    return ReportTable(name, title, data, shown, tuple(notes))


def _errors(tables: Sequence[pd.DataFrame], *, is_tuned: bool) -> pd.DataFrame:
    """How many runs scored each item, and in how many it is wrong, missed or a false alarm; the errors in all."""
    total = pd.DataFrame()
    for table in tables:
        fp, fn = (table[f"tuned_{kind}" if is_tuned else kind] for kind in ("fp", "fn"))
        counts = {"runs": 1, "wrong": (fp + fn) > 0, "missed": fn > 0, "false_alarm": fp > 0, "errors": fp + fn}
        one = pd.DataFrame(counts, index=table.index).astype(int)
        # Seeds that drew their own test splits have other items.
        total = one if total.empty else total.add(one, fill_value=0)
    return total


def _of(counts: pd.Series[Any], runs: pd.Series[Any]) -> list[str]:
    return ["" if pd.isna(all_) else f"{int(count)} of {int(all_)}" for count, all_ in zip(counts, runs, strict=True)]


def _scored(compared: Comparison, known: Mapping[str, object]) -> list[tuple[str, str]]:
    """Arm and id of the cells with a score that have stored this."""
    cells = compared.cells[compared.cells["state"] != "failed"]
    return [(str(arm), id_) for arm, id_ in zip(cells["arm"], cells["id"], strict=True) if id_ in known]


def _living(compared: Comparison, findings: Findings) -> list[tuple[str, str]]:
    """Arm and id of the scored cells that predict more than one class; all where their tuned counts are shown."""
    cells = compared.cells
    dead = set() if _are_tuned(compared, findings) else set(cells["id"][collapsed(cells, compared.metric)])
    return [(arm, id_) for arm, id_ in _scored(compared, findings.items) if id_ not in dead]


def _are_tuned(compared: Comparison, findings: Findings) -> bool:
    """Whether the items are shown with the tuned decision: it is compared, and all runs have their counts with it."""
    counts = [findings.items[id_] for _, id_ in _scored(compared, findings.items)]
    return compared.is_tuned and all("tuned_fp" in of_run for of_run in counts)


def _best_first(compared: Comparison, names: set[str]) -> list[str]:
    arms = [arm for arm in compared.primary if arm.arm in names]
    return [arm.arm for arm in sorted(arms, key=lambda arm: -gain(compared.metric, arm.score.mean))]


def _num_of_one_label(scored: Sequence[tuple[str, str]], findings: Findings) -> int:
    """The number of items if each has exactly one of the classes, as a constant predictor needs; else 0."""
    items = [findings.items[id_] for _, id_ in scored if id_ in findings.items]
    num_items = len(items[0]) if items else 0
    # With one label for each item, every false positive of a class is the false negative of another one.
    tables = [findings.classes[id_] for _, id_ in scored]
    is_single = all(of["support"].sum() == num_items and of["fp"].sum() == of["fn"].sum() for of in tables)
    return num_items if is_single else 0
