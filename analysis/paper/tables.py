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
from typing import Any, Final

import pandas as pd

from analysis.comparison import CONSTANT, Arm, Comparison, compare, comparisons
from analysis.formats import PERCENT
from analysis.frames import Findings, losses, param_values, scores, tag_values
from analysis.paper.printed import METRICS, Block, PrintedRow, PrintedTable, printed_tables, published_records
from analysis.statistics.intervals import Difference, Interval
from analysis.tables.base import Mark, ReportTable
from dice_ray.tracking import schema

_BASELINE: Final = "cross_entropy"
"""The baseline of every table of the paper."""
_SYMBOLS: Final = {
    "cross_entropy": "CE",
    "weighted_cross_entropy": "Weighted CE",
    "focal": "FL",
    "dice": "DL",
    "tversky": "TL",
    "self_adjusting_dice": "DSC",
}
"""The names in the paper's Table 2, by our names of the losses."""


def on_paper_data(findings: Findings) -> tuple[Comparison, ...]:
    """The comparisons of a study that were made on a data set of the paper, with all of its training records."""
    named = [
        each for each in comparisons(findings) if _only(tag_values(each.cells, schema.PUBLISHED)) in published_records()
    ]
    return tuple(each for each in named if not _missing_records(each, findings))


def why_not_on_paper_data(findings: Findings) -> str:
    """A sentence on why the paper's tables are left out of a study on a part of the paper's data; else empty."""
    parts = dict.fromkeys(part for each in comparisons(findings) if (part := _missing_records(each, findings)))
    return f"The paper's tables are left out: {', '.join(parts)}." if parts and not on_paper_data(findings) else ""


def formulas(findings: Findings) -> list[ReportTable]:
    """Table 2: the formulas of the losses in a study."""
    if not on_paper_data(findings):
        return []
    from dice_ray.losses.table import rows  # which imports torch

    ran = set(losses(findings.cells).dropna())
    data = pd.DataFrame(
        {"loss": row.name, "in the paper": _SYMBOLS.get(row.name, "")}
        | {"formula (one class of one item)": row.formula, "from": row.source}
        for row in rows()
        if row.name in ran
    )
    if data.empty:
        return []
    note = "p is the probability of the class, y whether it is the item's. Equations are the paper's."
    title = "Paper, Table 2: the losses of this study and their formulas"
    return [ReportTable("paper_table_2", title, data, data, (note,))]


def paper_tables(findings: Findings) -> list[ReportTable]:
    """Tables 3 to 10: the printed scores in the printed layout, with ours in the rows of the same loss."""
    compared = on_paper_data(findings)
    return [table for printed in printed_tables() if (table := _table(printed, compared))]


@dataclass(frozen=True)
class _Ours:
    """Our results for a block of a printed table.

    Attributes:
        prefix: Of the headings of the block, where blocks are beside each other.
        arms: Each arm compared with cross-entropy by the last heading, by name.
        others: The mean of each arm, by the other headings.
        predictor: The constant predictor's score of the last heading.
    """

    comparison: Comparison
    block: Block
    prefix: str
    arms: Mapping[str, Arm]
    others: Mapping[str, pd.Series[float]]
    predictor: Interval | None

    @property
    def score_heading(self) -> str:
        return f"{self.prefix}ours {self.block.headings[-1]}"

    def cells(self, name: str) -> dict[str, str]:
        arm, difference = self.arms[name], self.difference(name)
        num = {"failed": arm.failed, "collapsed": arm.collapsed}
        suffix = "".join(f"; {count} {what}" for what, count in num.items() if count)
        return {
            **{f"{self.prefix}ours {heading}": PERCENT.show(of[name]) for heading, of in self.others.items()},
            self.score_heading: f"{PERCENT.show_interval(arm.score)}{suffix}",
            f"{self.prefix}difference": PERCENT.show_interval(difference.interval, "+") if difference else "",
            f"{self.prefix}seeds": str(arm.score.num),
        }

    def marks(self, name: str, row: int) -> dict[tuple[int, str], Mark]:
        """Bold for our best arm, grey for a difference that is not significant."""
        marks: dict[tuple[int, str], Mark] = {}
        means = {arm: of.score.mean for arm, of in self.arms.items() if not math.isnan(of.score.mean)}
        if means and max(means, key=lambda arm: means[arm]) == name:
            marks[row, self.score_heading] = "bold"
        if (difference := self.difference(name)) and not difference.is_significant:
            marks[row, f"{self.prefix}difference"] = "grey"
        return marks

    def difference(self, name: str) -> Difference | None:
        """Of an arm to cross-entropy; None for cross-entropy itself, and without shared seeds."""
        arm = self.arms[name]
        return arm.difference if arm.by_seed else None


