"""Readers without labels, with settings that `test_contract` has not: ids, folders, several rows for a record."""

from __future__ import annotations

from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from dice_ray.data.formats.base import Drop, Kept, ReaderBranch
from dice_ray.data.formats.columns import TextColumns
from dice_ray.data.formats.conll import ConllConfig
from dice_ray.data.formats.rows import JsonlConfig, ParquetConfig
from dice_ray.data.formats.sentences import WordTagConfig
from dice_ray.data.formats.tables import TablesConfig
from dice_ray.data.formats.texts import FasttextConfig, FoldersConfig, TreesConfig
from dice_ray.data.formats.words import WordColumns
from dice_ray.data.records import TextRecord
from dice_ray.errors import DataError
from tests.contracts.tasks import stripped

FORMS: dict[str, tuple[ReaderBranch, str, str]] = {
    "numbered table": (
        TablesConfig(quoting=False, header=False, columns=TextColumns(text=0, label=1)),
        "good film\t1\n",
        "good film\n",
    ),
    "documents": (ConllConfig(), "-DOCSTART- O\n\nAnn\tB-PER\nsat\tO\n", "-DOCSTART-\n\nAnn\nsat\n"),
    "segmented conll": (ConllConfig(digit=True), "我0\tB-PER\n们1\tI-PER\n", "我0\n们1\n"),
    "label of two parts": (FasttextConfig(label="fine"), "DESC:def What is it ?\n", "What is it ?\n"),
    "one column a label": (
        TablesConfig(quoting=False, columns=TextColumns(text="text", one_hot=("toxic",))),
        "text\ttoxic\nbad film\t1\n",
        "text\nbad film\n",
    ),
    "table of words": (
        TablesConfig(quoting=False, columns=WordColumns()),
        "Sentence #\tWord\tTag\n1\tAnn\tB-PER\n\tsat\tO\n",
        "Sentence #\tWord\n1\tAnn\n\tsat\n",
    ),
    "neutral texts": (TreesConfig(classes="binary"), "(2 (2 It) (4 works))\n", "It works\n"),
}
"""Settings of readers beside those of `test_contract`: the reader, a file with labels, and one without."""


@pytest.mark.parametrize("form", FORMS)
def test_a_file_reads_the_same_with_and_without_its_labels(tmp_path: Path, form: str) -> None:
    reader, labelled, unlabelled = FORMS[form]
    path = tmp_path / "data.txt"
    path.write_text(labelled, encoding="utf-8")
    (ignored,) = (row.record for row in reader.read(path, "ignored") if isinstance(row, Kept))
    assert stripped(ignored) == ignored
    path.write_text(unlabelled, encoding="utf-8")
    assert [row.record for row in reader.read(path, "ignored") if isinstance(row, Kept)] == [ignored]


def test_a_file_to_predict_need_not_have_the_ids_of_the_data(tmp_path: Path) -> None:
    """`init` takes a column of ids where there is one; a column `id` that a file to predict has is another one."""
    columns = TextColumns(text="text", id="key")
    (tmp_path / "a.tsv").write_text("id\ttext\nA7\ta b\n")
    (tmp_path / "a.jsonl").write_text('{"id": "A7", "text": "a b"}\n')
    parquet.write_table(pyarrow.table({"id": ["A7"], "text": ["a b"]}), tmp_path / "a.parquet")
    for reader, name, line in (
        (ParquetConfig(columns=columns), "a.parquet", 1),
        (TablesConfig(quoting=False, columns=columns), "a.tsv", 2),
        (JsonlConfig(columns=columns), "a.jsonl", 1),
    ):
        assert list(reader.read(tmp_path / name, "ignored")) == [Kept(line, TextRecord(str(line), "a b", ()))]


def test_ids_of_a_file_to_predict_are_repeated(tmp_path: Path) -> None:
    """A column of ids that had a number was dropped, and of Parquet also a column named `id`."""
    (tmp_path / "a.tsv").write_text("key\ttext\nA7\ta b\n")
    parquet.write_table(pyarrow.table({"id": ["A7"], "text": ["a b"]}), tmp_path / "a.parquet")
    for reader, name, line in (
        (TablesConfig(quoting=False, columns=TextColumns(text="text", id=0)), "a.tsv", 2),
        (ParquetConfig(columns=TextColumns(text="text")), "a.parquet", 1),
    ):
        assert list(reader.read(tmp_path / name, "ignored")) == [Kept(line, TextRecord("A7", "a b", ()))]


def test_without_labels_a_file_is_one_text_and_a_folder_those_of_all_classes(tmp_path: Path) -> None:
    for name, text in (("pos/1.txt", "a film\n\nto see\n"), ("unsup/1.txt", "a film"), ("neg/2.txt", "")):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    file, folder = (list(FoldersConfig().read(path, "ignored")) for path in (tmp_path / "pos/1.txt", tmp_path))
    assert file == [Kept("1.txt", TextRecord("1.txt", "a film\n\nto see", ()))]
    assert folder == [
        Drop("neg/2.txt", "no text"),
        Kept("pos/1.txt", TextRecord("pos/1.txt", "a film\n\nto see", ())),
        Kept("unsup/1.txt", TextRecord("unsup/1.txt", "a film", ())),
    ]
    assert list(FoldersConfig().read(tmp_path))[1:] == [
        Kept("pos/1.txt", TextRecord("pos/1.txt", "a film\n\nto see", ("pos",))),
        Drop("unsup/1.txt", "no label"),
    ]
    with pytest.raises(DataError, match=r"1\.txt, the folder: expected a folder for each class, with texts"):
        list(FoldersConfig().read(tmp_path / "pos/1.txt"))


def test_a_word_with_the_separator_in_it_stays_whole_in_a_line_without_tags(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a snake_case name\n")
    (found,) = WordTagConfig().read(tmp_path / "a.txt", "ignored")
    assert isinstance(found, Kept)
    assert found.record.content == ("a", "snake_case", "name")
