"""The paper's tables with our results beside the printed ones, for studies on the paper's data sets.

A report has Table 2 and Figure 1 for every study on a data set of the paper, and each of the Tables 3 to 10 for a study
on its data and task. The preset says which data set of the paper its data are (`tracking.published`): a folder or file
of that name may hold a part of them only, whose scores do not belong beside the printed ones. Neither do those of a
study whose training file has fewer than nine tenths of the published records.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, get_args

import pandas as pd

from analysis.comparison import CONSTANT, Arm, Comparison, compare, comparisons
from analysis.formats import PERCENT
from analysis.frames import Findings, column, losses, scores
from analysis.paper.printed import Block, PrintedRow, PrintedTable
from analysis.paper.tables_3_to_10 import RECORDS, TABLE_8, TABLE_10, TABLES
from analysis.statistics.intervals import Difference, Interval
from analysis.tables.base import Mark, ReportTable
from dice_ray.losses import LossConfig
from dice_ray.losses.base import LossBranch

BASELINE: Final = "cross_entropy"
"""The baseline of every table of the paper."""
SYMBOLS: Final = {
    "cross_entropy": "CE",
    "weighted_cross_entropy": "Weighted CE",
    "focal": "FL",
    "dice": "DL",
    "tversky": "TL",
    "self_adjusting_dice": "DSC",
}
"""The names in the paper's Table 2, by our names of the losses."""
DATA_SETS: Final = frozenset(RECORDS)
"""The data sets of the Tables 3 to 10, as presets name them."""


LEAST_WHOLE: Final = 0.9
"""The least share of the published training records that counts as the whole data set: releases differ a little."""


def on_paper_data(findings: Findings) -> tuple[Comparison, ...]:
    """The comparisons of a study that were made on a data set of the paper, with all of its training records."""
    named = [each for each in comparisons(findings) if _data(each) in DATA_SETS]
    return tuple(each for each in named if not _missing_records(each, findings))


def why_not_on_paper_data(findings: Findings) -> str:
    """A sentence on why the paper's tables are left out of a study on data that seem to be the paper's; else empty."""
    if on_paper_data(findings):
        return ""
    parts = dict.fromkeys(part for each in comparisons(findings) if (part := _missing_records(each, findings)))
    if parts:
        return f"The paper's tables are left out: {', '.join(parts)}."
    names = [_only(compared, "tags.data") for compared in comparisons(findings)]
    alike = dict.fromkeys(name for name in names if any(data in name for data in DATA_SETS))
    if not alike:
        return ""
    return (
        f"The paper's tables are left out: no preset says that {', '.join(alike)} is the published data set, whole and "
        "in its published split (tracking.published)."
    )


def formulas(findings: Findings) -> list[ReportTable]:
    """Table 2: the formulas of the losses in a study."""
    if not on_paper_data(findings):
        return []
    ran = set(losses(findings.frame[findings.frame["kind"] == "cell"]).dropna())
    union, *_ = get_args(LossConfig)
    registered: list[type[LossBranch]] = [loss for loss in get_args(union) if loss.name in ran]
    if not registered:
        return []
    data = pd.DataFrame(
        {
            "loss": [loss.name for loss in registered],
            "in the paper": [SYMBOLS.get(loss.name, "") for loss in registered],
            "formula (one class of one item)": [loss.formula for loss in registered],
            "from": [loss.source for loss in registered],
        }
    )
    note = "p is the probability of the class, y whether it is the item's. Equations are the paper's."
    title = "Paper, Table 2: the losses of this study and their formulas"
    return [ReportTable("paper_table_2", title, data, data, (note,))]


def paper_tables(findings: Findings) -> list[ReportTable]:
    """Tables 3 to 10: the printed scores in the printed layout, with ours in the rows of the same loss."""
    compared = on_paper_data(findings)
    return [table for printed in TABLES if (table := _table(printed, compared))]


