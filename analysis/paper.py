"""The paper's tables with ours beside: 2 from the losses that ran, 3 to 10 where a study has their data and task."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, get_args

import pandas as pd

from analysis.comparison import CONSTANT, Comparison, comparisons
from analysis.found import Found
from analysis.layout import Mark, Scale, Table
from analysis.printed import F1, Block, Printed, Row
from analysis.scores import by_seed, collapsed, column, constant, losses, scores
from analysis.statistics import Difference, Interval, holm_of, paired_difference, t_interval
from analysis.transcribed import TABLE_8, TABLE_10, TABLES
from dice_ray.losses import LossConfig
from dice_ray.losses.base import LossBranch

BASELINE: Final = "cross_entropy"
"""Of every table of the paper."""
PERCENT: Final = Scale(percent=True)
SYMBOLS: Final = {
    "cross_entropy": "CE",
    "weighted_cross_entropy": "Weighted CE",
    "focal": "FL",
    "dice": "DL",
    "tversky": "TL",
    "self_adjusting_dice": "DSC",
}
"""Of the paper's Table 2, by our losses."""


def formulas(found: Found) -> list[Table]:
    """Table 2: the losses of a study's arms, one class of one item."""
    ran = set(losses(found.frame[found.frame["kind"] == "cell"]).dropna())
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
    return [Table("paper_table_2", "Paper, Table 2: the losses of this study and their formulas", data, data, (note,))]


def paper_tables(found: Found) -> list[Table]:
    """Tables 3 to 10: the printed scores in the printed layout, and ours in the rows of the same loss."""
    made = comparisons(found)
    return [table for printed in TABLES if (table := _table(printed, made))]


@dataclass(frozen=True)
class _Ours:
    """What a comparison has for a block.

    Attributes:
        scores: By arm and heading, in percent or not as `PERCENT` shows them.
        differences: Of the last heading to cross-entropy, by arm; p corrected by Holm.
        marks: What became of an arm's cells, where something did.
        predictor: The constant predictor's score by the last heading.
    """

    made: Comparison
    scores: Mapping[str, Mapping[str, Interval]]
    differences: Mapping[str, Difference]
    marks: Mapping[str, str]
    predictor: Interval | None

    def cells(self, arm: str, block: Block, prefix: str) -> dict[str, str]:
        *others, last = block.metrics
        found, difference = self.scores[arm], self.differences.get(arm)
        return {
            **{f"{prefix}ours {heading}": PERCENT.show(found[heading].mean) for heading in others},
            f"{prefix}ours {last}": f"{PERCENT.show_interval(found[last])}{self.marks[arm]}",
            f"{prefix}difference": PERCENT.show_interval(difference.interval, "+") if difference else "",
            f"{prefix}seeds": str(found[last].num),
        }


def _table(printed: Printed, made: Sequence[Comparison]) -> Table | None:
    printed = _with_our_data(printed, made)
    ours = [[_ours(each, block) for each in made if _fits(printed, block, each, made)] for block in printed.blocks]
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
    places = dict.fromkeys(each.made.place for fits in ours for each in fits)
    notes = (
        f"Ours: {'; '.join(places)}; means over seeds with 95 % t intervals, at the threshold of .5. Bold: our best.",
        f"Differences to {BASELINE}, paired by seed; grey, or slanted: not told apart from it (Holm over our rows).",
        "The paper gives one score each, without seeds or intervals.",
    )
    shown = pd.DataFrame(lines).fillna("")
    title = f"Paper, Table {printed.number}: {printed.caption}"
    return Table(f"paper_table_{printed.number}", title, shown, shown, (*notes, *printed.footnotes()), marks)


def _add(
    lines: list[dict[str, str]],
    marks: dict[tuple[int, str], Mark],
    rows: Sequence[Row],
    blocks: Sequence[tuple[Block, Sequence[_Ours], str]],
) -> None:
    """The printed rows with ours in them, then our other arms, then the constant predictor."""
    by_model: dict[str, dict[str, str]] = {
        row.model: {"Model": row.model}
        | {
            f"{prefix}{heading}": str(cell)
            for (block, _, prefix), cells in zip(blocks, row.cells, strict=True)
            for heading, cell in zip(block.metrics, cells, strict=False)
        }
        for row in rows
    }
    where: dict[str, list[tuple[str, str, _Ours, str]]] = {}
    for block, fits, prefix in blocks:
        last = list(block.metrics)[-1]
        for each in fits:
            taken = {arm: row.model for row in rows if (arm := _standing(row, each, fits))}
            for row in rows:
                if fits and _could_stand(row, each, fits) and row.model not in taken.values():
                    by_model[row.model][f"{prefix}ours {last}"] = "missing"
            for arm in each.scores:
                model = taken.get(arm) or f"ours: {arm}" + (f", {each.made.place}" if len(fits) > 1 else "")
                by_model.setdefault(model, {"Model": model}).update(each.cells(arm, block, prefix))
                where.setdefault(model, []).append((prefix, last, each, arm))
        if fits and (predictor := fits[0].predictor):
            of_predictor = by_model.setdefault(CONSTANT, {"Model": CONSTANT})
            of_predictor[f"{prefix}ours {last}"] = PERCENT.show(predictor.mean)
    constant_last = sorted(by_model.values(), key=lambda line: line["Model"] == CONSTANT)
    for line in constant_last:
        for prefix, last, each, arm in where.get(line["Model"], []):
            marks |= _marks(len(lines), prefix, last, each, arm)
        lines.append(line)


