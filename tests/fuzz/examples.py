"""Small valid files of every format that dice_ray reads, which the fuzzer alters."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import zipfile
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

WORDS: Final = ("It rains in Bonn today.", "Ada met Grace on Monday.", "The router is broken again.", "我们喜欢下雨。")
SQUAD: Final[dict[str, Any]] = {
    "version": "v2.0",
    "data": [
        {
            "title": "t",
            "paragraphs": [
                {
                    "context": "Ada ran to Bonn.",
                    "qas": [
                        {"id": "1", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}]},
                        {"id": "2", "question": "When?", "answers": [], "is_impossible": True},
                    ],
                }
            ],
        }
    ],
}
MRC: Final = [
    {
        "context": "Ada ran to Bonn",
        "query": "Find persons.",
        "entity_label": label,
        "qas_id": f"0.{number}",
        "start_position": [position],
        "end_position": [position],
        "impossible": False,
        "span_position": [f"{position};{position}"],
    }
    for number, (label, position) in enumerate([("PER", 0), ("LOC", 3)], start=1)
]
SPANS: Final = [{"text": "Ada ran to Bonn.", "label": [[0, 3, "PER"], [11, 15, "LOC"]]}, {"text": "No.", "label": []}]
PAIRS: Final = [
    {"id": n, "sentence1": text, "sentence2": f"{text} So.", "label": n % 2} for n, text in enumerate(WORDS)
]
TEXTS: Final = [{"sentence": text, "label": "ab"[n % 2]} for n, text in enumerate(WORDS)]
LABELS: Final = [{"sentence": text, "label": ["a", "b"][: n % 3]} for n, text in enumerate(WORDS)]
TAGGED: Final = [
    {"id": "1", "tokens": ["Ada", "ran"], "tags": ["B-PER", "O"]},
    {"id": "2", "tokens": ["I"], "tags": ["O"]},
]
QUESTIONS: Final = [
    {"id": "1", "question": "Who?", "context": "Ada ran.", "answers": {"text": ["Ada"], "answer_start": [0]}},
    {"id": "2", "question": "Who?", "context": "Ada ran.", "answers": {"text": [], "answer_start": []}},
]
JSON: Final[dict[str, tuple[dict[str, Any], list[Any]]]] = {
    "squad": ({"squad": {}}, [SQUAD, SQUAD["data"]]),
    "mrc_ner": ({"mrc_ner": {}}, [MRC]),
    "spans": ({"spans": {}}, [SPANS, [{"data": {"text": "Ada."}, "annotations": [{"result": []}]}]]),
    "pairs": ({"jsonl": {}}, [PAIRS, {"data": PAIRS}]),
    "texts": ({"jsonl": {"columns": "text"}}, [TEXTS, LABELS]),
    "numbered": ({"jsonl": {"columns": {"text": {"text": 0, "label": 1}}}}, [[["It rains.", "a"], ["No.", "b"]]]),
    "choices": (
        {"jsonl": {"columns": {"text": {"text": "data.text", "label": "annotations.a"}}}},
        [
            [
                {
                    "data": {"text": "No."},
                    "annotations": [{"result": [{"type": "choices", "from_name": "a", "value": {"choices": ["x"]}}]}],
                }
            ]
        ],
    ),
    "tagged": ({"jsonl": {"columns": "tagged"}}, [TAGGED]),
    "questions": ({"jsonl": {"columns": "question"}}, [QUESTIONS]),
}
"""The reader and the documents of each format in JSON."""


def _conll(separator: str = " ", more: str = "") -> str:
    return f"-DOCSTART- -X- O\n\n{more}" + "\n\n".join(
        "\n".join(
            separator.join(word) for word in [("Ada", "NNP", "B-PER"), ("Byron", "NNP", "I-PER"), ("ran", "VBD", "O")]
        )
        for _ in range(3)
    )


def _table(delimiter: str) -> str:
    return "\n".join(
        [
            delimiter.join(["id", "sentence1", "sentence2", "label"]),
            *(delimiter.join([str(row["id"]), f'"{row["sentence1"]}"', "b", str(row["label"])]) for row in PAIRS),
        ]
    )


CONLLU: Final = "\n".join(
    [
        "# newdoc",
        "# text = a b",
        *(
            line.replace(" ", "\t")
            for line in ("1 a _ DET DT _ _ _ _ _", "2-3 b _ _ _ _ _ _ _ _", "2 b _ NOUN NN _ _ _ _ _")
        ),
        "\n",
    ]
)
KAGGLE: Final = "Sentence #,Word,POS,Tag\nSentence: 1,Ada,NNP,B-per\n,ran,VBD,O\nSentence: 2,I,PRP,O\n"
TEXT: Final[dict[str, tuple[dict[str, Any], list[str]]]] = {
    "csv": ({"tables": {"quoting": True, "delimiter": ","}}, [_table(","), _table(",").replace("today", "to\nday")]),
    "tsv": ({"tables": {"quoting": False, "columns": {"pair": {"id": "id"}}}}, [_table("\t")]),
    "numbered": (
        {
            "tables": {
                "quoting": False,
                "header": False,
                "columns": {"text": {"text": 1, "label": -1, "separator": ";"}},
            }
        },
        [_table("\t"), "a\tb;c\nd\te\n"],
    ),
    "one_hot": (
        {"tables": {"quoting": True, "delimiter": ",", "columns": {"text": {"text": "text", "one_hot": ["a", "b"]}}}},
        ["text,a,b\nIt rains.,1,0\nIt is dry.,0,0\n"],
    ),
    "words": ({"tables": {"quoting": True, "delimiter": ",", "columns": "words"}}, [KAGGLE]),
    "jsonl": ({"jsonl": {}}, ["\n".join(map(json.dumps, PAIRS))]),
    "jsonl_tagged": ({"jsonl": {"columns": "tagged"}}, ["\n".join(map(json.dumps, TAGGED))]),
    "conll": ({"conll": {"comment": "#"}}, [_conll(), _conll("\t"), _conll(more="# id 1\n")]),
    "conll_types": ({"conll": {"tags": "types", "digit": True}}, ["Ada0 PER\nran0 O\n\nBonn0 LOC\n"]),
    "conllu": ({"conllu": {}}, [CONLLU * 2]),
    "word_tag": ({"word_tag": {}}, ["The_DT cat_NN\nA_DT dog_NN ran_VBD\n", "1/2/CD cats/NN\n"]),
    "parallel": ({"parallel": {}}, ["Ada ran\nI ran\n", "B-PER O\nO O\n"]),
    "parallel_texts": ({"parallel": {"units": "texts", "names": ["a", "b"]}}, ["It rains.\nNo.\n", "0\n1\n"]),
    "trees": ({"trees": {"units": "phrases"}}, ["(3 (2 It) (4 works))\n(1 (0 bad) (2 (2 so) (2 so)))\n"]),
    "fasttext": ({"fasttext": {}}, ["__label__a __label__b It rains.\n__label__a No.\n", "__label__b\n"]),
    "trec": ({"fasttext": {"label": "coarse"}}, ["DESC:def What is it ?\nHUM:ind Who ?\n"]),
    "pubtator": ({"spans": {}}, ["7|t|Ada ran.\n7|a|In Paris.\n7\t0\t3\tAda\tPER\tD1\n7\t12\t17\tParis\tLOC\tD2\n\n"]),
    **{name: (reader, [json.dumps(each) for each in documents]) for name, (reader, documents) in JSON.items()},
}
"""The reader and files of each text format."""


@cache
def columnar() -> dict[str, tuple[dict[str, Any], list[bytes]]]:
    """The same of Parquet and Arrow."""
    made: dict[str, tuple[dict[str, Any], list[bytes]]] = {
        "parquet": ({"parquet": {}}, []),
        "arrow": ({"arrow": {}}, []),
    }
    features = json.dumps({"info": {"features": {"label": {"_type": "ClassLabel", "names": ["no", "yes"]}}}})
    for table in (
        pa.Table.from_pylist(PAIRS),
        pa.Table.from_pylist(PAIRS).replace_schema_metadata({"huggingface": features}),
    ):
        sink = io.BytesIO()
        pyarrow.parquet.write_table(table, sink)
        made["parquet"][1].append(sink.getvalue())
        sink = io.BytesIO()
        pyarrow.feather.write_feather(table, sink, compression="uncompressed")
        made["arrow"][1].append(sink.getvalue())
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        made["arrow"][1].append(sink.getvalue())
    return made


@cache
def archives() -> list[bytes]:
    """Compressed files, zip archives with strange members, and bombs."""
    table = _table("\t").encode()
    made = [gzip.compress(table), bz2.compress(table), lzma.compress(table), gzip.compress(table) * 2]
    names: list[Any] = [
        "data.tsv",
        "../outside/secret",
        "/outside/secret",
        "a/../../outside/secret",
        "\x1b[31m.tsv",
        "a\\..\\b",
    ]
    made += [_zip({name: table}) for name in names] + [
        _zip({"a": table, "b": table}),
        _zip({}),
        _zip({"a/": b"", "b": table}),
    ]
    link = zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    made += [_zip({link: b"../outside/secret"})]
    bombs = [compress(bytes(4 << 20)) * 300 for compress in (gzip.compress, bz2.compress, lzma.compress)]
    return [*made, *bombs, _zip({"zeros": bytes(500 << 20)})]


def _zip(members: dict[Any, bytes]) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content, zipfile.ZIP_DEFLATED)
    return sink.getvalue()


PRESETS: Final = [file.read_bytes() for file in sorted(Path("search_spaces/presets").glob("*.yaml"))]
BOMBS: Final = [
    (
        "a: &a [x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"{b}: &{b} [{', '.join(9 * [f'*{a}'])}]\n" for a, b in zip("abcdefghi", "bcdefghij", strict=True))
    ).encode(),
    b"loss: &a [*a]\n",
    b"loss: &a {focal: *a}\n",
    b"training: {<<: &a {<<: *a}}\n",
]
"""YAML that holds itself, or that is small in a file and large once it is walked through."""
