"""Tables: what is read, what is dropped, what is refused, on files made here and on MRPC and QQP."""

from __future__ import annotations

import bz2
import csv
import io
import json
import lzma
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from dice_ray.data.formats.base import Bad, Drop, Kept
from dice_ray.data.formats.columns import PairColumns, TextColumns, literal
from dice_ray.data.formats.lists import QuestionColumns, TaggedColumns
from dice_ray.data.formats.rows import JsonlConfig
from dice_ray.data.formats.tables import _SWALLOWED, TablesConfig
from dice_ray.data.formats.words import SpanRows, WordColumns
from dice_ray.data.guess import guess
from dice_ray.data.reading import gather
from dice_ray.data.records import PairRecord, TaggedRecord, TextRecord
from dice_ray.errors import DataError

HEAD = "sentence1\tsentence2\tlabel\n"


def written(folder: Path, content: str | bytes, name: str = "pairs.tsv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def zipped(*contents: bytes) -> bytes:
    """A zip archive of these files, with the metadata that macOS adds."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number, content in enumerate(contents):
            archive.writestr(f"{number}.tsv", content)
        archive.writestr("__MACOSX/._0.tsv", b"")
    return file.getvalue()


def test_reads_a_bom_crlf_raw_quotes_and_characters_that_are_no_line_ends(tmp_path: Path) -> None:
    content = (
        "\ufeff" + HEAD.replace("\n", "\r\n") + 'He said "no\tone\u2028two\rthree\u0085\t1\r\n\U0001f600\u200b\tb\t0'
    )
    found = list(TablesConfig(quoting=False).read(written(tmp_path, content)))
    assert found == [
        Kept(2, PairRecord("2", 'He said "no', "one\u2028two\rthree\u0085", "1")),
        Kept(3, PairRecord("3", "\U0001f600\u200b", "b", "0")),
    ]


def test_a_field_of_several_lines_is_read_from_a_table_of_one_column(tmp_path: Path) -> None:
    """Each line of the field has as many delimiters as the row, none: it must not be taken for a row of its own."""
    reader = TablesConfig(quoting=True, delimiter=",", columns=TextColumns(text="text"))
    path = written(tmp_path, 'text\n"Dear all\nplease answer"\nno quotes\n')
    found = [row.record for row in reader.read(path, "ignored") if isinstance(row, Kept)]
    assert found == [TextRecord("2", "Dear all\nplease answer", ()), TextRecord("4", "no quotes", ())]
    with pytest.raises(DataError, match="quotes that close"):
        list(reader.read(written(tmp_path, 'text\n"never closed\nand more\n'), "ignored"))


def test_a_field_of_lines_that_could_be_rows_is_read_and_noted(tmp_path: Path) -> None:
    """A field of several lines is valid CSV; but if a stray quote swallows rows, the load report must say so."""
    path = written(tmp_path, HEAD.replace("\t", ",") + '"a,b,1\nc,d,1\ne",f,0\ng,h,1\n')
    first, second = TablesConfig(quoting=True, delimiter=",").read(path)
    assert first == Kept(2, PairRecord("2", "a,b,1\nc,d,1\ne", "f", "0"), (_SWALLOWED,))
    assert second == Kept(5, PairRecord("5", "g", "h", "1"))
    columns = QuestionColumns(question="first", context="second", answers="label", id=None)
    path = written(tmp_path, 'first,second,label\n"What?,a b,a\nwhat",a b,a\n')
    (question,) = TablesConfig(quoting=True, delimiter=",", columns=columns).read(path)
    assert isinstance(question, Kept)
    assert question.notes == (_SWALLOWED,)
    path = written(tmp_path, 'Sentence #,Word,Tag\n1,",O\n1,b",O\n')
    (words,) = TablesConfig(quoting=True, delimiter=",", columns=WordColumns()).read(path)
    assert isinstance(words, Bad)
    assert words.expected == "a word without line breaks (or `quoting: false`)"


def test_columns_of_one_label_each_are_labels_of_one_text(tmp_path: Path) -> None:
    """One of the columns was taken for the label, and the others for nothing."""
    columns = TextColumns(text="text", one_hot=("toxic", "threat"))
    path = written(tmp_path, "text\ttoxic\tthreat\na\t1\t1\nb\t0\t0\nc\t-1\t-1\nd\tFalse\tTrue\n")
    labelled = [("2", "a", ("toxic", "threat")), ("3", "b", ()), ("5", "d", ("threat",))]
    kept = [Kept(int(id_), TextRecord(id_, text, labels)) for id_, text, labels in labelled]
    assert list(TablesConfig(quoting=False, columns=columns).read(path)) == [*kept[:2], Drop(4, "no label"), kept[2]]
    rows = [{"text": "a", "toxic": 1, "threat": True}, {"text": "b", "toxic": 0, "threat": 0.0}]
    path.write_text("\n".join(map(json.dumps, rows)))
    found = [row.record for row in JsonlConfig(columns=columns).read(path) if isinstance(row, Kept)]
    assert found == [TextRecord("1", "a", ("toxic", "threat")), TextRecord("2", "b", ())]


def test_a_table_of_words_gives_sentences_and_a_bad_row_spoils_its_own(tmp_path: Path) -> None:
    """Kaggle's table of words was read as texts with a label."""
    rows = [
        "Sentence #,Word,Tag",
        "Sentence: 1,Ada,B-per",
        '"",",",O',
        "Sentence: 2,ran,O",
        ",x",
        "Sentence: 3,Bob,B-per",
    ]
    reader = TablesConfig(quoting=True, delimiter=",", columns=WordColumns())
    first, second, third = reader.read(written(tmp_path, "\n".join(rows)))
    assert first == Kept(2, TaggedRecord("2", ("Ada", ","), ("B-per", "O")))
    assert (type(second), second.place) == (Bad, 5)
    assert third == Kept(6, TaggedRecord("6", ("Bob",), ("B-per",)))
    (spaced,) = reader.read(written(tmp_path, "\n".join([rows[0], "1,Ann,B-per ", "1,Lee,I-per "])))
    assert spaced == Kept(2, TaggedRecord("2", ("Ann", "Lee"), ("B-per", "I-per"))), "a space made another class"


def test_a_column_that_counts_the_spans_is_no_id_of_the_texts(tmp_path: Path) -> None:
    """Each span was alone in a copy of its text, where all other words were tagged O."""
    spans = [(f"Ann lives in town {n}", *span) for n in range(20) for span in ((0, 3, "PER"), (13, 17, "LOC"))]
    for names, ids in (("id", [[n] for n in range(40)]), ("id,doc_id", [[n, n // 2] for n in range(40)])):
        lines = [",".join(map(str, (*own, *span))) for own, span in zip(ids, spans, strict=True)]
        path = written(tmp_path, "\n".join([f"{names},text,start,end,label", *lines]), "a.csv")
        found = guess(path)
        assert [record.content[-1] for record in found.records] == [str(n) for n in range(20)]
        columns = found.reader["tables"]["columns"]["span_rows"]
        assert columns.get("id") == ("doc_id" if "doc_id" in names else None)


def test_the_line_that_names_a_delimiter_to_excel_is_refused(tmp_path: Path) -> None:
    """It was taken for the header, and the header for a text with a label of its own."""
    path = written(tmp_path, "sep=;\ntext;label\n" + "".join(f"a day {n};{n % 2}\n" for n in range(20)), "a.csv")
    with pytest.raises(DataError, match=r"line 1: expected the names of the columns, found sep=;: delete this"):
        guess(path)


def test_a_bad_row_between_two_sentences_may_be_of_either(tmp_path: Path) -> None:
    """A sentence that lost its first word was kept without it."""

    def found(columns: WordColumns | SpanRows, *rows: str) -> list[int | tuple[str, ...]]:
        """The words of each sentence, or the line of the row that spoils it."""
        path = written(tmp_path, "\n".join(rows), "a.csv")
        results = TablesConfig(quoting=True, delimiter=",", columns=columns).read(path)
        return [row.record.content if isinstance(row, Kept) else int(row.place) for row in results]

    words, head = WordColumns(), "Sentence #,Word,Tag"
    bad, good = "2,New,B-LOC,EXTRA", ["3,a,O", "3,b,O"]
    assert found(words, head, "1,Ann,O", bad, "2,York,O", *good) == [3, 3, ("a", "b")]
    assert found(words, head, "2,a,O", bad, "2,York,O", *good) == [3, ("a", "b")]
    once = [",York,O", "3,a,O", ",b,O"]
    assert found(words, head, "1,Ann,O", bad, *once) == [3, ("a", "b")]
    assert found(words, head, "2,New,O", ",York,O,EXTRA", *once[1:]) == [3, ("a", "b")], "each begins with its number"
    assert found(words, head, bad, *once[1:]) == [2, ("a", "b")]
    spans = ["text,start,end,label", "Ann sat,0,3,PER", "Bob ran,0,3,PER,EXTRA", "Bob ran,4,7,ACT", "no one,,,"]
    assert found(SpanRows(), *spans) == [3, 3, ("no", "one")]


@pytest.mark.parametrize(("end", "compress"), [("bz2", bz2.compress), ("xz", lzma.compress), ("zip", zipped)])
def test_compressed_files_are_read_whatever_their_name(
    end: str, compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """A zip archive was read as text in latin-1."""
    content = compress((HEAD + "a\tb\t1\n").encode())
    for name in (f"pairs.tsv.{end}", "pairs.tsv"):
        found = list(TablesConfig(quoting=False).read(written(tmp_path, content, name)))
        assert found == [Kept(2, PairRecord("2", "a", "b", "1"))]
    with pytest.raises(DataError, match=r"a whole [a-z0-9]+ file"):
        list(TablesConfig(quoting=False).read(written(tmp_path, content[:-6], f"half.{end}")))


def test_a_zip_archive_of_several_files_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, zipped(b"a", b"b"), "two.zip")
    with pytest.raises(DataError, match=r"2 files \(0.tsv, 1.tsv\): unpack it"):
        list(TablesConfig(quoting=False).read(path))


def test_a_file_of_excel_is_named(tmp_path: Path) -> None:
    """It was a zip archive of several files, with the advice to unpack it."""
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as archive:
        for name in ("[Content_Types].xml", "xl/workbook.xml", "xl/worksheets/sheet1.xml"):
            archive.writestr(name, "<x/>")
    for read in (lambda path: guess(path), lambda path: list(TablesConfig(quoting=False).read(path))):
        with pytest.raises(DataError, match="found a file of Excel: export it as CSV"):
            read(tmp_path / "a.xlsx")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le", "UTF8"])
def test_a_table_in_another_encoding(encoding: str, tmp_path: Path) -> None:
    reader = TablesConfig(quoting=False, encoding=encoding)
    path = written(tmp_path, ("\ufeff" * (encoding == "utf-16-le") + HEAD + "caf\u00e9\tb\t1\r\n").encode(encoding))
    assert list(reader.read(path)) == [Kept(2, PairRecord("2", "caf\u00e9", "b", "1"))]
    assert (reader.encoding == "utf-8") == (encoding == "UTF8")


def test_a_wrong_encoding_is_an_error(tmp_path: Path) -> None:
    for name in ("klingon", "rot13", "base64"):
        with pytest.raises(ValidationError, match="must be an encoding that Python knows, such as utf-8, latin-1"):
            TablesConfig(quoting=False, encoding=name)
    path = written(tmp_path, HEAD + "caf\u00e9\tb\t1\n")
    with pytest.raises(DataError, match=r"pairs\.tsv, line .: expected utf-16, found .*: set another `encoding`"):
        list(TablesConfig(quoting=False, encoding="utf-16").read(path))
    with pytest.raises(DataError, match=r"pairs\.tsv, line 2: expected text in the encoding .*, found byte 0xc3 in"):
        gather(path, lambda: TablesConfig(quoting=False, encoding="ascii").read(path))


def test_columns_go_by_number_without_a_header(tmp_path: Path) -> None:
    reader = TablesConfig(quoting=False, header=False, columns=PairColumns(id=0, first=1, second=2, label=-1))
    path = written(tmp_path, "x\ta\tb\t?\t1\ny\tc\td\t?\t0\n")
    assert list(reader.read(path)) == [
        Kept(1, PairRecord("x", "a", "b", "1")),
        Kept(2, PairRecord("y", "c", "d", "0")),
    ]


def test_a_row_without_a_label_is_a_drop_and_a_row_of_another_width_is_bad(tmp_path: Path) -> None:
    path = written(tmp_path, HEAD + "a\tb\t \n\t\t\na\tb\n\na\tb\t1\tc\n")
    found = list(TablesConfig(quoting=False).read(path))
    assert [(row.place, type(row)) for row in found if not isinstance(row, Kept)] == [
        (2, Drop),
        (3, Drop),
        (4, Bad),
        (6, Bad),
    ]
    assert len(found) == 4


def test_rows_without_a_text_are_counted_drops_but_are_predicted(tmp_path: Path) -> None:
    """Empty texts with labels were kept without a word, and a model learned their labels as those of no text."""
    path = written(tmp_path, HEAD + "a\t\t1\n \t\t0\n\tb\t1\n")
    found = list(TablesConfig(quoting=False).read(path))
    assert [(type(row), row.place) for row in found] == [(Kept, 2), (Drop, 3), (Kept, 4)]
    assert found[1] == Drop(3, "no text")
    texts = TextColumns(text="sentence2", label="label")
    assert [type(row) for row in TablesConfig(quoting=False, columns=texts).read(path)] == [Drop, Drop, Kept]
    assert len(list(TablesConfig(quoting=False, columns=texts).read(path, "ignored"))) == 3
    path.write_text('{"sentence2": " ", "label": 1}\n{"sentence2": "", "label": []}\n{"sentence2": "", "label": null}')
    found = list(JsonlConfig(columns=texts).read(path))
    assert found == [Drop(1, "no text"), Drop(2, "no text"), Drop(3, "no label")]
    assert [type(row) for row in JsonlConfig(columns=texts).read(path, "ignored")] == [Kept] * 3


def test_labels_in_a_list_have_no_space_around_them_and_empty_ones_are_none(tmp_path: Path) -> None:
    """In a list, " a", "a" and "" were three labels, and one in a cell with separators."""
    path = written(tmp_path, '{"sentence": "t", "label": [" a", "a", "", "b "]}\n{"sentence": "t", "label": [""]}', "a")
    records = [row.record for row in JsonlConfig(columns=TextColumns()).read(path) if isinstance(row, Kept)]
    assert [record.labels for record in records if isinstance(record, TextRecord)] == [("a", "b"), ()]
    path = written(tmp_path, "sentence\tlabel\nt\t[' a', 'a', '', 'b ']\nu\t[]\nv\t['a' ... 'b']\n")
    row, empty, cut = TablesConfig(quoting=False, columns=TextColumns(lists=True)).read(path)
    assert row == Kept(2, TextRecord("2", "t", ("a", "b")))
    assert empty == Kept(3, TextRecord("3", "u", ()))
    assert isinstance(cut, Bad), "some of its labels are missing"


def test_a_dash_is_no_label_in_the_column_of_snli_and_a_label_elsewhere(tmp_path: Path) -> None:
    rows = "a\tb\t+\na\tc\t-\n"
    for label, kinds in (("gold_label", [Kept, Drop]), ("label", [Kept, Kept])):
        path = written(tmp_path, f"sentence1\tsentence2\t{label}\n{rows}")
        found = TablesConfig(quoting=False, columns=PairColumns(label=label)).read(path)
        assert [type(row) for row in found] == kinds


def test_arrays_as_numpy_writes_them_are_lists_of_their_texts(tmp_path: Path) -> None:
    """`to_csv` puts no commas between the texts of an array, and Python joined them to one text."""
    labels = np.array(["billing", "it's", 'say "no"'])
    words = np.array(["EU", "rejects", "...", *["calls"] * 20], dtype=object)
    assert "\n" in str(words)
    assert literal(str(labels)) == [*labels]
    assert literal(str(words)) == [*words]
    cut = np.array2string(words, threshold=9)
    empty = np.array(["EU", None], dtype=object)
    path = tmp_path / "a.csv"
    rows = [(words, np.array(["O"] * len(words))), (cut, np.array(["O"] * 7)), (empty, np.array(["O", "O"]))]
    pd.DataFrame(rows, columns=["tokens", "tags"]).to_csv(path, index=False)
    found = TablesConfig(quoting=True, delimiter=",", columns=TaggedColumns()).read(path)
    assert [row.record.content if isinstance(row, Kept) else type(row) for row in found] == [tuple(words), Bad, Bad]


def test_an_empty_cell_of_several_labels_says_that_none_applies(tmp_path: Path) -> None:
    path = written(tmp_path, "sentence\tlabel\na\tx|y\nb\t\nc\t |\n")
    found = list(TablesConfig(quoting=False, columns=TextColumns(separator="|")).read(path))
    labels = {2: ("a", ("x", "y")), 3: ("b", ()), 4: ("c", ())}
    assert found == [Kept(line, TextRecord(str(line), *values)) for line, values in labels.items()]


@settings(max_examples=60)
@given(st.lists(st.tuples(*[st.text(st.sampled_from('ab",\t\n '), max_size=6)] * 2), min_size=1, max_size=6))
@example([("a,b,1\nc,d,0", "x")])
def test_quoted_fields_come_back_as_csv_wrote_them(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    """A valid field of several lines, each with as many delimiters as a row, was refused as a stray quote."""
    path = tmp_path_factory.mktemp("quoted") / "pairs.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([("sentence1", "sentence2", "label"), *((*row, "1") for row in rows)])
    found = list(TablesConfig(quoting=True, delimiter=",").read(path))
    records = [row.record for row in found if isinstance(row, Kept)]
    expected = [row for row in rows if "".join(row).strip()]
    assert [(record.first, record.second) for record in records if isinstance(record, PairRecord)] == expected


def test_a_long_field_is_read_and_does_not_decide_the_quoting(tmp_path: Path) -> None:
    """The limit of `csv`, 131,072 characters, made one long text the reason to read a whole file without quoting."""
    rows = [(f'it said ""no"" to {number}', "ab"[number % 2]) for number in range(200)] + [("word " * 30_000, "a")]
    text = "".join(f'"{text}",{label}\n' for text, label in rows)
    path = written(tmp_path, f"text,label\n{text}", "long.csv")
    found = guess(path)
    assert found.reader["tables"]["quoting"] is True
    assert isinstance(found.records[0], TextRecord)
    assert (len(found.records), found.records[0].text) == (201, 'it said "no" to 0')


@pytest.mark.real_data
def test_mrpc_loses_no_row(data_folder: Path) -> None:
    reader = TablesConfig(quoting=False, columns=PairColumns(first="#1 String", second="#2 String", label="Quality"))
    counts = Counter[str]()
    for split, size in [("train", 4076), ("test", 1725)]:
        found = [
            row for row in reader.read(data_folder / "mrpc" / f"msr_paraphrase_{split}.txt") if isinstance(row, Kept)
        ]
        assert len(found) == size
        counts.update(row.record.label for row in found if isinstance(row.record, PairRecord))
    assert counts == {"1": 3900, "0": 1901}


@pytest.mark.real_data
def test_qqp_drops_its_two_rows_without_a_label(data_folder: Path) -> None:
    reader = TablesConfig(quoting=True, columns=PairColumns(id="id", label="is_duplicate"))
    found = list(reader.read(data_folder / "qqp" / "quora-dev.csv"))
    assert [(row.place, type(row)) for row in found if not isinstance(row, Kept)] == [(2577, Drop), (14222, Drop)]
    assert len(found) == 20214
