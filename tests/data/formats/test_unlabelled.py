"""Every reader without labels: the same records as with them, and files that have none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from dice_ray.data.formats import ReaderConfig
from dice_ray.data.formats.base import Drop, Kept, ReaderBranch
from dice_ray.data.formats.columns import TextColumns
from dice_ray.data.formats.conll import ConllConfig, ConlluConfig
from dice_ray.data.formats.questions import MrcNerReaderConfig, SquadConfig
from dice_ray.data.formats.rows import JsonlConfig, ParquetConfig
from dice_ray.data.formats.sentences import ParallelConfig, WordTagConfig
from dice_ray.data.formats.span_files import SpansConfig
from dice_ray.data.formats.tables import TablesConfig
from dice_ray.data.formats.texts import FasttextConfig, FoldersConfig, TreesConfig
from dice_ray.data.formats.words import WordColumns
from dice_ray.data.records import TaggedRecord, TextRecord
from dice_ray.errors import DataError
from dice_ray.settings import branches_of
from tests.contracts.tasks import stripped

CONLLU = "# a comment\n1\tThe\t_\t{}\t_\t_\t_\t_\t_\t_\n2\tcat\t_\t{}\t_\t_\t_\t_\t_\t_\n"
SQUAD: dict[str, Any] = {"id": "q", "question": "Who?", "answers": [{"text": "Ann", "answer_start": 0}]}
QUERY: dict[str, Any] = {"context": "Ann sat", "query": "Who?", "entity_label": "PER", "qas_id": "1.1"}


def _squad(*leave_out: str) -> str:
    question = {key: value for key, value in SQUAD.items() if key not in leave_out}
    return json.dumps({"data": [{"paragraphs": [{"context": "Ann sat.", "qas": [question]}]}]})


FORMS: dict[str, tuple[ReaderBranch, str, str]] = {
    "tables": (TablesConfig(quoting=False), "sentence1\tsentence2\tlabel\na\tb\t1\n", "sentence1\tsentence2\na\tb\n"),
    "numbered table": (
        TablesConfig(quoting=False, header=False, columns=TextColumns(text=0, label=1)),
        "good film\t1\n",
        "good film\n",
    ),
    "jsonl": (JsonlConfig(columns=TextColumns()), '{"sentence": "a", "label": ["x", "y"]}', '{"sentence": "a"}'),
    "conll": (ConllConfig(), "-DOCSTART- O\n\nAnn\tB-PER\nsat\tO\n", "-DOCSTART-\n\nAnn\nsat\n"),
    "segmented conll": (ConllConfig(digit=True), "我0\tB-PER\n们1\tI-PER\n", "我0\n们1\n"),
    "conllu": (ConlluConfig(), CONLLU.format("DET", "NOUN"), CONLLU.format("_", "_")),
    "word_tag": (WordTagConfig(), "The_DT cat_NN\n\nsat_VB\n", "The cat\n\nsat\n"),
    "trees": (TreesConfig(classes="binary"), "(2 (2 It) (4 works))\n", "It works\n"),
    "fasttext": (FasttextConfig(), "__label__a __label__b good film\n", "good film\n"),
    "label of two parts": (FasttextConfig(label="fine"), "DESC:def What is it ?\n", "What is it ?\n"),
    "one column a label": (
        TablesConfig(quoting=False, columns=TextColumns(text="text", one_hot=("toxic",))),
        "text\ttoxic\nbad film\t1\n",
        "text\nbad film\n",
    ),
    "spans": (SpansConfig(), '{"text": "Ann sat", "label": [[0, 3, "PER"]]}', '{"text": "Ann sat"}'),
    "table of words": (
        TablesConfig(quoting=False, columns=WordColumns()),
        "Sentence #\tWord\tTag\n1\tAnn\tB-PER\n\tsat\tO\n",
        "Sentence #\tWord\n1\tAnn\n\tsat\n",
    ),
    "squad": (SquadConfig(), _squad(), _squad("answers")),
    "mrc_ner": (
        MrcNerReaderConfig(),
        json.dumps([QUERY | {"start_position": [0], "end_position": [0]}]),
        json.dumps([QUERY]),
    ),
}


def test_every_reader_is_here() -> None:
    apart = {"parallel", "parquet", "arrow", "folders"}
    assert {reader.name for reader, *_ in FORMS.values()} | apart == set(branches_of(ReaderConfig))


@pytest.mark.parametrize("form", FORMS)
def test_a_file_reads_the_same_with_and_without_its_labels(tmp_path: Path, form: str) -> None:
    reader, labelled, unlabelled = FORMS[form]
    path = tmp_path / "data.txt"
    path.write_text(labelled, encoding="utf-8")
    ignored = [row.record for row in reader.read(path, "ignored") if isinstance(row, Kept)]
    path.write_text(unlabelled, encoding="utf-8")
    assert [row.record for row in reader.read(path, "ignored") if isinstance(row, Kept)] == ignored
    assert len(ignored) == (2 if form == "word_tag" else 1)
    assert [stripped(record) for record in ignored] == ignored
    path.write_text(labelled, encoding="utf-8")
    if form != "trees":  # neutral ones are dropped when labels are read
        assert [stripped(row.record) for row in reader.read(path) if isinstance(row, Kept)] == ignored


def test_a_file_to_predict_need_not_have_the_ids_of_the_data(tmp_path: Path) -> None:
    """`init` takes a column of ids where there is one, which a file to predict may lack."""
    columns = TextColumns(text="text", id="key")
    (tmp_path / "a.tsv").write_text("text\na b\n")
    (tmp_path / "a.jsonl").write_text('{"text": "a b"}\n')
    parquet.write_table(pyarrow.table({"text": ["a b"]}), tmp_path / "a.parquet")
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


def test_parquet_needs_no_column_of_labels(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table({"sentence": ["a", "b"]}), tmp_path / "a.parquet")
    found = list(ParquetConfig(columns=TextColumns()).read(tmp_path / "a.parquet", "ignored"))
    assert found == [Kept(1, TextRecord("1", "a", ())), Kept(2, TextRecord("2", "b", ()))]


def test_parallel_needs_no_file_of_tags(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Ann sat\n\n")
    assert list(ParallelConfig().read(tmp_path / "a.txt", "ignored")) == [
        Kept(1, TaggedRecord("1", ("Ann", "sat"), ()))
    ]


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
