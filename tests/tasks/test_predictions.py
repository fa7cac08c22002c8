"""Files of predictions are read back without loss by readers of their formats."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from dice_ray.data.formats.base import Kept
from dice_ray.data.formats.conll import ConllConfig
from dice_ray.data.records import TaggedRecord
from dice_ray.tasks.predictions import Conll, Json, TablePredictions


def test_a_table_is_tsv_whatever_its_cells_hold() -> None:
    """Finds rounded probabilities: those of a run that finds little are equal then, and its PR-AUC another."""
    rows = [('say "hi"', "a\tb", 0.25), ("2", "", 1e-9)]
    table = TablePredictions(("id", "label", "probability_1"), rows)
    assert table.plain()[1] == {"id": "2", "label": "", "probability_1": 1e-9}
    text = table.text()
    assert list(csv.reader(text.splitlines(), delimiter="\t")) == [
        ["id", "label", "probability_1"],
        ['say "hi"', "a\tb", "0.25"],
        ["2", "", "1e-09"],
    ]


def test_columns_are_read_back_by_our_reader(tmp_path: Path) -> None:
    sentences = [[("New York", "B-LOC"), ("#", "O")], [("sat", "O")]]
    (tmp_path / "found.txt").write_text(Conll(sentences).text(), encoding="utf-8")
    assert Conll(sentences).plain() == sentences
    assert list(ConllConfig().read(tmp_path / "found.txt")) == [
        Kept(1, TaggedRecord("1", ("New York", "#"), ("B-LOC", "O"))),
        Kept(4, TaggedRecord("4", ("sat",), ("O",))),
    ]


def test_a_word_with_a_break_is_one_line() -> None:
    """Finds a word from JSON that becomes several lines, and shifts all tags after it."""
    assert Conll([[("a\tb", "O"), ("c\r\nd", "B-LOC")]]).text() == "a b\tO\nc d\tB-LOC\n\n"


@pytest.mark.parametrize("document", [{"q1": "größer"}, [{"a": [1, 2]}]])
def test_json_is_one_document(document: object) -> None:
    text = Json(document).text()
    assert json.loads(text) == document
    assert "\\u" not in text
    assert Json(document).plain() == document