def _table(printed: PrintedTable, compared: Sequence[Comparison]) -> ReportTable | None:
    ours = {
        block: [_ours(each, block, printed) for each in compared if _fits(printed, block, each, compared)]
        for block in printed.blocks
    }
    if not any(ours.values()):
        return None
    lines: list[dict[str, str]] = []
    marks: dict[tuple[int, str], Mark] = {}
    if printed.is_stacked:
        for block, fits in ours.items():
            if fits:
                lines.append({"Model": block.title})
                _add(lines, marks, [row for row in printed.rows if block.title in row.cells], {block: fits}, "")
    else:
        _add(lines, marks, printed.rows, ours, "{} ")
    places = dict.fromkeys(
        f"{each.comparison.place}{each.comparison.where_scored}" for fits in ours.values() for each in fits
    )
    notes = (
        f"Ours: {'; '.join(places)}; means over seeds with 95 % intervals. Bold: our best.",
        f"Differences to {_BASELINE} are paired by seed, with intervals Holm-corrected as in the other tables; "
        "grey, or italic: not significant.",
        "The paper gives single scores, without seeds or intervals.",
        *printed.notes,
    )
    shown = pd.DataFrame(lines).fillna("")
    title = f"Paper, Table {printed.number}: {printed.caption}"
    return ReportTable(f"paper_table_{printed.number}", title, shown, shown, notes, marks)


def _add(
    lines: list[dict[str, str]],
    marks: dict[tuple[int, str], Mark],
    rows: Sequence[PrintedRow],
    ours: Mapping[Block, Sequence[_Ours]],
    prefix: str,
) -> None:
    """Append the printed rows with ours in them, then rows for our other arms, then the constant predictor."""
    by_model: dict[str, dict[str, str]] = {
        row.model: {"Model": row.model}
        | {
            f"{prefix.format(block.title)}{heading}": cell
            for block in ours
            for heading, cell in row.cells[block.title].items()
        }
        for row in rows
    }
    arms_of_row: dict[str, list[tuple[_Ours, str]]] = {}
    for fits in ours.values():
        for each in fits:
            fitting, alphas = [row for row in rows if _is_row_of(row, each, fits)], _alphas(each.comparison)
            row_of_arm = {
                arm: row.model for row in fitting if (arm := row.arm or alphas.get(row.model)) and arm in each.arms
            }
            for row in fitting:
                if row.model not in row_of_arm.values():
                    by_model[row.model][each.score_heading] = "missing"
            for arm in each.arms:
                model = row_of_arm.get(arm) or f"ours: {arm}" + (f", {each.comparison.place}" if len(fits) > 1 else "")
                by_model.setdefault(model, {"Model": model}).update(each.cells(arm))
                arms_of_row.setdefault(model, []).append((each, arm))
        if fits and (predictor := fits[0].predictor):
            of_predictor = by_model.setdefault(CONSTANT, {"Model": CONSTANT})
            of_predictor[fits[0].score_heading] = PERCENT.show(predictor.mean)
    for line in sorted(by_model.values(), key=lambda line: line["Model"] == CONSTANT):
        for each, arm in arms_of_row.get(line["Model"], []):
            marks |= each.marks(arm, len(lines))
        lines.append(line)


