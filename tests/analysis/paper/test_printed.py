"""The printed tables: they add up but where the paper's do not, and each row is one of ours or a cited one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pytest

from analysis.paper.printed import PrintedTable, printed_tables, table_1

TABLES = {table.number: table for table in printed_tables()}


def inconsistencies(table: PrintedTable) -> Iterator[str]:
    """F1 scores that differ by over .05 from their P and R, and differences by over .005 from their scores."""
    for block in table.blocks:
        baseline: Mapping[str, str] = {}
        for row in table.rows:
            cells = row.cells.get(block.title, {})
            where = f"As printed, {block.title} {row.model.partition(' (')[0]}"
            if block.headings == ("Prec.", "Rec.", "F1") and cells and "-" not in cells.values():
                precision, recall, f1 = map(score, cells.values())
                computed = 2 * precision * recall / (precision + recall)
                if abs(computed - f1) > 0.05:
                    yield f"{where}: F1 {f1:.2f}, its P and R give {computed:.2f}."
            baseline = cells if cells and row.arm == "cross_entropy" else baseline
            for heading, cell in cells.items():
                difference = cell.partition(" (")[2].removesuffix(")")
                computed = score(cell) - score(baseline[heading]) if difference else 0
                if difference and abs(computed - float(difference)) > 0.005:
                    yield f"{where}: {heading} difference {difference}, the printed scores give {computed:+.2f}."


def score(cell: str) -> float:
    return float(cell.partition(" (")[0])


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: f"Table {table.number}")
def test_the_numbers_add_up_but_where_those_of_the_paper_do_not(table: PrintedTable) -> None:
    """Finds a number that is not the printed one: nearly all are bound by an F1 or a difference."""
    assert [note for note in table.notes if note.startswith("As printed, ")] == [*inconsistencies(table)]


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
