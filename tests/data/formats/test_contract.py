"""The contract of a format, which each is run through: read in whatever packing, recognised, and nothing lost."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow
import pytest
from pyarrow import feather, parquet

from dice_ray.data.formats import FORMATS
from dice_ray.data.formats.base import Bad, Kept, ReaderBranch, TextReaderBranch
from dice_ray.data.formats.columns import TextColumns
from dice_ray.data.formats.conll import ConllConfig, ConlluConfig
from dice_ray.data.formats.questions import MrcNerReaderConfig, SquadConfig
from dice_ray.data.formats.rows import ArrowConfig, JsonlConfig, ParquetConfig
from dice_ray.data.formats.sentences import ParallelConfig, WordTagConfig
from dice_ray.data.formats.span_files import SpansConfig
from dice_ray.data.formats.tables import TablesConfig
from dice_ray.data.formats.texts import FasttextConfig, FoldersConfig, TreesConfig
from dice_ray.data.guess import guess
from dice_ray.data.records import Record
from dice_ray.errors import DataError
from tests.contracts.tasks import stripped

N = 12
TEXT = TextColumns(text="text")


class Example(NamedTuple):
    """A file of a format with `N` records.

    Attributes:
        reader: The reader that `init` must find.
        path: The file, or the folder that holds several.
        content: The content of the file, or of the files by their paths.
        unlabelled: The content of a file of the same texts without labels; None if these files must have labels.
        bad: What makes a row malformed when it stands behind the others.
    """

    reader: ReaderBranch
    path: str
    content: str | bytes | dict[str, str]
    unlabelled: str | bytes | None = None
    bad: str = ""


def each(row: Callable[[int], str]) -> str:
    return "".join(row(number) for number in range(N))


def text(number: int) -> str:
    return f"the parcel {number} came late"


def rows(labels: bool) -> list[dict[str, Any]]:
    return [{"text": text(n)} | ({"label": "ab"[n % 2]} if labels else {}) for n in range(N)]


def json_lines(items: Sequence[dict[str, Any]]) -> str:
    return "".join(json.dumps(item) + "\n" for item in items)


def columnar(write: Callable[..., None], labels: bool) -> bytes:
    file = io.BytesIO()
    write(pyarrow.Table.from_pylist(rows(labels)), file)
    return file.getvalue()


def squad(*leave_out: str) -> str:
    asked: dict[str, Any] = {"question": "Who?", "answers": [{"text": "Ann", "answer_start": 0}]}
    asked = {key: value for key, value in asked.items() if key not in leave_out}
    return json.dumps(
        {"data": [{"paragraphs": [{"context": f"Ann {n}", "qas": [asked | {"id": n}]}]} for n in range(N)]}
    )


def queries(labels: bool) -> str:
    spans = {"start_position": [0], "end_position": [0]} if labels else {}
    asked = {"query": "persons", "entity_label": "PER"}
    return json.dumps([asked | {"context": f"Ann {n}", "qas_id": f"{n}.1"} | spans for n in range(N)])


def conllu(upos: str) -> str:
    return each(lambda n: f"# a comment\n1\tthe\t_\t{upos}\t_\t_\t_\t_\t_\t_\n2\tn{n}\t_\t{upos}\t_\t_\t_\t_\t_\t_\n\n")


TAGS = each(lambda n: "B-PER O\n")
EXAMPLES = {
    "tables": Example(
        TablesConfig(quoting=False, columns=TEXT),
        "a.tsv",
        "text\tlabel\n" + each(lambda n: f"{text(n)}\t{'ab'[n % 2]}\n"),
        "text\n" + each(lambda n: f"{text(n)}\n"),
        "one\ttwo\tthree\n",
    ),
    "jsonl": Example(JsonlConfig(columns=TEXT), "a.jsonl", json_lines(rows(True)), json_lines(rows(False)), "{'a'}\n"),
    "parquet": Example(
        ParquetConfig(columns=TEXT), "a", columnar(parquet.write_table, True), columnar(parquet.write_table, False)
    ),
    "arrow": Example(
        ArrowConfig(columns=TEXT), "a", columnar(feather.write_feather, True), columnar(feather.write_feather, False)
    ),
    "conll": Example(
        ConllConfig(), "a.txt", each(lambda n: f"Ann B-PER\nn{n} O\n\n"), each(lambda n: f"Ann\nn{n}\n\n"), "a b c\n"
    ),
    "conllu": Example(ConlluConfig(), "a.conllu", conllu("NOUN"), conllu("_"), "a b\n"),
    "parallel": Example(
        ParallelConfig(),
        "a.txt",
        {"a.txt": each(lambda n: f"Ann n{n}\n"), "tags.txt": TAGS},
        each(lambda n: f"Ann n{n}\n"),
    ),
    "word_tag": Example(
        WordTagConfig(), "a.txt", each(lambda n: f"the_DT n{n}_NN\n"), each(lambda n: f"the n{n}\n"), "a_DT b\n"
    ),
    "trees": Example(
        TreesConfig(), "a.txt", each(lambda n: f"({n % 5} (2 It) (4 n{n}))\n"), each(lambda n: f"It n{n}\n"), "(2 a))\n"
    ),
    "fasttext": Example(
        FasttextConfig(),
        "a.txt",
        each(lambda n: f"__label__{'ab'[n % 2]} {text(n)}\n"),
        each(lambda n: f"{text(n)}\n"),
        "__label__ a text\n",
    ),
    "spans": Example(
        SpansConfig(),
        "a.jsonl",
        json_lines([{"text": f"Ann n{n}", "label": [[0, 3, "PER"]]} for n in range(N)]),
        json_lines([{"text": f"Ann n{n}"} for n in range(N)]),
        '{"text": "Ann", "label": [[0, 9, "PER"]]}\n',
    ),
    "squad": Example(SquadConfig(), "a.json", squad(), squad("answers")),
    "mrc_ner": Example(MrcNerReaderConfig(), "a.json", queries(True), queries(False)),
    "folders": Example(FoldersConfig(), "a", {f"a/{'pn'[n % 2]}/{n}.txt": text(n) for n in range(N)}),
}
TEXTS = [name for name, example in EXAMPLES.items() if isinstance(example.content, str)]


def written(name: str, content: str | bytes | dict[str, str] | None = None) -> Path:
    example = EXAMPLES[name]
    content = example.content if content is None else content
    for path, each_content in content.items() if isinstance(content, dict) else [(example.path, content)]:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(each_content if isinstance(each_content, bytes) else each_content.encode())
    return Path(example.path)


def records(reader: ReaderBranch, path: Path, labels: Any = "read") -> list[Record]:
    return [row.record for row in reader.read(path, labels) if isinstance(row, Kept)]


def test_every_format_is_here() -> None:
    assert EXAMPLES.keys() == {reader.name for reader in FORMATS}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_file_is_recognised_as_its_format_and_as_no_other(name: str) -> None:
    reader, path = EXAMPLES[name].reader, written(name)
    found = guess(path)
    assert list(found.reader) == [name]
    assert type(reader).model_validate(found.reader[name]) == reader
    assert list(found.records) == records(reader, path)
    assert (len(found.records), found.bad) == (N, ())
    assert all(isinstance(record, reader.yields()) for record in found.records)


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize(
    ("pack", "encoding"),
    [
        (lambda content: b"\xef\xbb\xbf" + content.replace("\n", "\r\n").encode(), "utf-8"),
        (lambda content: gzip.compress(content.encode()), "utf-8"),
        (lambda content: gzip.compress(content.encode("utf-16")), "utf-16"),
    ],
    ids=["BOM and CRLF", "gzip", "gzip of UTF-16"],
)
def test_a_text_is_the_same_in_another_packing(name: str, pack: Callable[[str], bytes], encoding: str) -> None:
    reader, content = EXAMPLES[name].reader, EXAMPLES[name].content
    assert isinstance(reader, TextReaderBranch)
    assert isinstance(content, str)
    expected = records(reader, written(name))
    path = written(name, pack(content))
    assert records(reader.model_copy(update={"encoding": encoding}), path) == expected
    found = guess(path)
    assert (list(found.records), found.reader[name].get("encoding", "utf-8")) == (expected, encoding)


@pytest.mark.parametrize("name", [name for name, example in EXAMPLES.items() if example.unlabelled is not None])
def test_a_file_reads_the_same_with_and_without_its_labels(name: str) -> None:
    reader = EXAMPLES[name].reader
    ignored = records(reader, written(name), "ignored")
    assert len(ignored) == N
    assert [stripped(record) for record in ignored] == ignored
    assert [stripped(record) for record in records(reader, written(name))] == ignored
    assert records(reader, written(name, EXAMPLES[name].unlabelled), "ignored") == ignored


@pytest.mark.parametrize("name", [name for name, example in EXAMPLES.items() if example.bad])
def test_a_malformed_row_behind_the_others_is_a_bad_row(name: str) -> None:
    content = EXAMPLES[name].content
    assert isinstance(content, str)
    path = written(name, content + EXAMPLES[name].bad)
    *kept, bad = EXAMPLES[name].reader.read(path)
    assert isinstance(bad, Bad)
    assert bad.place == len((content + EXAMPLES[name].bad).splitlines())
    assert len([row for row in kept if isinstance(row, Kept)]) == N


@pytest.mark.parametrize("name", [name for name, example in EXAMPLES.items() if name != "folders"])
def test_an_empty_file_gives_no_record_and_no_guess(name: str) -> None:
    path = written(name)
    path.write_bytes(b"")
    with contextlib.suppress(DataError):
        assert records(EXAMPLES[name].reader, path) == []
    with pytest.raises(DataError, match="the file must hold rows, and it is empty"):
        guess(path)
