"""Files that are no split: read by the reader of the data, for generated data by a common one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dice_ray.data import inputs
from dice_ray.data.formats.columns import TextColumns
from dice_ray.data.formats.conll import ConllConfig
from dice_ray.data.formats.lists import SpanColumns
from dice_ray.data.formats.rows import JsonlConfig, ParquetConfig
from dice_ray.data.formats.span_files import SpansConfig
from dice_ray.data.formats.tables import TablesConfig
from dice_ray.data.formats.texts import FoldersConfig
from dice_ray.data.records import PairRecord
from dice_ray.data.sources import DataConfig, FilesConfig
from dice_ray.data.synthetic import KINDS, SyntheticConfig
from dice_ray.errors import DataError


def test_every_kind_of_generated_data_has_a_reader() -> None:
    for kind, (record, _) in KINDS.items():
        assert SyntheticConfig.model_validate({"kind": kind}).yields() is record
        assert inputs._READERS[record].yields() is record


def test_generated_pairs_are_read_from_a_table(tmp_path: Path) -> None:
    path = tmp_path / "new.tsv"
    path.write_text("sentence1\tsentence2\na\tb\n")
    records, report = inputs.read(DataConfig(), path, "ignored")
    assert records == (PairRecord("2", "a", "b", ""),)
    assert (report.origin, report.kept) == ("new.tsv", 1)


def test_files_are_read_by_the_reader_of_the_data(tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text("B-PER Ann\nO sat\n\nodd\n")
    reader = ConllConfig(word=1, tag=0)
    config = DataConfig(source=FilesConfig(train="gone.txt", reader=reader, on_bad_row="skip"))
    (record,), report = inputs.read(config, tmp_path / "new.txt", "read")
    assert record.content == ("Ann", "sat")
    assert [tally.count for tally in report.dropped.values()] == [1]


def test_bad_rows_of_a_parquet_file_are_skipped_as_in_training(tmp_path: Path) -> None:
    path = tmp_path / "new.parquet"
    pd.DataFrame({"id": ["a", "b", "a"], "sentence": ["x", "y", "z"]}).to_parquet(path)
    reader = ParquetConfig(columns=TextColumns(id="id"))
    config = DataConfig(source=FilesConfig(train="gone.parquet", reader=reader, on_bad_row="skip"))
    records, report = inputs.read(config, path, "ignored")
    assert ([record.id for record in records], report.num_malformed) == (["a", "b"], 1)


@pytest.mark.parametrize("ids", ["77", "  "])
def test_a_column_named_id_need_not_hold_ids_where_the_data_have_none(ids: str, tmp_path: Path) -> None:
    """A file that `init` accepted, without its column `id`, could not be predicted."""
    (tmp_path / "new.csv").write_text(f"id,text\n{ids[0]},x\n{ids[1]},y\n")
    reader = TablesConfig(quoting=True, delimiter=",", columns=TextColumns(text="text"))
    config = DataConfig(source=FilesConfig(train="gone.csv", reader=reader, on_bad_row="skip"))
    records, _ = inputs.read(config, tmp_path / "new.csv", "ignored")
    assert [record.id for record in records] == ["2", "3"]
    (tmp_path / "new.csv").write_text("id,text\n7,x\n8,y\n")
    assert [record.id for record in inputs.read(config, tmp_path / "new.csv", "ignored")[0]] == ["7", "8"]
    (tmp_path / "new.csv").write_text('id,text\n7,x,\n7,"never closed\n7,y\n')
    strict = config.model_copy(update={"source": config.source.model_copy(update={"on_bad_row": "error"})})
    with pytest.raises(DataError, match="line 2: expected 2 columns"):  # before the quote, which ends the reading
        inputs.read(strict, tmp_path / "new.csv", "ignored")


def test_a_list_of_a_document_is_read_by_its_key(tmp_path: Path) -> None:
    (tmp_path / "all.json").write_text('{"train": [["a", "x"]], "test": [["b", "y"]]}')
    reader = JsonlConfig(columns=TextColumns(text=0, label=1))
    config = DataConfig(source=FilesConfig(train="all.json#train", reader=reader))
    (record,), report = inputs.read(config, tmp_path / "all.json#test", "read")
    assert (record.content, report.origin) == (("b",), "all.json#test")
    with pytest.raises(DataError, match=r"there must be a file .*al\.json, but it does not exist$"):
        inputs.read(config, tmp_path / "al.json#test", "read")


def test_a_folder_is_read_whole_by_a_reader_of_folders(tmp_path: Path) -> None:
    (tmp_path / "new/pos").mkdir(parents=True)
    config = DataConfig(source=FilesConfig(train="gone", reader=FoldersConfig()))
    with pytest.raises(DataError, match=r"there must be a file .*new, got a folder that is not read as a whole$"):
        inputs.read(config, tmp_path / "new", "ignored")
    (tmp_path / "new/pos/1.txt").write_text("a film")
    (record,), _ = inputs.read(config, tmp_path / "new", "ignored")
    assert record.id == "pos/1.txt"


def test_a_file_without_a_record_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there must be a file .*new\.tsv"):
        inputs.read(DataConfig(), tmp_path / "new.tsv", "ignored")
    (tmp_path / "new.tsv").write_text("sentence1\tsentence2\tlabel\na\tb\t\n")
    with pytest.raises(
        DataError, match=r"must hold at least one record for the reader `tables`.* 1 row dropped: no label"
    ):
        inputs.read(DataConfig(), tmp_path / "new.tsv", "read")


@pytest.mark.parametrize(
    ("kind", "line", "what"),
    [
        ("pairs", ("caf\udce9", "b"), r"byte 0xe9 in 'caf\?'"),
        ("pairs", "a\tb\ud83d", r"half of a surrogate pair in 'a\\tb\\ud83d'"),
        ("texts", "caf\udce9", r"byte 0xe9 in 'caf\?'"),
    ],
)
def test_a_line_that_cannot_be_written_as_utf_8_is_named(kind: str, line: str | tuple[str, str], what: str) -> None:
    """No tokenizer takes half of a surrogate pair, and what the tokenizer raised was a traceback."""
    data = DataConfig(source=SyntheticConfig.model_validate({"kind": kind}))
    first = ("a", "b") if kind == "pairs" else "a"
    with pytest.raises(DataError, match=f"line 2 must be text in UTF-8, got {what}"):
        inputs.read_lines(data, [first, line])


def test_lines_are_split_into_words_as_the_texts_of_the_data_are() -> None:
    """A tagger of spans in texts got words with their punctuation, and a Chinese sentence as one word."""
    spans = DataConfig(source=FilesConfig(train="gone.jsonl", reader=SpansConfig()))
    columns = DataConfig(source=FilesConfig(train="gone.jsonl", reader=JsonlConfig(columns=SpanColumns())))
    words = DataConfig(source=FilesConfig(train="gone.txt", reader=ConllConfig()))
    for data, expected in ((spans, "Berlin ,"), (columns, "Berlin ,"), (words, "Berlin,")):
        record, chinese = inputs.read_lines(data, ["in Berlin, not", "\u6211\u7231"])
        assert record.content == ("in", *expected.split(), "not")
        assert chinese.content == ("\u6211", "\u7231")
    (spaced,) = inputs.read_lines(words, ["\u6211 \u5317\u4eac"])
    assert spaced.content == ("\u6211", "\u5317\u4eac")


def test_rows_for_a_run_on_nested_spans_have_words() -> None:
    """A run that was to be registered failed at its end, as its example of a row had no columns."""
    data = DataConfig(source=FilesConfig(train="gone.jsonl", reader=SpansConfig(overlapping="all")))
    assert inputs.example_row(data) == {"tokens": ["Anna", "lives", "in", "Berlin"]}
    (row,) = inputs.read_rows(data, [inputs.example_row(data)])
    (line,) = inputs.read_lines(data, ["Anna lives in Berlin"])
    assert row.content == line.content == ("Anna", "lives", "in", "Berlin")


@pytest.mark.parametrize("kind", ["pairs", "texts"])
@pytest.mark.parametrize("line", [None, float("nan"), 3, ("a", None)], ids=str)
def test_what_is_no_text_is_named_by_its_line(kind: str, line: Any) -> None:
    """A column with a missing value ended in a traceback."""
    data = DataConfig(source=SyntheticConfig.model_validate({"kind": kind}))
    first = ("a", "b") if kind == "pairs" else "a"
    with pytest.raises(DataError, match=re.escape(f"line 2 must be a text, got {line!r}")):
        inputs.read_lines(data, [first, line])
