"""The printed figures: they add up but where the paper's do not, and their inconsistencies are known."""

from __future__ import annotations

import re

import pytest

from analysis.paper.printed import Inconsistency, PrintedTable, inconsistencies
from analysis.paper.tables_3_to_10 import TABLE_5, TABLE_7, TABLES

ALL = [(table.number, inconsistency) for table in TABLES for inconsistency in inconsistencies(table)]
OFF = [(number, inconsistency) for number, inconsistency in ALL if inconsistency.kind == "F1"]


def test_thirteen_f1_scores_differ_from_their_own_precision_and_recall() -> None:
    assert len(OFF) == 13
    assert {number for number, _ in OFF} == {3, 4, 5}


def test_four_of_them_lie_outside_precision_and_recall() -> None:
    outside = [
        (f"{block.title} {row.model.partition(' (')[0]}", f1)
        for table in TABLES
        if table.number in (3, 4, 5)
        for number, block in enumerate(table.blocks)
        for row in table.rows
        if row.cells[number] and None not in (values := [cell.value for cell in row.cells[number]])
        for low, high, f1 in [(min(values[:2]), max(values[:2]), values[2])]  # type: ignore[type-var]
        if not low - 0.005 <= f1 <= high + 0.005  # type: ignore[operator]
    ]
    assert outside == [
        ("UD1.4 BERT+FL", 96.81),
        ("English Tweets BERT-Tagger", 92.34),
        ("English Tweets BERT-Tagger+DSC", 92.58),
        ("Chinese OntoNotes 4.0 Glyce-BERT", 80.62),
    ]


def test_the_differences_that_do_not_add_up_are_footnotes() -> None:
    off = [
        (number, inconsistency.where, inconsistency.printed)
        for number, inconsistency in ALL
        if inconsistency.kind != "F1"
    ]
    assert off == [
        (5, "English CoNLL 2003 BERT-MRC+FL", 0.06),
        (5, "English CoNLL 2003 BERT-MRC+DL", 0.12),
        (7, "QQP XLNet+DSC", 0.79),
    ]
    note = "As printed, QQP XLNet+DSC: F1 difference +0.79, the printed scores give +0.80."
    assert note in TABLE_7.footnotes()


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"Table {table.number}")
def test_each_row_has_its_cells_and_its_arm(table: PrintedTable) -> None:
    cited = [row.model for row in table.rows if row.arm is None]
    assert all(re.search(r"\d{4}b?\)$|^alpha", model) for model in cited)
    arms = {row.arm for row in table.rows} - {None}
    assert arms <= {"cross_entropy", "weighted_cross_entropy", "focal", "paper_dl", "paper_dsc"}
    assert {"cross_entropy", "paper_dl", "paper_dsc"} <= arms or table.number == 10


def test_a_row_is_taken_apart() -> None:
    row = next(row for row in TABLE_5.rows if row.model == "BERT-MRC+WeightCE (v1)")
    assert (row.base, row.arm) == ("BERT-MRC", "weighted_cross_entropy")
    assert (TABLE_5.rows[0].base, TABLE_5.rows[0].arm) == ("ELMo", None)


def test_an_oddity_in_words() -> None:
    odd = Inconsistency("F1", "UD1.4 BERT+FL", 96.81, 96.0894)
    assert str(odd) == "As printed, UD1.4 BERT+FL: F1 96.81, its P and R give 96.09."