@dataclass(frozen=True)
class _Ours:
    """Our results for a block of a printed table.

    Attributes:
        arms: Each arm compared with cross-entropy by the last heading, by name.
        others: The mean of each other heading, by arm and heading.
        predictor: The constant predictor's score of the last heading.
    """

    comparison: Comparison
    arms: Mapping[str, Arm]
    others: Mapping[str, Mapping[str, float]]
    predictor: Interval | None

    def cells(self, name: str, block: Block, prefix: str) -> dict[str, str]:
        arm, last = self.arms[name], list(block.metrics)[-1]
        num = {"failed": arm.failed, "collapsed": arm.collapsed}
        suffix = "".join(f"; {count} {what}" for what, count in num.items() if count)
        compared = self.difference(name)
        return {
            **{f"{prefix}ours {heading}": PERCENT.show(mean) for heading, mean in self.others[name].items()},
            f"{prefix}ours {last}": f"{PERCENT.show_interval(arm.score)}{suffix}",
            f"{prefix}difference": PERCENT.show_interval(compared.interval, "+") if compared else "",
            f"{prefix}seeds": str(arm.score.num),
        }

    def difference(self, name: str) -> Difference | None:
        """Of an arm to cross-entropy; None for cross-entropy itself, and without shared seeds."""
        arm = self.arms[name]
        return arm.difference if arm.by_seed else None


def _table(printed: PrintedTable, compared: Sequence[Comparison]) -> ReportTable | None:
    ours = [
        [_ours(each, block) for each in compared if _fits(printed, block, each, compared)] for block in printed.blocks
    ]
    if not any(ours):
        return None
    lines: list[dict[str, str]] = []
    marks: dict[tuple[int, str], Mark] = {}
    if printed.stacked:
        for number, (block, fits) in enumerate(zip(printed.blocks, ours, strict=True)):
            if fits:
                rows = [replace(row, cells=(row.cells[number],)) for row in printed.rows if row.cells[number]]
                lines.append({"Model": block.title})
                _add(lines, marks, rows, [(block, fits, "")])
    else:
        blocks = [(block, fits, f"{block.title} ") for block, fits in zip(printed.blocks, ours, strict=True)]
        _add(lines, marks, printed.rows, blocks)
    places = dict.fromkeys(
        f"{each.comparison.place}{each.comparison.at_threshold_of_score}" for fits in ours for each in fits
    )
    notes = (
        f"Ours: {'; '.join(places)}; means over seeds with 95 % intervals. Bold: our best.",
        f"Differences to {BASELINE} are paired by seed, with intervals Holm-corrected as in the other tables; "
        "grey, or italic: not significant.",
        "The paper gives single scores, without seeds or intervals.",
    )
    shown = pd.DataFrame(lines).fillna("")
    title = f"Paper, Table {printed.number}: {printed.caption}"
    return ReportTable(f"paper_table_{printed.number}", title, shown, shown, (*notes, *printed.footnotes()), marks)


def _add(
    lines: list[dict[str, str]],
    marks: dict[tuple[int, str], Mark],
    rows: Sequence[PrintedRow],
    blocks: Sequence[tuple[Block, Sequence[_Ours], str]],
) -> None:
    """Append the printed rows with ours in them, then rows for our other arms, then the constant predictor."""
    by_model: dict[str, dict[str, str]] = {
        row.model: {"Model": row.model}
        | {
            f"{prefix}{heading}": str(cell)
            for (block, _, prefix), cells in zip(blocks, row.cells, strict=True)
            for heading, cell in zip(block.metrics, cells, strict=False)
        }
        for row in rows
    }
    arms_of_row: dict[str, list[tuple[str, str, _Ours, str]]] = {}
    for block, fits, prefix in blocks:
        last = list(block.metrics)[-1]
        for each in fits:
            fitting, alphas = [row for row in rows if _is_row_of(row, each, fits)], _alphas(each.comparison)
            row_of_arm = {
                arm: row.model for row in fitting if (arm := row.arm or alphas.get(row.model)) and arm in each.arms
            }
            for row in fitting:
                if row.model not in row_of_arm.values():
                    by_model[row.model][f"{prefix}ours {last}"] = "missing"
            for arm in each.arms:
                model = row_of_arm.get(arm) or f"ours: {arm}" + (f", {each.comparison.place}" if len(fits) > 1 else "")
                by_model.setdefault(model, {"Model": model}).update(each.cells(arm, block, prefix))
                arms_of_row.setdefault(model, []).append((prefix, last, each, arm))
        if fits and (predictor := fits[0].predictor):
            of_predictor = by_model.setdefault(CONSTANT, {"Model": CONSTANT})
            of_predictor[f"{prefix}ours {last}"] = PERCENT.show(predictor.mean)
    for line in sorted(by_model.values(), key=lambda line: line["Model"] == CONSTANT):
        for prefix, last, each, arm in arms_of_row.get(line["Model"], []):
            marks |= _marks(len(lines), prefix, last, each, arm)
        lines.append(line)


