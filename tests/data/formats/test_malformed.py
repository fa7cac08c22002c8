"""A corpus of malformed files: each gives its error with its place, or its counted drop; no row is lost in silence."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from dice_ray.data.formats.base import ReaderBranch
from dice_ray.data.formats.columns import PairColumns, TextColumns
from dice_ray.data.formats.conll import ConllConfig, ConlluConfig
from dice_ray.data.formats.lists import QuestionColumns, TaggedColumns
from dice_ray.data.formats.questions import MrcNerReaderConfig, SquadConfig
from dice_ray.data.formats.rows import ArrowConfig, JsonlConfig, ParquetConfig
from dice_ray.data.formats.sentences import ParallelConfig, WordTagConfig
from dice_ray.data.formats.tables import TablesConfig
from dice_ray.data.formats.texts import TreesConfig
from dice_ray.data.reading import gather
from dice_ray.errors import DataError


@dataclass(frozen=True)
class Malformed:
    """A file, and the pieces that its error must hold in this order.

    Attributes:
        kept: The records that are kept when bad rows are skipped; none if the whole file is refused.
        dropped: The rows that are dropped then.
        beside: Further files by name.
    """

    reader: ReaderBranch
    content: str | bytes
    error: tuple[str, ...]
    kept: int | None = None
    dropped: int = 1
    beside: dict[str, str] = field(default_factory=dict)
    name: str = "data.txt"


PAIRS = "sentence1\tsentence2\tlabel\n"
TSV, CSV = TablesConfig(quoting=False), TablesConfig(quoting=True, delimiter=",")
NUMBERED = TablesConfig(quoting=False, header=False, columns=PairColumns(first=0, second=1, label=2))
CONLL, POS, WEIBO = ConllConfig(), ConllConfig(tags="plain"), ConllConfig(digit=True)
CONLLU, WORD_TAG, PARALLEL, TREES = ConlluConfig(), WordTagConfig(), ParallelConfig(), TreesConfig()
JSONL, JSONL_TEXT = JsonlConfig(), JsonlConfig(columns=TextColumns())
JSONL_TAGGED, JSONL_QUESTION = JsonlConfig(columns=TaggedColumns()), JsonlConfig(columns=QuestionColumns())
SQUAD, MRC_NER, PARQUET, ARROW = SquadConfig(), MrcNerReaderConfig(), ParquetConfig(), ArrowConfig()
PAIR = '{"sentence1": "a", "sentence2": "b", "label": 1}\n'


def word(number: str = "1", columns: int = 10) -> str:
    return "\t".join([number, "cat", "cat", "NOUN", "NN", *["_"] * (columns - 5)]) + "\n"


def squad(*questions: Any, **paragraph: Any) -> str:
    """One sound question and the given ones."""
    sound = {"id": "q0", "question": "Who?", "answers": [{"text": "Ann", "answer_start": 0}]}
    return json.dumps({"data": [{"paragraphs": [{"context": "Ann ran.", "qas": [sound, *questions], **paragraph}]}]})


def asked(*answers: Any, **keys: Any) -> dict[str, Any]:
    return {"id": "q1", "question": "Who?", "answers": list(answers), **keys}


def queries(**keys: Any) -> str:
    sound: dict[str, Any] = {"context": "Ann ran", "query": "persons", "entity_label": "PER", "qas_id": "0.1"}
    sound |= {"start_position": [0], "end_position": [0]}
    return json.dumps([sound, sound | {"qas_id": "1.1"} | keys])


def columns(**values: list[Any]) -> bytes:
    file = io.BytesIO()
    parquet.write_table(pyarrow.table(values), file)
    return file.getvalue()


def arrow(text: bytes = b"a", end: int = 1) -> bytes:
    """An Arrow file of two pairs, whose first text is said to end at a place."""
    offsets = pyarrow.array([0, end, 1], pyarrow.int32()).buffers()[1]
    texts = pyarrow.StringArray.from_buffers(2, offsets, pyarrow.py_buffer(text))
    batch, file = pyarrow.record_batch({"sentence1": texts, "sentence2": ["b", "c"], "label": [1, 0]}), io.BytesIO()
    with pyarrow.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)
    return file.getvalue()


def question(answers: Any = None, **lists: list[Any]) -> str:
    row = {"id": str(len(lists)), "question": "Who?", "context": "Ann ran.", "answers": lists or answers}
    return json.dumps(row) + "\n"


def classes(numbers: list[int], *names: str) -> bytes:
    """Class labels as `datasets` writes them."""
    import datasets

    features = datasets.Features(sentence=datasets.Value("string"), label=datasets.ClassLabel(names=list(names)))
    table = pyarrow.table({"sentence": ["a"] * len(numbers), "label": numbers})
    file = io.BytesIO()
    parquet.write_table(table.cast(features.arrow_schema), file)
    return file.getvalue()


TAGGED = '{"tokens": ["a", "b"], "tags": ["O", "B-X"]}\n'
QUESTION = '{"id": "sound", "question": "Who?", "context": "Ann ran.", "answers": []}\n'

CORPUS = {
    "table: empty": Malformed(TSV, "", ("line 1", "a table", "an empty file")),
    "table: only a BOM": Malformed(TSV, "\ufeff", ("line 1", "a table")),
    "table: no such column": Malformed(
        TSV, "sentence1\tsentence2\tlabl\n", ("line 1", "'label'", "did you mean 'labl'")
    ),
    "table: column twice": Malformed(
        TSV, "sentence1\tlabel\tlabel\tsentence2\n", ("line 1", "one column named 'label'")
    ),
    "table: too few columns": Malformed(TSV, PAIRS + "a\tb\t1\na\tb\n", ("line 3", "3 columns", "found 2"), kept=1),
    "table: other delimiter": Malformed(TSV, "sentence1,sentence2,label\na,b,1\n", ("line 1", "'sentence1'", "found")),
    "table: names without a header": Malformed(
        TablesConfig(quoting=False, header=False), "a\tb\t1\n", ("line 1", "a header that names", "use numbers")
    ),
    "table: number beyond": Malformed(NUMBERED, "a\tb\n", ("line 1", "a column number 2", "2 columns")),
    "table: UTF-16": Malformed(TSV, PAIRS.encode("utf-16"), ("line 1", "UTF-8", "utf-16")),
    "table: no text": Malformed(TSV, b"\x7fELF\x02\x83\x00\xff\n\x01", ("line 1", "'sentence1'", "found byte 0x83 in")),
    "table: Latin-1": Malformed(TSV, (PAIRS + "caf\xe9\tb\t1\n").encode("latin-1"), ("line 2", "UTF-8", "0xe9"), 0),
    "table: truncated UTF-8": Malformed(TSV, (PAIRS + "a\tb\t\u20ac").encode()[:-1], ("line 2", "UTF-8", "0xe2"), 0),
    "table: quote open to the end": Malformed(
        CSV, 'sentence1,sentence2,label\na,b,1\n"a,b,1\na,b,1\n', ("line 3", "quotes that close", "to line 4")
    ),
    "table: text after a quote": Malformed(
        CSV, 'sentence1,sentence2,label\n"a"b,c,1\na,b,1\n', ("line 2", "fields quoted as CSV"), kept=1
    ),
    "table: quote open in the header": Malformed(
        CSV, 'sentence1,"sentence2,label\n', ("line 1", "fields quoted as CSV")
    ),
    "table: an id twice": Malformed(
        TablesConfig(quoting=False, columns=PairColumns(id="sentence1")),
        PAIRS + "a\tb\t1\na\tc\t1\n",
        ("line 3", "an id that no other row has", "'a'"),
        kept=1,
    ),
    "conll: a column missing": Malformed(CONLL, "a O\n\nb O\nc\n", ("line 4", "2 columns", "found 1: 'c'"), kept=1),
    "conll: words alone": Malformed(CONLL, "a\nb\n\nc\n", ("line 1", "columns number 0 and -1", "1 columns"), 0, 2),
    "conll: no such column": Malformed(ConllConfig(tag=3), "a O\n", ("line 1", "columns number 0 and 3"), kept=0),
    "conll: a tag of no scheme": Malformed(CONLL, "a O\n\nb PER\n", ("line 3", "tags of spans", "'PER'"), kept=1),
    "conll: a tag without a type": Malformed(CONLL, "a O\n\nb B-\n", ("line 3", "tags of spans", "'B-'"), kept=1),
    "conll: an empty word": Malformed(CONLL, "a\tO\n\n\tO\n", ("line 3", "neither of them empty"), kept=1),
    "conll: an empty tag": Malformed(POS, "a\tO\n\nb\t\n", ("line 3", "neither of them empty"), kept=1),
    "conll: a comment not said to be one": Malformed(CONLL, "# id 7\na O\n", ("line 2", "3 columns"), kept=0),
    "conll: a space of Unicode alone": Malformed(CONLL, "a\tO\n\u3000\n", ("line 2", "2 columns", "found 1"), kept=0),
    "conll: no digit": Malformed(WEIBO, "a0\tO\n\nb\tO\n", ("line 3", "ends in a digit", "'b'"), kept=1),
    "conll: bytes": Malformed(CONLL, b"a O\n\nb O\n\xfe O\n", ("line 3", "UTF-8", "byte 0xfe"), kept=1),
    "jsonl: bytes": Malformed(
        JSONL, PAIR.encode() + PAIR.replace('"b"', '"caf\xe9"').encode("latin-1"), ("line 2", "UTF-8", "byte 0xe9"), 1
    ),
    "squad: bytes": Malformed(
        SQUAD,
        squad(asked({"text": "Ann", "answer_start": 0}))
        .replace('Who?", "answers"', 'Wh\xf6?", "answers"')
        .encode("latin-1"),
        ("qas[0]", "UTF-8", "byte 0xf6"),
        kept=0,
        dropped=2,
    ),
    "conllu: nine columns": Malformed(CONLLU, word() + "\n" + word(columns=9), ("line 3", "10 columns"), kept=1),
    "conllu: spaces for tabs": Malformed(
        CONLLU, word() + "\n" + word().replace("\t", " "), ("line 3", "found 1"), kept=1
    ),
    "conllu: a number left out": Malformed(CONLLU, word() + word("3"), ("line 2", "the word number 2", "'3'"), kept=0),
    "conllu: no word": Malformed(CONLLU, word().replace("cat", ""), ("line 1", "neither of them empty"), kept=0),
    "word_tag: no tag": Malformed(WORD_TAG, "a_DT b_NN\nc_NN d\n", ("line 2", "word_TAG", "'d'"), kept=1),
    "word_tag: an empty word": Malformed(WORD_TAG, "a_DT\n_NN\n", ("line 2", "word_TAG", "'_NN'"), kept=1),
    "parallel: no tags": Malformed(PARALLEL, "a b\n", ("line 1", "a file of tags tags.txt beside it")),
    "parallel: a tag less": Malformed(
        PARALLEL,
        "a b\nc d\n",
        ("line 2", "as many tags as words", "1 tags for 2 words"),
        1,
        beside={"tags.txt": "O O\nO\n"},
    ),
    "parallel: a line less of tags": Malformed(
        PARALLEL, "a\nb\n", ("tags.txt, line 2", "as many lines"), beside={"tags.txt": "O\n"}
    ),
    "parallel: a line more of tags": Malformed(
        PARALLEL, "a\n", ("data.txt, line 2", "as many lines"), beside={"tags.txt": "O\nO\n"}
    ),
    "trees: open": Malformed(TREES, "(2 a)\n(2 (2 a)\n", ("line 2", "a tree as"), kept=1),
    "trees: closed twice": Malformed(TREES, "(2 a)\n(2 a))\n", ("line 2", "a tree as"), kept=1),
    "trees: no label": Malformed(TREES, "(2 a)\n((2 a) (2 b))\n", ("line 2", "a tree as"), kept=1),
    "trees: label beyond": Malformed(TREES, "(2 a)\n(5 a)\n", ("line 2", "a tree as", "'(5 a)'"), kept=1),
    "trees: no words": Malformed(TREES, "(2 a)\n(2)\n", ("line 2", "a tree as"), kept=1),
    "jsonl: no JSON": Malformed(JSONL, PAIR + "{'a': 1}\n", ("line 2", "a JSON object", "at character 2"), kept=1),
    "jsonl: a number without end": Malformed(
        JSONL, PAIR + PAIR.replace("1}", "1" * 5000 + "}"), ("line 2", "a JSON object", "Exceeds the limit"), kept=1
    ),
    "jsonl: too deep": Malformed(JSONL, PAIR + "[" * 99_999 + "\n", ("line 2", "a JSON object", "too deep"), kept=1),
    "jsonl: no number": Malformed(
        JSONL, PAIR + PAIR.replace("1}", "NaN}"), ("line 2", "a JSON object", "NaN, which is no JSON"), kept=1
    ),
    "parquet: no number": Malformed(
        PARQUET,
        columns(sentence1=["a", "b"], sentence2=["c", "d"], label=[[1.0], [float("nan")]]),
        ("line 2", "a label as 'label'", "[nan]"),
        kept=1,
    ),
    "squad: a number without end": Malformed(SQUAD, '{"data": ' + "1" * 5000 + "}", ("line 1", "JSON", "Exceeds"), 0),
    "mrc_ner: too deep": Malformed(MRC_NER, "[" * 99_999, ("line 1", "JSON", "too deep")),
    "jsonl: a list": Malformed(JSONL, PAIR + "[1]\n", ("line 2", "a JSON object", "[1]"), kept=1),
    "jsonl: half a document": Malformed(JSONL, "[\n" + PAIR, ("line 3", "JSON", "the end")),
    "jsonl: a key missing": Malformed(
        JSONL,
        PAIR + PAIR.replace("sentence2", "sentence"),
        ("line 2", "'sentence2'", "did you mean 'sentence'"),
        kept=1,
    ),
    "jsonl: a text that is none": Malformed(JSONL, PAIR + PAIR.replace('"b"', "7"), ("line 2", "'sentence2'", "7"), 1),
    "jsonl: a label that is none": Malformed(
        JSONL, PAIR + PAIR.replace("1}", "{}}"), ("line 2", "a label", "{}"), kept=1
    ),
    "jsonl: two labels of a pair": Malformed(
        JSONL, PAIR + PAIR.replace("1}", "[1, 2]}"), ("line 2", "one label", "1, 2"), 1
    ),
    "jsonl: a label in a list in a list": Malformed(
        JSONL_TEXT, '{"sentence": "a", "label": [[1]]}\n', ("line 1", "a label", "[[1]]"), kept=0
    ),
    "parquet: none": Malformed(PARQUET, "PAR1", ("the file", "Parquet")),
    "parquet: a column missing": Malformed(
        PARQUET, columns(sentence1=["a"], label=[1]), ("its schema", "'sentence2'", "'sentence1', 'label'")
    ),
    "arrow: no UTF-8": Malformed(ARROW, arrow(b"\xff"), ("the file", "Arrow", "Invalid UTF8")),
    # The process ended with a segmentation fault: Arrow does not check what it reads.
    "arrow: a text that ends behind the file": Malformed(ARROW, arrow(end=1 << 30), ("the file", "Arrow", "offset")),
    "arrow: torn": Malformed(ARROW, arrow()[:-40], ("the file", "Arrow", "Not an Arrow file")),
    "parquet: numbers as texts": Malformed(
        PARQUET, columns(sentence1=[7], sentence2=["a"], label=[1]), ("line 1", "'sentence1'", "7"), 0
    ),
    "tagged: fewer tags than words": Malformed(
        JSONL_TAGGED, TAGGED + '{"tokens": ["a", "b"], "tags": ["O"]}\n', ("line 2", "as many tags", "1 tags for 2"), 1
    ),
    "tagged: words in one text": Malformed(
        JSONL_TAGGED, TAGGED + '{"tokens": "a b", "tags": ["O", "O"]}\n', ("line 2", "a list of texts", "'a b'"), 1
    ),
    "tagged: a word that is none": Malformed(
        JSONL_TAGGED, TAGGED + '{"tokens": ["a", null], "tags": ["O", "O"]}\n', ("line 2", "'tokens'", "None"), 1
    ),
    "tagged: an empty word": Malformed(
        JSONL_TAGGED, TAGGED + '{"tokens": ["a", ""], "tags": ["O", "O"]}\n', ("line 2", "neither of them empty"), 1
    ),
    "tagged: tags in one text": Malformed(
        JSONL_TAGGED, TAGGED + '{"tokens": ["a"], "tags": "O"}\n', ("line 2", "a list of tags", "'O'"), 1
    ),
    "tagged: texts and numbers": Malformed(
        JSONL_TAGGED, TAGGED + '{"tokens": ["a", "b"], "tags": ["O", 0]}\n', ("line 2", "a list of tags", "0]"), 1
    ),
    "tagged: numbers without names": Malformed(
        JSONL_TAGGED, TAGGED + '{"tokens": ["a"], "tags": [1]}\n', ("line 2", "`names`, which has 0", "1"), 1
    ),
    "tagged: a number without a name": Malformed(
        JsonlConfig(columns=TaggedColumns(names=("O", "B-X"))),
        TAGGED + '{"tokens": ["a"], "tags": [-1]}\n',
        ("line 2", "`names`, which has 2", "-1"),
        1,
    ),
    "tagged: no words": Malformed(JSONL_TAGGED, '{"words": [], "tags": []}\n', ("line 1", "a key 'tokens'"), kept=0),
    "tagged: parquet of texts": Malformed(
        ParquetConfig(columns=TaggedColumns()), columns(tokens=["a b"], tags=["O O"]), ("line 1", "a list of texts"), 0
    ),
    "question: a start less": Malformed(
        JSONL_QUESTION, QUESTION + question(text=["Ann"], answer_start=[]), ("line 2", "equally long"), kept=1
    ),
    "question: a number as answer": Malformed(
        JSONL_QUESTION, QUESTION + question(7), ("line 2", "`text` and `answer_start`", "7"), kept=1
    ),
    "question: no starts": Malformed(
        JSONL_QUESTION, QUESTION + question(text=["Ann"]), ("line 2", "`text` and `answer_start`"), kept=1
    ),
    "question: a start in words": Malformed(
        JSONL_QUESTION, QUESTION + question(text=["Ann"], answer_start=["0"]), ("line 2", "`answer_start`", "'0'"), 1
    ),
    "question: no context": Malformed(
        JSONL_QUESTION, QUESTION + question([]).replace('"Ann ran."', "null"), ("line 2", "'context'", "None"), kept=1
    ),
    "classes: a number beyond": Malformed(
        ParquetConfig(columns=TextColumns()), classes([0, 2], "a", "b"), ("line 2", "2 classes of 'label'", "2"), kept=1
    ),
    "squad: no JSON": Malformed(SQUAD, '{"data": [\n}', ("line 2", "JSON", "at character 1")),
    "squad: truncated": Malformed(SQUAD, squad()[:-30], ("line 1", "JSON"), 0),
    "squad: no context": Malformed(SQUAD, squad(context=None), ("data[0].paragraphs[0]", "`context`"), kept=0),
    "squad: no questions": Malformed(SQUAD, squad(qas=None), ("data[0].paragraphs[0]", "`qas`"), kept=0),
    "squad: no question": Malformed(SQUAD, squad({"id": "1"}), ("data[0].paragraphs[0].qas[1]", "`question`"), kept=1),
    "squad: no id": Malformed(SQUAD, squad({"question": "Who?"}), ("qas[1]", "an `id`"), kept=1),
    "squad: answers that are none": Malformed(
        SQUAD, squad(asked(answers={"text": "Ann"})), ("qas[1]", "`answers`"), kept=1
    ),
    "squad: an answer without text": Malformed(
        SQUAD, squad(asked({"answer_start": 0})), ("qas[1]", "a `text`"), kept=1
    ),
    "squad: an empty answer": Malformed(
        SQUAD, squad(asked({"text": "", "answer_start": 0})), ("qas[1]", "a `text`"), 1
    ),
    "squad: no offset": Malformed(
        SQUAD, squad(asked({"text": "Ann", "answer_start": None})), ("qas[1]", "`answer_start`", "None"), kept=1
    ),
    "squad: no places of MRQA": Malformed(
        SQUAD,
        squad(asked(detected_answers=[{"text": "Ann", "char_spans": None}])),
        ("qas[1]", "`answer_start`"),
        kept=1,
    ),
    "squad: places of MRQA without lists": Malformed(
        SQUAD, squad(asked(detected_answers=[{"text": "Ann", "char_spans": [0, 2]}])), ("`answer_start`", "[0, 2]"), 1
    ),
    "squad: answers of MRQA that are none": Malformed(
        SQUAD, squad(asked(detected_answers=[3])), ("qas[1]", "`text`"), kept=1
    ),
    "squad: impossible in words": Malformed(
        SQUAD, squad(asked(is_impossible="no")), ("qas[1]", "`is_impossible`"), kept=1
    ),
    "mrc_ner: an object": Malformed(MRC_NER, "{}", ("[0]", "texts context"), kept=0),
    "mrc_ner: no query": Malformed(MRC_NER, queries(query=None), ("[1]", "query"), kept=1),
    "mrc_ner: no start": Malformed(MRC_NER, queries(start_position=None), ("[1]", "start_position", "None"), kept=1),
    "mrc_ner: an end less": Malformed(MRC_NER, queries(end_position=[]), ("[1]", "as many start_position"), kept=1),
    "mrc_ner: beyond the end": Malformed(MRC_NER, queries(end_position=[2]), ("[1]", "from 0 to 1", "[2]"), kept=1),
    "mrc_ner: below 0": Malformed(MRC_NER, queries(start_position=[-1]), ("[1]", "from 0 to 1", "[-1]"), kept=1),
    "mrc_ner: end before start": Malformed(MRC_NER, queries(start_position=[1]), ("[1]", "at or before"), kept=1),
    "mrc_ner: no pairs": Malformed(MRC_NER, queries(span_position=["0"]), ("[1]", "span_position", "['0']"), kept=1),
    "mrc_ner: other pairs": Malformed(MRC_NER, queries(span_position=["0;1"]), ("[1]", "span_position", "0;1"), kept=1),
    "mrc_ner: pairs lack": Malformed(MRC_NER, queries(span_position=[]), ("[1]", "span_position", "[]"), kept=1),
}


@pytest.mark.parametrize("case", CORPUS.values(), ids=CORPUS.keys())
def test_a_malformed_file_gives_its_error_or_its_counted_drop(case: Malformed, tmp_path: Path) -> None:
    path = tmp_path / case.name
    path.write_bytes(case.content if isinstance(case.content, bytes) else case.content.encode())
    for name, content in case.beside.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(DataError) as raised:
        gather(path, lambda: case.reader.read(path))
    message = str(raised.value)
    position = 0
    for piece in (str(tmp_path), *case.error):
        assert (position := message.find(piece, position)) >= 0, f"{piece!r} is not in its place in {message!r}"
    if case.kept is None:
        with pytest.raises(DataError):
            gather(path, lambda: case.reader.read(path), "skip")
        return
    records, report = gather(path, lambda: case.reader.read(path), "skip")
    assert all(isinstance(record, case.reader.yields()) for record in records)
    assert (len(records), report.kept) == (case.kept, case.kept)
    assert sum(tally.count for tally in report.dropped.values()) == case.dropped == report.rows - case.kept