def _ours(comparison: Comparison, block: Block, printed: PrintedTable) -> _Ours:
    *others, last = block.headings
    declared = replace(comparison.declared, threshold="untuned")
    # The baseline of the study may be another one.
    compared = compare(comparison.cells, f"test/{METRICS[last]}", _BASELINE, declared).arms
    plain = (arm for arm in compared if not arm.is_tuned and arm.name != CONSTANT)
    return _Ours(
        comparison,
        block,
        "" if printed.is_stacked else f"{block.title} ",
        {arm.name: arm for arm in sorted(plain, key=lambda arm: arm.name)},
        {
            heading: scores(comparison.cells, f"test/{METRICS[heading]}").groupby(comparison.cells["arm"]).mean()
            for heading in others
        },
        next((arm.score for arm in compared if arm.name == CONSTANT), None),
    )


def _is_row_of(row: PrintedRow, ours: _Ours, fits: Sequence[_Ours]) -> bool:
    """Whether a printed row has the model and formulation of our cells; with several encoders, only for the first."""
    if row.arm is None:
        return bool(_alphas(ours.comparison)) and row.model.startswith("alpha") and ours is fits[0]
    is_xlnet = _is_xlnet(ours.comparison)
    is_mrc = _only(tag_values(ours.comparison.cells, schema.TASK)) == "mrc_ner"
    same = [each for each in fits if _is_xlnet(each.comparison) == is_xlnet]
    base = {"XLNet": is_xlnet, "BERT-MRC": is_mrc and not is_xlnet, "BERT-Tagger": not is_mrc and not is_xlnet}
    return base.get(row.base, not is_xlnet) and (ours is same[0] or is_mrc)


def _fits(printed: PrintedTable, block: Block, comparison: Comparison, compared: Sequence[Comparison]) -> bool:
    """Whether a comparison belongs in a block; `compared` are all comparisons of the study."""
    is_of_pos = _only(param_values(comparison.cells, "task.tagging.tags")) == "plain"
    imbalances = [_only(param_values(each.cells, "data.imbalance")) or "none" for each in compared]
    return (
        _only(tag_values(comparison.cells, schema.PUBLISHED)) == block.data
        and is_of_pos == (printed.number in (3, 4))
        and (_only(param_values(comparison.cells, "data.imbalance")) or "none") == block.imbalance
        and (printed.number != 8 or any(each != "none" for each in imbalances))
        and (printed.number == 10) == (len(_alphas(comparison)) > 1)
    )


def _alphas(comparison: Comparison) -> dict[str, str]:
    """The arms with the loss of Table 10 (Tversky in example scope, beta = 1 - alpha), by the name of the row."""
    arms: dict[str, str] = {}
    for name, runs in comparison.cells.groupby("arm"):
        scope, alpha, beta = (
            param_values(runs, f"loss.tversky.{path}").dropna() for path in ("scope", "alpha", "beta")
        )
        # Equation 9 is the loss of one item: in batch scope it is another loss, which Table 10 is not about.
        if len(alpha) and set(scope) == {"example"} and abs(alpha.iloc[0] + beta.iloc[0] - 1) < 1e-9:
            arms.setdefault(f"alpha = {alpha.iloc[0]:g}", str(name))
    return arms


def _missing_records(comparison: Comparison, findings: Findings) -> str:
    """What a part of a data set of the paper lacks; empty for a whole one, other data, and where it was not stored."""
    stored = findings.data_of(comparison.cells).get("read", {}).get("train", {}).get("rows")
    published = published_records().get(_only(tag_values(comparison.cells, schema.PUBLISHED)))
    # Releases differ by a few percent.
    if stored is None or published is None or stored >= 0.9 * published:
        return ""
    name = _only(tag_values(comparison.cells, schema.DATA))
    return f"the training file of {name} has {stored:,} of the {published:,} published records"


def _is_xlnet(comparison: Comparison) -> bool:
    return "xlnet" in _only(tag_values(comparison.cells, schema.ENCODER)).lower()


def _only(column: pd.Series[Any]) -> str:
    """The value that all cells have; an empty string if they differ."""
    values = set(column.dropna())
    return str(values.pop()) if len(values) == 1 else ""
