"""The printed tables: they add up but where the paper's do not, and each row is one of ours or a cited one."""

from __future__ import annotations

import re

import pytest

from analysis.paper.printed import PrintedTable, inconsistencies, printed_tables, table_1

TABLES = {table.number: table for table in printed_tables()}


def test_the_numbers_add_up_but_where_those_of_the_paper_do_not() -> None:
    """Finds a number that is not the printed one: nearly all are bound by an F1 or a difference."""
    found = {number: list(inconsistencies(table)) for number, table in TABLES.items()}
    of_f1 = [number for number, sentences in found.items() for each in sentences if "its P and R give" in each]
    assert (len(of_f1), set(of_f1)) == (13, {3, 4, 5})
    assert "As printed, UD1.4 BERT+FL: F1 96.81, its P and R give 96.09." in found[3]
    assert [each for sentences in found.values() for each in sentences if "difference" in each] == [
        "As printed, English CoNLL 2003 BERT-MRC+FL: F1 difference +0.06, the printed scores give +0.07.",
        "As printed, English CoNLL 2003 BERT-MRC+DL: F1 difference +0.12, the printed scores give +0.13.",
        "As printed, QQP XLNet+DSC: F1 difference +0.79, the printed scores give +0.80.",
    ]


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: f"Table {table.number}")
def test_each_row_has_its_cells_and_its_arm(table: PrintedTable) -> None:
    cited = [row.model for row in table.rows if row.arm is None]
    assert all(re.search(r"\d{4}b?\)$|^alpha", model) for model in cited)
    arms = {row.arm for row in table.rows} - {None}
    assert arms <= {"cross_entropy", "weighted_cross_entropy", "focal", "paper_dl", "paper_dsc"}
    assert {"cross_entropy", "paper_dl", "paper_dsc"} <= arms or table.number == 10
    titles = [block.title for block in table.blocks]
    for row in table.rows:
        assert len(row.cells) == (1 if table.is_stacked else len(titles))
        for title, cells in row.cells.items():
            assert tuple(cells) == table.blocks[titles.index(title)].headings
            assert all(re.fullmatch(r"-|[\d.]+( \([-+][\d.]+\))?", cell) for cell in cells.values())


def test_a_row_is_taken_apart() -> None:
    rows = TABLES[5].rows
    row = next(row for row in rows if row.model == "BERT-MRC+WeightCE (v1)")
    assert (row.base, row.arm) == ("BERT-MRC", "weighted_cross_entropy")
    assert row.cells == {"English CoNLL 2003": {"Prec.": "-", "Rec.": "-", "F1": "93.05 (+0.01)"}}
    assert (rows[0].base, rows[0].arm) == ("ELMo", None)
    assert table_1()["quoref"]["ratio"] == "169"