def _marks(number: int, prefix: str, last: str, ours: _Ours, arm: str) -> dict[tuple[int, str], Mark]:
    means = {name: of[last].mean for name, of in ours.scores.items() if not math.isnan(of[last].mean)}
    found: dict[tuple[int, str], Mark] = {}
    if means and max(means, key=lambda name: means[name]) == arm:
        found[number, f"{prefix}ours {last}"] = "bold"
    if (difference := ours.differences.get(arm)) and not difference.tells_apart:
        found[number, f"{prefix}difference"] = "grey"
    return found


def _ours(made: Comparison, block: Block) -> _Ours:
    cells, last = made.cells, list(block.metrics.values())[-1]
    one_class = collapsed(cells, f"test/{last}")
    by_arm: dict[str, dict[str, Interval]] = {}
    seeds: dict[str, dict[int, float]] = {}
    ratio = made.test_per_train
    marks: dict[str, str] = {}
    for name, runs in cells.groupby("arm"):
        read = {heading: by_seed(scores(runs, f"test/{of}"), runs["seed"]) for heading, of in block.metrics.items()}
        by_arm[str(name)] = {heading: t_interval(list(values.values()), ratio) for heading, values in read.items()}
        seeds[str(name)] = list(read.values())[-1]
        num = {"failed": len(runs) - len(seeds[str(name)]), "collapsed": int(one_class[runs.index].sum())}
        marks[str(name)] = "".join(f"; {count} {what}" for what, count in num.items() if count)
    against = seeds.get(BASELINE, {})
    names = [name for name in seeds if name != BASELINE and against]
    differences = holm_of([paired_difference(seeds[name], against, ratio) for name in names])
    predictor = constant(cells, f"test/{last}")
    return _Ours(made, by_arm, dict(zip(names, differences, strict=True)), marks, predictor)


def _could_stand(row: Row, ours: _Ours, fits: Sequence[_Ours]) -> bool:
    """Whether the row is of the model and formulation of our cells; of several encoders the first stands in it."""
    if row.arm is None:
        return bool(_alphas(ours.made)) and row.model.startswith("alpha") and ours is fits[0]
    is_xlnet, is_mrc = "xlnet" in _only(ours.made, "tags.encoder").lower(), _only(ours.made, "tags.task") == "mrc_ner"
    same = [each for each in fits if ("xlnet" in _only(each.made, "tags.encoder").lower()) == is_xlnet]
    base = {"XLNet": is_xlnet, "BERT-MRC": is_mrc and not is_xlnet, "BERT-Tagger": not is_mrc and not is_xlnet}
    return base.get(row.base, not is_xlnet) and (ours is same[0] or is_mrc)


def _standing(row: Row, ours: _Ours, fits: Sequence[_Ours]) -> str | None:
    """Our arm that stands in a printed row."""
    if not _could_stand(row, ours, fits):
        return None
    if row.arm is not None:
        return row.arm if row.arm in ours.scores else None
    return _alphas(ours.made).get(row.model)


def _with_our_data(printed: Printed, made: Sequence[Comparison]) -> Printed:
    """Tables 8 and 10 are about a change, of the training set or of alpha, which a study may make on other data too."""
    if any(_fits(printed, block, each, made) for block in printed.blocks for each in made):
        return printed
    if printed is TABLE_8 and (changed := [each for each in made if _imbalance(each) != "none"]):
        return replace(printed, blocks=tuple(replace(block, data=_data(changed[0])) for block in printed.blocks))
    if printed is TABLE_10:
        data = dict.fromkeys(_data(each) for each in made if len(_alphas(each)) > 1)
        more = tuple(Block(f"{each} (not in the paper)", F1, each) for each in data)
        rows = tuple(replace(row, cells=(*row.cells, *((),) * len(more))) for row in printed.rows)
        return replace(printed, blocks=(*printed.blocks, *more), rows=rows)
    return printed


def _fits(printed: Printed, block: Block, made: Comparison, every: Sequence[Comparison]) -> bool:
    is_pos = _only(made, "params.task.tagging.tags") == "plain"
    return (
        _data(made) == block.data
        and is_pos == (block.task == "tagging")
        and _imbalance(made) == block.imbalance
        and (printed.number != TABLE_8.number or any(_imbalance(each) != "none" for each in every))
        and (printed.number == TABLE_10.number) == (len(_alphas(made)) > 1)
    )


def _alphas(made: Comparison) -> dict[str, str]:
    """The arms with a Tversky loss of single examples, as Table 10 has it, by the name of their row."""
    found: dict[str, str] = {}
    for name, runs in made.cells.groupby("arm"):
        scope, alpha, beta = (
            column(runs, f"params.loss.tversky.{path}").dropna() for path in ("scope", "alpha", "beta")
        )
        if len(alpha) and set(scope) == {"example"} and abs(alpha.iloc[0] + beta.iloc[0] - 1) < 1e-9:
            found.setdefault(f"alpha = {alpha.iloc[0]:g}", str(name))
    return found


def _data(made: Comparison) -> str:
    return _only(made, "tags.data")


def _imbalance(made: Comparison) -> str:
    return _only(made, "params.data.imbalance") or "none"


def _only(made: Comparison, name: str) -> str:
    """What all cells have in a column, else nothing."""
    values = set(column(made.cells, name).dropna())
    return str(values.pop()) if len(values) == 1 else ""