def _marks(number: int, prefix: str, last: str, ours: _Ours, arm: str) -> dict[tuple[int, str], Mark]:
    means = {name: each.score.mean for name, each in ours.arms.items() if not math.isnan(each.score.mean)}
    marks: dict[tuple[int, str], Mark] = {}
    if means and max(means, key=lambda name: means[name]) == arm:
        marks[number, f"{prefix}ours {last}"] = "bold"
    if (difference := ours.difference(arm)) and not difference.is_significant:
        marks[number, f"{prefix}difference"] = "grey"
    return marks


def _ours(comparison: Comparison, block: Block) -> _Ours:
    *others, (_, last) = block.metrics.items()
    # The baseline of the study may be another one.
    compared = compare(comparison.cells, f"test/{last}", BASELINE).arms
    of_arm = comparison.cells["arm"]
    means = {heading: scores(comparison.cells, f"test/{of}").groupby(of_arm).mean() for heading, of in others}
    plain = (arm for arm in compared if not arm.at_tuned_threshold and arm.name != CONSTANT)
    arms = {arm.name: arm for arm in sorted(plain, key=lambda arm: arm.name)}
    by_arm = {name: {heading: float(of[name]) for heading, of in means.items()} for name in arms}
    predictor = next((arm.score for arm in compared if arm.name == CONSTANT), None)
    return _Ours(comparison, arms, by_arm, predictor)


def _is_row_of(row: PrintedRow, ours: _Ours, fits: Sequence[_Ours]) -> bool:
    """Whether a printed row has the model and formulation of our cells; with several encoders, only for the first."""
    if row.arm is None:
        return bool(_alphas(ours.comparison)) and row.model.startswith("alpha") and ours is fits[0]
    is_xlnet = "xlnet" in _only(ours.comparison, "tags.encoder").lower()
    is_mrc = _only(ours.comparison, "tags.task") == "mrc_ner"
    same = [each for each in fits if ("xlnet" in _only(each.comparison, "tags.encoder").lower()) == is_xlnet]
    base = {"XLNet": is_xlnet, "BERT-MRC": is_mrc and not is_xlnet, "BERT-Tagger": not is_mrc and not is_xlnet}
    return base.get(row.base, not is_xlnet) and (ours is same[0] or is_mrc)


def _fits(printed: PrintedTable, block: Block, comparison: Comparison, compared: Sequence[Comparison]) -> bool:
    """Whether a comparison belongs in a block; `compared` are all comparisons of the study."""
    is_pos = _only(comparison, "params.task.tagging.tags") == "plain"
    return (
        _data(comparison) == block.data
        and is_pos == (block.task == "tagging")
        and _imbalance(comparison) == block.imbalance
        and (printed.number != TABLE_8.number or any(_imbalance(each) != "none" for each in compared))
        and (printed.number == TABLE_10.number) == (len(_alphas(comparison)) > 1)
    )


def _alphas(comparison: Comparison) -> dict[str, str]:
    """The arms with the loss of Table 10 (Tversky in example scope, beta = 1 - alpha), by the name of the row."""
    arms: dict[str, str] = {}
    for name, runs in comparison.cells.groupby("arm"):
        scope, alpha, beta = (
            column(runs, f"params.loss.tversky.{path}").dropna() for path in ("scope", "alpha", "beta")
        )
        # Equation 9 is the loss of one item: in batch scope it is another loss, which Table 10 is not about.
        if len(alpha) and set(scope) == {"example"} and abs(alpha.iloc[0] + beta.iloc[0] - 1) < 1e-9:
            arms.setdefault(f"alpha = {alpha.iloc[0]:g}", str(name))
    return arms


def _data(comparison: Comparison) -> str:
    return _only(comparison, "tags.published")


def _missing_records(comparison: Comparison, findings: Findings) -> str:
    """What a part of a data set of the paper lacks; empty for a whole one, other data, and where it was not stored."""
    stored = findings.data_of(comparison.cells).get("read", {}).get("train", {}).get("rows")
    published = RECORDS.get(_data(comparison))
    if stored is None or published is None or stored >= LEAST_WHOLE * published:
        return ""
    name = _only(comparison, "tags.data")
    return f"the training file of {name} has {stored:,} of the {published:,} published records"


def _imbalance(comparison: Comparison) -> str:
    return _only(comparison, "params.data.imbalance") or "none"


def _only(comparison: Comparison, name: str) -> str:
    """The value that all cells have in a column; an empty string if they differ."""
    values = set(column(comparison.cells, name).dropna())
    return str(values.pop()) if len(values) == 1 else ""
