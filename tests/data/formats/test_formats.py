"""What each reader yields of a sound file, with the oddities that published files have."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pyarrow
import pytest
from pyarrow import parquet
from pydantic import ValidationError

from dice_ray.data.formats.base import Bad, Drop, Kept, ReaderBranch, RowResult
from dice_ray.data.formats.columns import PairColumns, TextColumns
from dice_ray.data.formats.conll import ConllConfig, ConlluConfig
from dice_ray.data.formats.questions import _MISPLACED, MrcNerReaderConfig, SquadConfig
from dice_ray.data.formats.rows import _BATCH_SIZE, JsonlConfig, ParquetConfig
from dice_ray.data.formats.sentences import ParallelConfig, WordTagConfig
from dice_ray.data.formats.tags import in_document
from dice_ray.data.formats.texts import FasttextConfig, TreesConfig
from dice_ray.data.records import (
    AnswerSpan,
    NestedRecord,
    PairRecord,
    QueryRecord,
    QuestionRecord,
    TaggedRecord,
    TextRecord,
    WordSpan,
)
from dice_ray.errors import shown


def read(reader: ReaderBranch, folder: Path, content: str | bytes) -> list[RowResult]:
    path = folder / "data.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(reader.read(path))


def tagged(line: int, words: str, tags: str) -> Kept:
    return Kept(line, TaggedRecord(str(line), tuple(words.split(" ")), tuple(tags.split(" "))))


@pytest.mark.parametrize("separator", ["", "\t", " ", " \t ", "\r"])
def test_conll_sentences_end_at_any_line_without_text(tmp_path: Path, separator: str) -> None:
    content = f"a\tO\nb\tI-X\n{separator}\n{separator}\nc\tB-X"
    assert read(ConllConfig(), tmp_path, content) == [tagged(1, "a b", "O B-X"), tagged(5, "c", "B-X")]


def test_conll_takes_chosen_columns_and_document_marks(tmp_path: Path) -> None:
    content = "-DOCSTART- -X- -X- O\n\nEU NNP B-NP I-ORG\nrejects VBZ  B-VP O\n-DOCSTART- -X- -X- O\n. . O O\n"
    named, parts = read(ConllConfig(), tmp_path, content), read(ConllConfig(tag=1, tags="plain"), tmp_path, content)
    for results, tags in ((named, "B-ORG O"), (parts, "NNP VBZ")):
        first, second = tagged(3, "EU rejects", tags), tagged(6, ".", "O" if tags == "B-ORG O" else ".")
        assert results == [in_document(first, 1), in_document(second, 5)]
    in_second = Kept(6, TaggedRecord("6", (".",), ("O",), document="5"), document=5)
    assert named[-1] == in_second


def test_conll_words_keep_what_is_no_separator(tmp_path: Path) -> None:
    content = "\ufeff#\tO\r\n10\u00a0000\tO\r\n\u200b\tO\r\n\U0001f600\u2028x\tB-X\r\nNew York\tB-X\r\n\u3000\tO\r\n"
    (results,) = read(ConllConfig(), tmp_path, content)
    assert isinstance(results, Kept)
    assert isinstance(results.record, TaggedRecord)
    assert results.record.words == ("#", "10\u00a0000", "\u200b", "\U0001f600\u2028x", "New York", "\u3000")
    assert read(ConllConfig(), tmp_path, "10\u00a0000  O \n") == [tagged(1, "10\u00a0000", "O")]


def test_conll_leaves_out_comments_and_digits_where_told(tmp_path: Path) -> None:
    """`init` said that half of the rows of a file were dropped, as its comments were counted as rows."""
    results = read(ConllConfig(comment="# "), tmp_path, "# id 1\n#\tO\n")
    assert results == [tagged(2, "#", "O")]
    assert read(ConllConfig(digit=True), tmp_path, "a0\tO\n71\tB-PER.NOM\n") == [tagged(1, "a 7", "O B-PER.NOM")]


def test_conll_takes_no_word_within_a_sentence_for_a_comment(tmp_path: Path) -> None:
    content = "# id 1\nin O\n#paris B-location\n# seen by two\n#rstats O\n\n# id\na O\n\n# the end of it\n"
    assert read(ConllConfig(comment="#"), tmp_path, content) == [
        tagged(2, "in #paris #rstats", "O B-location O"),
        tagged(8, "a", "O"),
    ]


def test_conllu_leaves_out_ranges_and_empty_nodes(tmp_path: Path) -> None:
    def row(number: str, word: str, upos: str) -> str:
        return "\t".join([number, word, "_", upos, "X", *"_____"])

    rows = [
        "# text = don't go",
        row("1-2", "don't", "_"),
        row("1", "do", "AUX"),
        row("2", "n't", "PART"),
        row("2.1", "to", "_"),
        row("3", "go", "VERB"),
        "",
        "# text = 1 000",
        row("1", "1\u00a0000", "NUM"),
        "",
        row("1", "a", "_"),
    ]
    content = "\n".join(rows)
    assert read(ConlluConfig(), tmp_path, content) == [
        tagged(2, "do n't go", "AUX PART VERB"),
        tagged(9, "1\u00a0000", "NUM"),
        Drop(11, "a word without upos"),
    ]
    assert read(ConlluConfig(tag="xpos"), tmp_path, content)[0] == tagged(2, "do n't go", "X X X")


def test_an_empty_list_of_labels_says_that_none_applies_and_no_list_that_none_is_known(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"label": ["x", "y"]},
        {"label": []},
        {"label": None},
        {},
        {"label": ""},
        {"label": "x"},
    ]
    content = "\n".join(json.dumps({"sentence": "a"} | line) for line in lines)

    def kept(line: int, *labels: str) -> Kept:
        return Kept(line, TextRecord(str(line), "a", labels))

    whole, parted = (read(JsonlConfig(columns=TextColumns(separator=by)), tmp_path, content) for by in (None, "|"))
    drops = [Drop(3, "no label"), Drop(4, "no key 'label' for the label")]
    assert whole == [kept(1, "x", "y"), kept(2), *drops, Drop(5, "no label"), kept(6, "x")]
    assert parted == [kept(1, "x", "y"), kept(2), *drops, kept(5), kept(6, "x")]
    pair = '{"sentence1": "a", "sentence2": "b", "label": []}'
    assert read(JsonlConfig(), tmp_path, pair) == [Drop(1, "no label")]


def test_word_tag_and_parallel_sentences(tmp_path: Path) -> None:
    results = read(WordTagConfig(), tmp_path, "The_DT cat_NN\n\nsnake_case_JJ ._. \n")
    assert results == [tagged(1, "The cat", "DT NN"), tagged(3, "snake_case .", "JJ .")]
    assert read(WordTagConfig(separator="/"), tmp_path, "1/2/CD\n") == [tagged(1, "1/2", "CD")]
    for name, reader in [("tags.txt", ParallelConfig()), ("data.tags", ParallelConfig(tag_file="*.tags"))]:
        (tmp_path / name).write_text("O S-X\n\nO\n")
        assert read(reader, tmp_path, "a  b \n\nc\n") == [tagged(1, "a b", "O B-X"), tagged(3, "c", "O")]


def test_parallel_texts_have_a_label_on_the_same_line_of_another_file(tmp_path: Path) -> None:
    (tmp_path / "train_labels.txt").write_text("1\n\n0\n0\n2\n")
    reader = ParallelConfig(tag_file="*_labels.txt", units="texts", names=("no", "yes"))
    (tmp_path / "train_text.txt").write_text("a  b \n\n\nc\nd\n")
    assert reader.yields() is TextRecord
    assert list(reader.read(tmp_path / "train_text.txt")) == [
        Kept(1, TextRecord("1", "a  b", ("yes",))),
        Drop(3, "no text"),
        Kept(4, TextRecord("4", "c", ("no",))),
        Bad(5, "numbers with a name each in `names`, which has 2", "'2'"),
    ]
    ignored = [
        row.record.content for row in reader.read(tmp_path / "train_text.txt", "ignored") if isinstance(row, Kept)
    ]
    assert ignored == [("a  b",), ("c",), ("d",)]


def test_trees_give_sentences_or_phrases_of_five_classes_or_two(tmp_path: Path) -> None:
    content = "(3 (2 It) (4 (2 -LRB-) (4 works)))\n\n(2 (0 Bad) (2 .))\n"
    five = [Kept(1, TextRecord("1", "It ( works", ("3",))), Kept(3, TextRecord("3", "Bad .", ("2",)))]
    assert read(TreesConfig(), tmp_path, content) == five
    binary = read(TreesConfig(classes="binary"), tmp_path, content)
    assert binary == [Kept(1, TextRecord("1", "It ( works", ("1",))), Drop(3, "a neutral text")]
    phrases = read(TreesConfig(units="phrases"), tmp_path, content)
    assert [(row.record.id, row.record.content[0]) for row in phrases if isinstance(row, Kept)] == [
        ("1", "It ( works"),
        ("1.1", "It"),
        ("1.2", "( works"),
        ("1.3", "("),
        ("1.4", "works"),
        ("3", "Bad ."),
        ("3.1", "Bad"),
        ("3.2", "."),
    ]


def test_json_lines_and_parquet_give_texts_and_pairs(tmp_path: Path) -> None:
    rows = [
        {"id": 7, "sentence": "a\u2028b", "label": 115},
        {"id": "8", "sentence": "b", "label": ["x", "y", "x"]},
        {"id": 9, "sentence": "c", "label": "x|z"},
        {"id": 10, "sentence": "d", "label": None},
    ]
    reader = JsonlConfig(columns=TextColumns(id="id", separator="|"))
    results = read(
        reader,
        tmp_path,
        "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows) + '{"id": 1, "sentence": ""}\n',
    )
    assert results == [
        Kept(1, TextRecord("7", "a\u2028b", ("115",))),
        Kept(2, TextRecord("8", "b", ("x", "y"))),
        Kept(3, TextRecord("9", "c", ("x", "z"))),
        Drop(4, "no label"),
        Drop(5, "no key 'label' for the label"),
    ]
    file = io.BytesIO()
    label = [1.0, None, float("nan")]  # a data set of `datasets` keeps the NaN of pandas
    table = {"first": [*"abc"], "second": [*"def"], "label": label, "more": [[], [1], []]}
    parquet.write_table(pyarrow.table(table), file, row_group_size=1)
    columns = PairColumns(first="first", second="second")
    assert read(ParquetConfig(columns=columns), tmp_path, file.getvalue()) == [
        Kept(1, PairRecord("1", "a", "d", "1.0")),
        Drop(2, "no label"),
        Drop(3, "no label"),
    ]


def test_parquet_rows_are_numbered_over_all_batches(tmp_path: Path) -> None:
    file = io.BytesIO()
    size = 2 * _BATCH_SIZE + 1
    parquet.write_table(pyarrow.table({"sentence": ["a"] * size, "label": [1] * (size - 1) + [None]}), file)
    results = read(ParquetConfig(columns=TextColumns()), tmp_path, file.getvalue())
    assert (len(results), results[-1]) == (size, Drop(size, "no label"))


def test_squad_tells_alternatives_spans_impossible_and_unlabelled_questions_apart(tmp_path: Path) -> None:
    context = "\U0001f600 Ann and Bob ran."
    ann, bob = {"text": "Ann", "answer_start": 2}, {"text": "Bob", "answer_start": 10}
    asked = [
        {"id": "1", "question": "Who?", "answers": [ann, bob]},
        {"id": "2", "question": "Who?", "answers": [ann], "is_impossible": True},
        {"id": 3, "question": "Who?"},
        {"id": "4", "question": "Who?", "answers": [ann | {"answer_start": 3}, {"text": "ran.", "answer_start": -4}]},
    ]
    content = json.dumps({"version": "2", "data": [{"paragraphs": [{"context": context, "qas": asked}]}]})
    place = "data[0].paragraphs[0]"
    spans = AnswerSpan("Ann", 2), AnswerSpan("Bob", 10)

    def question(number: int, answers: tuple[tuple[AnswerSpan, ...], ...], impossible: bool = False) -> QuestionRecord:
        return QuestionRecord(str(number), "Who?", context, answers, impossible, place)

    results = read(SquadConfig(), tmp_path, content)
    misplaced = question(4, ((AnswerSpan("Ann", -1),), (AnswerSpan("ran.", -1),)))
    assert results == [
        Kept(f"{place}.qas[0]", question(1, ((spans[0],), (spans[1],))), document="data[0]"),
        Kept(f"{place}.qas[1]", question(2, (), impossible=True), document="data[0]"),
        Drop(f"{place}.qas[2]", "no label"),
        Kept(f"{place}.qas[3]", misplaced, (_MISPLACED,), document="data[0]"),
    ]
    wanted = read(SquadConfig(several="spans"), tmp_path, content)
    assert wanted[:3] == [Kept(f"{place}.qas[0]", question(1, (spans,)), document="data[0]"), *results[1:3]]


def test_mrc_ner_keeps_nested_spans_of_a_query(tmp_path: Path) -> None:
    item = {"context": "New York Bank", "query": "places", "entity_label": "LOC", "qas_id": "0.2", "impossible": False}
    content = json.dumps([item | {"start_position": [0, 0], "end_position": [1, 2]}])
    record = QueryRecord("0.2", ("New", "York", "Bank"), "places", "LOC", ((0, 2), (0, 3)), "")
    (results,) = read(MrcNerReaderConfig(), tmp_path, content)
    assert isinstance(results, Kept)
    assert isinstance(results.record, QueryRecord)
    assert replace(results.record, group="") == record


def test_mrc_ner_puts_together_the_queries_of_one_sentence_alone(tmp_path: Path) -> None:
    ids = [("0.1", "Ann ran"), ("0.2", "Ann  ran"), ("0.3", "Bob sat"), ("1.1", "Ann ran"), ("doc", "Ann ran")]
    empty: dict[str, Any] = {"query": "persons", "entity_label": "PER", "start_position": [], "end_position": []}
    results = read(
        MrcNerReaderConfig(), tmp_path, json.dumps([empty | {"qas_id": id_, "context": text} for id_, text in ids])
    )
    groups = [one.record.group for one in results if isinstance(one, Kept) and isinstance(one.record, QueryRecord)]
    assert groups[0] == groups[1]
    assert len(set(groups)) == 4


def test_mrc_ner_reads_which_start_goes_with_which_end(tmp_path: Path) -> None:
    item = {"context": "New York Bank of Rome", "query": "places", "entity_label": "LOC", "qas_id": "0.2"}
    positions = {"start_position": [0, 1], "end_position": [1, 2, 4]}
    content = json.dumps([item | positions | {"span_position": ["1;1", "0;2", "0;4"]}])
    (results,) = read(MrcNerReaderConfig(), tmp_path, content)
    assert isinstance(results, Kept)
    assert isinstance(results.record, QueryRecord)
    assert results.record.spans == ((1, 2), (0, 3), (0, 5))


def test_fasttext_reads_any_number_of_labels(tmp_path: Path) -> None:
    content = "__label__a , a b\n__label__x __label__y  good film\nno label\n\n__label__x\n"
    texts = [Kept(1, TextRecord("1", ", a b", ("a",))), Kept(2, TextRecord("2", "good film", ("x", "y")))]
    drops = [Drop(3, "no label"), Drop(4, "no text"), Drop(5, "no text")]
    assert read(FasttextConfig(), tmp_path, content) == [*texts, *drops]


def test_any_ascii_white_space_ends_a_label_of_fasttext(tmp_path: Path) -> None:
    """A tab after a label made the first word of the text a part of it."""
    content = "__label__a\t__label__b\x0b \tgood\tfilm\n__label__c\u00a0d e\n"
    assert read(FasttextConfig(), tmp_path, content) == [
        Kept(1, TextRecord("1", "good\tfilm", ("a", "b"))),
        Kept(2, TextRecord("2", "e", ("c\u00a0d",))),
    ]


def test_a_label_of_fasttext_without_a_name_is_malformed(tmp_path: Path) -> None:
    """The class of such texts was the empty text."""
    content = "__label__ good film\n__label__a __label__, good film\n"
    bad = [Bad(line, "a label after '__label__'", shown(text)) for line, text in enumerate(content.splitlines(), 1)]
    assert read(FasttextConfig(), tmp_path, content) == bad
    kept = list(FasttextConfig().read(tmp_path / "data.txt", "ignored"))
    assert kept == [Kept(line, TextRecord(str(line), "good film", ())) for line in (1, 2)]


@pytest.mark.parametrize(("label", "first"), [("fine", "DESC:manner"), ("coarse", "DESC")])
def test_a_label_of_two_parts_is_read_whole_or_its_first_part(
    tmp_path: Path, label: Literal["fine", "coarse"], first: str
) -> None:
    content = "DESC:manner How did it end: well ?\nSee http://a.b ?\n\nHUM:ind\n"
    results = read(FasttextConfig(label=label), tmp_path, content)
    kept = Kept(1, TextRecord("1", "How did it end: well ?", (first,)))
    assert results == [kept, Drop(2, "no label"), Drop(3, "no text"), Drop(4, "no label")]


def test_nested_columns_brackets_and_trees_that_are_malformed(tmp_path: Path) -> None:
    nested = ConllConfig(inner=(2,), tag=1)
    rows = read(nested, tmp_path, "Uni\tB-ORG\tO\nBonn\tI-ORG\tB-LOC\n\na\tO\tNN\n")
    assert rows[0] == Kept(1, NestedRecord("1", ("Uni", "Bonn"), (WordSpan("ORG", 0, 2), WordSpan("LOC", 1, 2))))
    assert isinstance(rows[1], Bad)
    assert rows[1].actual == "'NN'"
    with pytest.raises(ValidationError, match="inner tags must mark spans, got tags: plain"):
        ConllConfig(inner=(2,), tags="plain")
    brackets = ConllConfig(tags="brackets")
    content = "#begin document (a); part 0\na (X*\nb *\nc *)\n\nd x (Y)\n\n"
    tagged = [row.record for row in read(brackets, tmp_path, content) if isinstance(row, Kept)]
    assert [record.tags for record in tagged if isinstance(record, TaggedRecord)] == [("B-X", "I-X", "I-X"), ("B-Y",)]
    for tags in ("(X*", "*)", "(X* (Y*)", "x"):
        (row,) = read(brackets, tmp_path, "".join(f"a {tag}\n" for tag in tags.split()))
        assert isinstance(row, Bad), tags
    trees = read(TreesConfig(units="words"), tmp_path, "(S (NP (-NONE- *))\n (VB go\\/run))\n(S (NP))\n) (S (A b)\n")
    assert trees[0] == Kept(1, TaggedRecord("1", ("go/run",), ("VB",)))
    assert [type(row) for row in trees[1:]] == [Drop, Bad, Bad]
