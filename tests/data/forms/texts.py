"""Published forms of questions, pairs and texts with labels."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from typing import Any, Final

from tests.data.forms.common import CLASSES, SAID, Content, Form, N, array, commas, labelled, lines, saying, table

PAIR: Final = f"{saying(0)} | {saying(500)}"
INFERENCES: Final = ("entailment", "neutral", "contradiction")


def paragraph(number: int, **question: Any) -> dict[str, Any]:
    answers = [{"text": "Ada Byron", "answer_start": 8}]
    asked = {"id": f"q{number}", "question": "Who?", "answers": answers, **question}
    return {"context": f"In {1900 + number} Ada Byron lived in Paris.", "qas": [asked]}


def article(number: int, **question: Any) -> dict[str, Any]:
    return {"title": "T", "paragraphs": [paragraph(number, **question)]}


def asked(number: int) -> dict[str, Any]:
    answers = {"text": ["Ada Byron"], "answer_start": [8]}
    return {
        "id": str(number),
        "title": "T",
        "context": paragraph(number)["context"],
        "question": "Who?",
        "answers": answers,
    }


def archive(**members: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as opened:
        for name, content in members.items():
            opened.writestr(f"{name}.tsv", content)
    return file.getvalue()


TWO: Final = table(("text", "label"), *labelled("a", "b"))
TEXTS: Final[dict[str, Form]] = {
    "SQuAD 2.0": Form(
        "train-v2.0.json",
        array(lambda n: article(n, is_impossible=n == 1), version="v2.0"),
        "extractive_qa scoring=squad_v2",
        "Who? -> Ada Byron",
    ),
    "SQuAD, articles alone": Form("train.json", array(article), "extractive_qa scoring=squad_v1", "Who? -> Ada Byron"),
    "SQuAD, an article a line": Form(
        "train.jsonl", lines(article), "extractive_qa scoring=squad_v1", "Who? -> Ada Byron"
    ),
    "SQuAD, paragraphs": Form("train.json", array(paragraph), "extractive_qa scoring=squad_v1", "Who? -> Ada Byron"),
    "SQuAD on the hub": Form("train.jsonl", lines(asked), "extractive_qa scoring=squad_v1", "Who? -> Ada Byron"),
    "SQuAD on the hub, under data": Form(
        "train.json", array(asked, version="1"), "extractive_qa scoring=squad_v1", "Who? -> Ada Byron"
    ),
    "MRQA": Form(
        "HotpotQA.jsonl.gz",
        gzip.compress(
            (
                '{"header": {"split": "train"}}\n'
                + lines(
                    lambda n: {
                        "context": paragraph(n)["context"],
                        "qas": [
                            {
                                "qid": f"q{n}",
                                "question": "Who?",
                                "answers": ["Ada Byron"],
                                "detected_answers": [{"text": "Ada Byron", "char_spans": [[8, 16]]}],
                            }
                        ],
                    }
                )
            ).encode()
        ),
        "extractive_qa scoring=squad_v1",
        "Who? -> Ada Byron",
    ),
    "CMRC 2018": Form(
        "cmrc2018_train.json",
        array(
            lambda n: {
                "context_id": f"T{n}",
                "context_text": f"阿达拜伦{n}住在巴黎。",
                "qas": [{"query_id": f"T{n}_Q0", "query_text": "谁住在巴黎", "answers": ["阿达拜伦"]}],
            }
        ),
        "extractive_qa scoring=cmrc",
        "谁住在巴黎 -> 阿达拜伦",
    ),
    "questions in CSV": Form(
        "qa.csv",
        commas(
            ["id", "context", "question", "answer_text", "answer_start"],
            ([n, paragraph(n)["context"], "Who?", "Ada Byron", 8] for n in range(N)),
        ),
        "extractive_qa scoring=squad_v1",
        "Who? -> Ada Byron",
    ),
    "questions in CSV, answers of Python": Form(
        "qa.csv",
        commas(
            ["id", "context", "question", "answers"],
            ([n, paragraph(n)["context"], "Who?", asked(n)["answers"]] for n in range(N)),
        ),
        "extractive_qa scoring=squad_v1",
        "Who? -> Ada Byron",
    ),
    "MRPC": Form(
        "msr_paraphrase_train.txt",
        "\ufeff"
        + table(
            ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"),
            *[(n % 2, n, n + 99, saying(n), f'"{saying(n + 500)}') for n in range(N)],
        ).replace("\n", "\r\n"),
        "sentence_pair positive=1",
        f'{saying(0)} | "{saying(500)} -> 0',
    ),
    "QQP": Form(
        "train.tsv",
        table(
            ("id", "qid1", "qid2", "question1", "question2", "is_duplicate"),
            *[(n, 2 * n, 2 * n + 1, saying(n), saying(n + 500), n % 2) for n in range(N)],
        ),
        "sentence_pair positive=1",
        f"{PAIR} -> 0",
    ),
    "RTE": Form(
        "train.tsv",
        table(
            ("index", "sentence1", "sentence2", "label"),
            *[(n, saying(n), saying(n + 500), ("entailment", "not_entailment")[n % 2]) for n in range(N)],
        ),
        "sentence_pair positive=entailment",
        f"{PAIR} -> entailment",
    ),
    "BoolQ": Form(
        "train.jsonl",
        lines(lambda n: {"question": saying(n), "title": "T", "answer": n % 2 == 0, "passage": saying(n + 500)}),
        "sentence_pair positive=true",
        f"{PAIR} -> true",
    ),
    "SNLI": Form(
        "snli_1.0_train.jsonl",
        lines(
            lambda n: {
                "annotator_labels": ["neutral"],
                "captionID": f"{n}.jpg",
                "gold_label": "-" if n == 7 else INFERENCES[n % 3],
                "sentence1": saying(n),
                "sentence1_parse": f"(R {saying(n)})",
                "sentence2": saying(n + 500),
                "sentence2_parse": f"(R {saying(n + 500)})",
            }
        ),
        CLASSES,
        f"{PAIR} -> entailment",
    ),
    "MNLI": Form(
        "train.tsv",
        table(
            ("index", "genre", "sentence1_parse", "sentence2_parse", "sentence1", "sentence2", "label1", "gold_label"),
            *[
                (
                    n,
                    "ab"[n % 2],
                    f"(R {saying(n)})",
                    f"(R {saying(n + 500)})",
                    saying(n),
                    saying(n + 500),
                    INFERENCES[n % 3],
                    INFERENCES[n % 3],
                )
                for n in range(N)
            ],
        ),
        CLASSES,
        f"{PAIR} -> entailment",
    ),
    "ANLI": Form(
        "train.jsonl",
        lines(
            lambda n: {
                "uid": f"u{n}",
                "context": saying(n),
                "hypothesis": saying(n + 500),
                "label": "enc"[n % 3],
                "reason": saying(n + 900),
            }
        ),
        CLASSES,
        f"{PAIR} -> e",
    ),
    "SICK": Form(
        "SICK_train.txt",
        table(
            ("pair_ID", "sentence_A", "sentence_B", "relatedness_score", "entailment_judgment"),
            *[(n, saying(n), saying(n + 500), 1 + n % 9 / 2, INFERENCES[n % 3].upper()) for n in range(N)],
        ),
        CLASSES,
        f"{PAIR} -> ENTAILMENT",
    ),
    "OCNLI": Form(
        "train.json",
        lines(
            lambda n: {
                "level": "easy",
                "sentence1": f"身上裹一件棉大衣{n}",
                "sentence2": f"身上至少一件衣服{n}",
                "label": INFERENCES[n % 3],
                "id": n,
            }
        ),
        CLASSES,
        "身上裹一件棉大衣0 | 身上至少一件衣服0 -> entailment",
    ),
    "SMS Spam": Form(
        "SMSSpamCollection",
        table(*[(label, said) for said, label in labelled("spam", "ham", "ham")]),
        f"{CLASSES} positive=spam",
        f"{SAID} -> spam",
    ),
    "AG News": Form(
        "train.csv", "".join(f'"{n % 4 + 1}","Title {n}","{saying(n)}"\n' for n in range(36)), CLASSES, f"{SAID} -> 1"
    ),
    "GoEmotions": Form(
        "train.tsv",
        table(*[(said, label, f"eew{n}") for n, (said, label) in enumerate(labelled("27", "2,5", "2", "5"))]),
        f"{CLASSES} labels=several",
        f"{SAID} -> 27",
    ),
    "Jigsaw": Form(
        "train.csv",
        commas(
            ["id", "comment_text", "toxic", "obscene", "threat"],
            (
                [f"{n:x}", said, toxic, int(n % 3 == 0), int(n % 5 == 0)]
                for n, (said, toxic) in enumerate(labelled(1, 0))
            ),
        ),
        f"{CLASSES} labels=several",
        f"{SAID} -> toxic, obscene, threat",
    ),
    "lists of labels in cells": Form(
        "arxiv.csv",
        commas(
            ["titles", "abstracts", "terms"],
            (
                [f"On {n}", said, label]
                for n, (said, label) in enumerate(labelled(["cs.CV", "cs.LG"], ["cs.LG"], ["cs.CV"]))
            ),
        ),
        f"{CLASSES} labels=several",
        f"{SAID} -> cs.CV, cs.LG",
    ),
    "TREC": Form(
        "train_5500.label",
        "".join(f"{('DESC:manner', 'HUM:ind')[n % 2]} How did {saying(n)} in Orléans ?\n" for n in range(N)).encode(
            "latin-1"
        ),
        CLASSES,
        f"How did {SAID} in Orléans ? -> DESC:manner",
    ),
    "TweetEval": Form(
        "emotion",
        {
            "emotion/mapping.txt": "0\tanger\n1\tjoy\n",
            **{
                f"emotion/{split}_{name}.txt": "".join(f"{row[column]}\n" for row in labelled(0, 1, size=size))
                for split, size in (("test", 36), ("train", 24), ("val", 30))
                for column, name in enumerate(("text", "labels"))
            },
        },
        CLASSES,
        f"{SAID} -> anger",
    ),
    "aclImdb": Form(
        "aclImdb",
        {
            "aclImdb/imdb.vocab": "the\n",
            **{f"aclImdb/{split}/urls_pos.txt": "http://a.b\n" for split in ("train", "test")},
            **{
                f"aclImdb/{split}/{label}/{n}_{7 + n % 4}.txt": f"{said}\n"
                for split, labels in (("train", ("neg", "pos", "unsup")), ("test", ("neg", "pos")))
                for n, (said, label) in enumerate(labelled(*labels))
            },
        },
        CLASSES,
        f"{SAID} -> neg",
    ),
    "CoLA": Form(
        "in_domain_train.tsv",
        table(*[("ab"[n % 2], label, "" if label else "*", said) for n, (said, label) in enumerate(labelled(1, 0, 1))]),
        f"{CLASSES} positive=0",
        f"{SAID} -> 1",
    ),
    "an array of pairs": Form("train.json", json.dumps(labelled("a", "b")), CLASSES, f"{SAID} -> a"),
    "CLINC150": Form(
        "data_full.json",
        json.dumps({name: labelled(*("oos" if "_" in name else "ab")) for name in ("oos_train", "val", "train")}),
        CLASSES,
        f"{SAID} -> a",
    ),
    "splits of objects": Form(
        "all.json",
        json.dumps({name: [{"text": t, "label": y} for t, y in labelled("a", "b")] for name in ("train", "dev")}),
        CLASSES,
        f"{SAID} -> a",
    ),
    "Label Studio, several choices": Form(
        "project.json",
        array(
            lambda n: {
                "text": saying(n),
                "id": n,
                "stance": ["a", {"choices": ["a", "b", "c"]}, "b"][n % 3],
                "annotator": n % 2,
                "annotation_id": n,
                "lead_time": 1.5 + n,
            }
        ),
        f"{CLASSES} labels=several",
        f"{SAID} -> a",
    ),
    "nested keys": Form(
        "train.jsonl",
        lines(lambda n: {"meta": {"id": n}, "data": {"text": saying(n), "label": "ab"[n % 2]}}),
        CLASSES,
        f"{SAID} -> a",
    ),
    "a folder of splits": Form(
        "corpus", {f"corpus/{split}.tsv": TWO for split in ("train", "dev", "test")}, CLASSES, f"{SAID} -> a"
    ),
    "a folder for each split": Form(
        "corpus", {f"corpus/{split}/data.tsv": TWO for split in ("train", "dev", "test")}, CLASSES, f"{SAID} -> a"
    ),
}
"""Each form with what it means."""

REFUSED: Final[dict[str, tuple[str, Content, str]]] = {
    "several lists": (
        "all.json",
        json.dumps({name: labelled("a", "b") for name in ("first", "second")}),
        "one list of rows in the document, found 'first', 'second': name the list of each split",
    ),
    "an archive of splits": (
        "data.zip",
        archive(train=TWO, dev=TWO),
        r"found 2 files \(train.tsv, dev.tsv\): unpack it",
    ),
    "annotations of brat alone": ("doc00.ann", "T0\tPER 0 9\tBob Byron\n", "read with the others of its folder"),
}
"""Forms that are not read, each with a part of the error."""
