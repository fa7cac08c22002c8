"""Published forms of tagged words and annotated spans."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from tests.data.forms.common import (
    CLASSES,
    MRC,
    NAMES,
    NESTED,
    OUTER,
    PARTS,
    PLAIN,
    POS,
    SAID,
    TAGGING,
    TAGS,
    Content,
    Form,
    N,
    always,
    array,
    commas,
    lines,
    saying,
    text,
    words,
)


def spans(number: int) -> list[tuple[int, int, str]]:
    name, place = " ".join(words(number)[:2]), words(number)[4]
    start = text(number).index(f" {place} ") + 1
    return [(0, len(name), "PER"), (start, start + len(place), "LOC")]


def objects(number: int, **more: Callable[[int, int, str], Any]) -> list[dict[str, Any]]:
    """The spans as objects; each key has a function of start, end and type."""
    return [{key: value(*span) for key, value in more.items()} for span in spans(number)]


START, END, TYPE = (lambda start, end, of: start), (lambda start, end, of: end), (lambda start, end, of: of)


def columns(*of_word: Callable[[int], Sequence[object]], separator: str = "\t", before: str = "") -> str:
    """CoNLL columns: each function gives the column of a sentence."""
    return (
        "\n\n".join(
            before.format(number)
            + "\n".join(separator.join(map(str, row)) for row in zip(*(of(number) for of in of_word), strict=True))
            for number in range(N)
        )
        + "\n"
    )


def brat(folder: str) -> dict[str, Content]:
    files: dict[str, Content] = {}
    for number in range(N):
        found = [
            f"T{place}\t{of} {start} {end}\t{text(number)[start:end]}"
            for place, (start, end, of) in enumerate(spans(number))
        ]
        files[f"{folder}/doc{number:02}.txt"] = f"{text(number)}\nNo names here.\n"
        files[f"{folder}/doc{number:02}.ann"] = "\n".join(
            [*found, "R1\tLives Arg1:T0 Arg2:T1\t", "#1\tAnnotatorNotes T1\tnote", ""]
        )
    return files


def pubtator() -> str:
    return "\n".join(
        f"{n}|t|{text(n)}\n{n}|a|Not them.\n"
        + "".join(f"{n}\t{start}\t{end}\t{text(n)[start:end]}\t{of}\tD{n}\n" for start, end, of in spans(n))
        + f"{n}\tLives\tD1\tD2\n"
        for n in range(N)
    )


POS_FILE: Final = "".join(
    f"[ {w[0]}/NNP Byron/NNP ]\nlives/VBZ in/IN \n\n[ {w[4]}/NNP ]\nsince/IN {w[6]}/CD ./. \n\n=====\n\n"
    for w in map(words, range(N))
)
MRG_FILE: Final = "".join(
    f"( (S \n  (NP-SBJ (NNP {w[0]}) (NNP Byron) )\n  (VP (VBZ lives) (PP (IN in) (NP (NNP {w[4]}) ))\n"
    f"    (PP (IN since) (NP (CD {w[6]}) )) (S (NP-SBJ (-NONE- *-1) )))\n  (. .) ))\n"
    for w in map(words, range(N))
)
TYPES: Final = ["PER", "PER", "O", "O", "LOC", "O", "O", "O"]
BMES: Final = ["B-PER", "E-PER", "O", "O", "B-LOC", "E-LOC", "O", "O"]
ONTONOTES: Final = (
    "#begin document (bc/cctv/00/cctv_0000); part 000\n"
    + "\n".join(
        "".join(
            f"bc   0   {place}   {word}   {pos}   (NP*)   -   -   -   S   {name}{'   (ARG0*)' * (number % 3)}   -\n"
            for place, (word, pos, name) in enumerate(
                zip(words(number), POS, ["(PER*", "*)", "*", "*", "(LOC)", "*", "*", "*"], strict=True)
            )
        )
        for number in range(N)
    )
    + "\n#end document\n"
)

NAMED: Final[dict[str, Form]] = {
    "CoNLL-2003": Form(
        "eng.train",
        "-DOCSTART- -X- -X- O\n\n" + columns(words, always(*POS), always(*["B-NP"] * 8), always(*TAGS), separator=" "),
        TAGGING,
        NAMES,
    ),
    "CoNLL-2002, Latin-1": Form(
        "esp.train",
        columns(lambda n: [*words(n)[:-2], "año", "señor"], always(*POS), always(*TAGS), separator=" ").encode(
            "latin-1"
        ),
        TAGGING,
        NAMES,
    ),
    "CoNLL-2012": Form("train.v4_gold_conll", ONTONOTES, TAGGING, NAMES),
    "GermEval 2014": Form(
        "NER-de-train.tsv",
        columns(
            *(always(*range(1, 9)), words, lambda n: TAGS if n % 3 else OUTER, lambda n: ["O"] * 8 if n % 3 else TAGS),
            before="#\thttp://de.wikipedia.org/{} [2009]\n",
        ),
        MRC,
        NESTED,
    ),
    "gold beside predicted tags": Form(
        "test.txt", columns(words, always(*TAGS), always(*TAGS), separator=" "), TAGGING, NAMES
    ),
    "Kaggle NER": Form(
        "ner_dataset.csv",
        commas(
            ["Sentence #", "Word", "POS", "Tag"],
            (
                [f"Sentence: {n}" if w == words(n)[0] else "", w, p, t]
                for n in range(N)
                for w, p, t in zip(words(n), POS, TAGS, strict=True)
            ),
        ),
        TAGGING,
        NAMES,
    ),
    "Kaggle NER, lists in cells": Form(
        "ner.csv",
        commas(["Sentence #", "Sentence", "POS", "Tag"], ([f"Sentence: {n}", text(n), POS, TAGS] for n in range(N))),
        TAGGING,
        NAMES,
    ),
    "CSV, tags with spaces": Form(
        "ner.csv", commas(["text", "labels"], ([text(n), " ".join(TAGS)] for n in range(N))), TAGGING, NAMES
    ),
    "Few-NERD": Form("train.txt", columns(words, always(*TYPES)), TAGGING, NAMES),
    "CoNLL-U Plus": Form(
        "train.conllup",
        "# global.columns = ID FORM UPOS NER\n" + columns(always(*range(1, 9)), words, always(*POS), always(*TAGS)),
        TAGGING,
        NAMES,
    ),
    "characters in BMES": Form(
        "train.bmes",
        columns(
            lambda n: f"张三住在北京{n:02}",
            always(*BMES),
            separator=" ",
        ),
        TAGGING,
        "PER 张 三, LOC 北 京",
    ),
    "Hugging Face, tags": Form(
        "train.json", lines(lambda n: {"id": str(n), "tokens": words(n), "ner_tags": TAGS}), TAGGING, NAMES
    ),
    "Hugging Face, numbers": Form(
        "train.json",
        lines(lambda n: {"id": str(n), "tokens": words(n), "ner_tags": [1, 2, 0, 0, 3, 0, 0, 0]}),
        "tagging tags=plain background=0",
        "Bob/1 Byron/2 lives/0 in/0 Bonn/3 since/0 1900/0 ./0",
    ),
    "a list of sentences": Form("train.json", array(lambda n: {"tokens": words(n), "tags": TAGS}), TAGGING, NAMES),
    "data of sentences": Form(
        "train.json", array(lambda n: {"tokens": words(n), "tags": TAGS}, version="1.0"), TAGGING, NAMES
    ),
    "W2NER": Form(
        "train.json",
        array(
            lambda n: {"sentence": words(n), "ner": [{"index": [0, 1], "type": "PER"}, {"index": [4], "type": "LOC"}]}
        ),
        TAGGING,
        NAMES,
    ),
    "W2NER, nested": Form(
        "train.json",
        array(
            lambda n: {
                "sentence": words(n),
                "ner": [
                    {"index": [0, 1, 2, 3, 4], "type": "ORG"},
                    {"index": [0, 1], "type": "PER"},
                    {"index": [4], "type": "LOC"},
                ],
            }
        ),
        MRC,
        NESTED,
    ),
    "SpERT": Form(
        "train.json",
        array(
            lambda n: {
                "tokens": words(n),
                "entities": [{"type": "PER", "start": 0, "end": 2}, {"type": "LOC", "start": 4, "end": 5}],
                "relations": [{"type": "Live", "head": 0, "tail": 1}],
            }
        ),
        TAGGING,
        NAMES,
    ),
    "GLiNER": Form(
        "train.json",
        array(lambda n: {"tokenized_text": words(n), "ner": [[0, 1, "PER"], [4, 4, "LOC"]]}),
        TAGGING,
        NAMES,
    ),
    "DyGIE": Form(
        "train.jsonl",
        lines(
            lambda n: {
                "doc_key": f"d{n}",
                "sentences": [words(n)[:3], words(n)[3:]],
                "ner": [[[0, 1, "PER"]], [[4, 4, "LOC"]]],
                "relations": [[], []],
            }
        ),
        TAGGING,
        NAMES,
    ),
    "CLUENER": Form(
        "train.json",
        lines(lambda n: {"text": f"张三住在北京{n}", "label": {"PER": {"张三": [[0, 1]]}, "LOC": {"北京": [[4, 5]]}}}),
        TAGGING,
        "PER 张 三, LOC 北 京",
    ),
    "NER annotator for spaCy": Form(
        "annotations.json",
        array(lambda n: [text(n), {"entities": spans(n)}], classes=["PER", "LOC"]).replace('"data"', '"annotations"'),
        TAGGING,
        NAMES,
    ),
    "Label Studio, CSV": Form(
        "project.csv",
        commas(
            ["annotator", "id", "label", "text"],
            (
                [1, n, json.dumps(objects(n, start=START, end=END, labels=lambda start, end, of: [of])), text(n)]
                for n in range(N)
            ),
        ),
        TAGGING,
        NAMES,
    ),
    "Label Studio, classes": Form(
        "project.json",
        array(lambda n: {"id": n, "text": saying(n), "sentiment": "pn"[n % 2], "annotator": 1, "lead_time": 1.5 + n}),
        CLASSES,
        f"{SAID} -> p",
    ),
    "Dataturks": Form(
        "resumes.json",
        lines(
            lambda n: {
                "content": text(n),
                "annotation": [
                    {"label": [of], "points": [{"start": start, "end": end - 1, "text": text(n)[start:end]}]}
                    for start, end, of in spans(n)
                ],
            }
        ),
        TAGGING,
        NAMES,
    ),
    "a span a row": Form(
        "spans.csv",
        commas(
            ["doc_id", "text", "start", "end", "label"], ([n, text(n), *span] for n in range(N) for span in spans(n))
        ),
        TAGGING,
        NAMES,
    ),
    "spans in a cell": Form(
        "spans.csv",
        commas(["id", "text", "entities"], ([n, text(n), json.dumps(spans(n))] for n in range(N))),
        TAGGING,
        NAMES,
    ),
    "spans in a cell of Python": Form(
        "spans.csv", commas(["text", "entities"], ([text(n), spans(n)] for n in range(N))), TAGGING, NAMES
    ),
    "brat": Form("train", brat("train"), TAGGING, NAMES),
    "brat, splits": Form(
        "corpus", brat("corpus/train") | brat("corpus/dev") | {"corpus/annotation.conf": "[entities]\n"}, TAGGING, NAMES
    ),
    "PubTator": Form(
        "corpus",
        {f"corpus/{split}Set.txt": pubtator() for split in ("Training", "Development", "Test")},
        TAGGING,
        NAMES,
    ),
    "seq.in and seq.out": Form(
        "train/seq.in",
        {"train/seq.in": "".join(f"{text(n)}\n" for n in range(N)), "train/seq.out": (" ".join(TAGS) + "\n") * N},
        TAGGING,
        NAMES,
    ),
    "Penn .pos": Form("wsj_0001.pos", POS_FILE, PLAIN, PARTS),
    "Penn .mrg": Form("wsj_0001.mrg", MRG_FILE, PLAIN, PARTS),
    "Brown": Form(
        "ca01",
        "\n\n".join("\t" + " ".join(f"{w}/{p}" for w, p in zip(words(n), POS, strict=True)) + " " for n in range(N)),
        PLAIN,
        PARTS,
    ),
}
"""Each form with what it means."""
