"""Damaged files of every format: each row is kept, or dropped and counted, or the error of the file."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
from hypothesis import strategies as st
from pydantic import TypeAdapter

from dice_ray.config.load import Layer, resolve
from dice_ray.data import inputs
from dice_ray.data.formats import ReaderConfig
from dice_ray.data.formats.base import Given
from dice_ray.data.guess import guess
from dice_ray.data.reading import SplitSource, _SplitReader
from dice_ray.errors import DataError
from tests.hostile import altered, altered_bytes, hostile, texts

READER: TypeAdapter[Any] = TypeAdapter(ReaderConfig)
ANSWERED = {"id": "1", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}]}
ASKED = {
    "context": "Ada ran to Bonn.",
    "qas": [ANSWERED, {"id": "2", "question": "When?", "answers": [], "is_impossible": True}],
}
QUERY = {
    "context": "Ada ran to Bonn",
    "query": "Find persons.",
    "entity_label": "PER",
    "qas_id": "0.1",
    "impossible": False,
}
MRC = [{**QUERY, "start_position": [at], "end_position": [at], "span_position": [f"{at};{at}"]} for at in (0, 3)]
PAIRS = [
    {"id": n, "sentence1": text, "sentence2": f"{text} So.", "label": n % 2}
    for n, text in enumerate(("It rains.", "我们。"))
]
TEXTS = [{"sentence": "It rains.", "label": "a"}, {"sentence": "No.", "label": ["a", "b"]}]
TAGGED = [{"id": "1", "tokens": ["Ada", "ran"], "tags": ["B-PER", "O"]}, {"id": "2", "tokens": ["I"], "tags": ["O"]}]
QUESTIONS = [{"id": "1", "question": "Who?", "context": "Ada ran.", "answers": {"text": ["Ada"], "answer_start": [0]}}]
JSON: list[tuple[dict[str, Any], Any]] = [
    ({"squad": {}}, {"version": "v2.0", "data": [{"title": "t", "paragraphs": [ASKED]}]}),
    ({"mrc_ner": {}}, MRC),
    ({"spans": {}}, [{"text": "Ada ran.", "label": [[0, 3, "PER"]]}, {"text": "No.", "label": []}]),
    ({"spans": {}}, [{"data": {"text": "Ada."}, "annotations": [{"result": []}]}]),
    ({"jsonl": {}}, PAIRS),
    ({"jsonl": {"columns": "text"}}, TEXTS),
    ({"jsonl": {"columns": "tagged"}}, TAGGED),
    ({"jsonl": {"columns": "question"}}, QUESTIONS),
]
CONLL = "-DOCSTART- -X- O\n\nAda NNP B-PER\nByron NNP I-PER\nran VBD O\n\nI PRP O\n"
CONLLU = "# newdoc\n# text = a b\n1 a _ DET DT _ _ _ _ _\n2-3 b _ _ _ _ _ _ _ _\n2 b _ NOUN NN _ _ _ _ _\n\n".replace(
    " ", "\t"
)
TABLE = 'id\tsentence1\tsentence2\tlabel\n1\t"It rains."\tb\t0\n2\tNo.\tb\t1\n'
COMMAS: dict[str, Any] = {"quoting": True, "delimiter": ","}
TEXT: list[tuple[dict[str, Any], str]] = [
    ({"tables": COMMAS}, TABLE.replace("\t", ",").replace("rains", "ra\nins")),
    ({"tables": {"quoting": False, "columns": {"pair": {"id": "id"}}}}, TABLE),
    (
        {"tables": {**COMMAS, "columns": {"text": {"text": "t", "one_hot": ["a", "b"]}}}},
        "t,a,b\nIt rains.,1,0\nNo.,0,0\n",
    ),
    ({"tables": {**COMMAS, "columns": "words"}}, "Sentence #,Word,POS,Tag\nSentence: 1,Ada,NNP,B-per\n,ran,VBD,O\n"),
    ({"conll": {"comment": "#"}}, CONLL),
    ({"conllu": {}}, CONLLU * 2),
    ({"word_tag": {}}, "The_DT cat_NN\nA_DT dog_NN ran_VBD\n"),
    ({"parallel": {}}, "Ada ran\nI ran\n"),
    ({"trees": {"units": "phrases"}}, "(3 (2 It) (4 works))\n(1 (0 bad) (2 (2 so) (2 so)))\n"),
    ({"fasttext": {}}, "__label__a __label__b It rains.\n__label__a No.\n"),
    ({"spans": {}}, "7|t|Ada ran.\n7|a|In Paris.\n7\t0\t3\tAda\tPER\tD1\n7\t12\t17\tParis\tLOC\tD2\n\n"),
]


def _columnar() -> list[tuple[dict[str, Any], bytes]]:
    table, made = pa.Table.from_pylist(PAIRS), [io.BytesIO(), io.BytesIO()]
    pyarrow.parquet.write_table(table, made[0])
    pyarrow.feather.write_feather(table, made[1], compression="uncompressed")
    return [({"parquet": {}}, made[0].getvalue()), ({"arrow": {}}, made[1].getvalue())]


def _zip(**members: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return sink.getvalue()


def _archives() -> list[bytes]:
    """Compressed files, archives with strange members, and bombs."""
    plain, names = TABLE.encode(), ("data.tsv", "../outside/secret", "/outside/secret", "\x1b[31m.tsv", "a\\..\\b")
    made = [compress(plain) for compress in (gzip.compress, bz2.compress, lzma.compress)]
    bombs = [compress(bytes(4 << 20)) * 300 for compress in (gzip.compress, bz2.compress, lzma.compress)]
    return [*made, *(_zip(**{name: plain}) for name in names), _zip(a=plain, b=plain), _zip(), *bombs]


FILES = [(reader, text.encode()) for reader, text in TEXT] + _columnar()
ENCODINGS = st.sampled_from(["utf-8", "utf-8", "utf-8", "latin-1", "utf-16", "gb18030", "cp1252", "utf-7"])
DAMAGED = st.one_of(
    st.sampled_from(FILES).flatmap(lambda file: st.tuples(st.just(file[0]), altered_bytes([file[1]]))),
    st.sampled_from(JSON).flatmap(
        lambda file: st.tuples(st.just(file[0]), altered([file[1]]).map(lambda value: json.dumps(value).encode()))
    ),
)


@hostile(st.tuples(DAMAGED, ENCODINGS, st.sampled_from(["read", "ignored"])), num=30_000)
def test_readers(given: Any) -> None:
    (reader, content), encoding, labels = given
    ((name, settings),) = reader.items()
    settings = settings if name in ("parquet", "arrow") else settings | {"encoding": encoding}
    Path("data.txt").write_bytes(content)
    Path("tags.txt").write_bytes(content[::-1])
    made = READER.validate_python({name: settings})
    with suppress(DataError):
        _read(made, Path("data.txt"), labels, "skip")
    _read(made, Path("data.txt"), labels, "error")


def _read(reader: Any, path: Path, labels: Any, on_bad_row: Any) -> None:
    split = _SplitReader(SplitSource(path.name, path, lambda: reader.read(path, labels), on_bad_row))
    num = sum(len(rows) for rows in split.chunks())
    report = split.report()
    assert num == report.kept
    assert report.rows == num + sum(tally.count for tally in report.dropped.values())


NAMES = st.sampled_from(["data.txt", "data.csv", "data.json", "data.conllu", "data.parquet", "data.gz"])
KNOWN = st.builds(
    Given,
    encoding=st.sampled_from([None, None, "latin-1", "utf-16", "x"]),
    positive=st.one_of(st.none(), st.none(), texts),
    format=st.sampled_from([None, None, None, "tables", "conll", "squad", "x"]),
)


@hostile(st.tuples(NAMES, DAMAGED, KNOWN), num=5_000)
def test_guesses(given: Any) -> None:
    name, (_, content), known = given
    file = Path(name)
    file.write_bytes(content)
    try:
        guess(file, known)
    finally:
        file.unlink()


@hostile(altered_bytes(_archives()), num=2_000)
def test_archives(given: bytes) -> None:
    file = Path("data.tsv.gz")
    file.write_bytes(given)
    with suppress(DataError):
        guess(file)
    _read(READER.validate_python(TEXT[1][0]), file, "read", "skip")


TASKS = [("text_classification", TEXTS), ("tagging", TAGGED), ("extractive_qa", QUESTIONS), ("mrc_ner", MRC)]
ROWS = st.sampled_from(TASKS).flatmap(lambda task: st.tuples(st.just(task[0]), altered([task[1]])))
LINES = st.tuples(st.just("text_classification"), st.lists(texts, max_size=3))


@hostile(st.one_of(ROWS, LINES), num=6_000)
def test_rows_in_memory(given: Any) -> None:
    task, made = given
    data = resolve([Layer("run", {"task": task, "data": {"source": "synthetic"}})]).data
    if isinstance(made, list) and all(isinstance(row, dict) for row in made):
        inputs.read_rows(data, made)
    elif isinstance(made, list) and all(isinstance(row, str) for row in made):
        inputs.read_lines(data, made)
