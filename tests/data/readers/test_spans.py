"""Spans of characters: the forms of four annotation tools give the same tags, and what does not align is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dice_ray.data.guess import guess
from dice_ray.data.readers.base import Bad, Drop, Kept, RowResult
from dice_ray.data.readers.spans import MISALIGNED, OVERLAPPING, SpansConfig
from dice_ray.data.records import TaggedRecord

TEXT = "Ada Byron lives in Paris."
SPANS = [[0, 9, "PER"], [19, 24, "LOC"]]
WORDS = ("Ada", "Byron", "lives", "in", "Paris", ".")
TAGS = ("B-PER", "I-PER", "O", "O", "B-LOC", "O")


def objects(start: str = "start", end: str = "end", label: str = "label") -> list[dict[str, Any]]:
    return [{start: first, end: last, label: type_} for first, last, type_ in SPANS]


FORMS: dict[str, Any] = {
    "doccano": {"text": TEXT, "label": SPANS},
    "doccano of old": {"text": TEXT, "labels": SPANS, "meta": {}},
    "doccano with relations": {"text": TEXT, "entities": objects("start_offset", "end_offset"), "relations": []},
    "Prodigy": {"text": TEXT, "tokens": [{"text": "Ada", "id": 0}], "spans": objects(), "answer": "accept"},
    "spaCy": [TEXT, {"entities": SPANS}],
    "Label Studio": {
        "data": {"text": TEXT},
        "annotations": [
            {
                "result": [
                    {"type": "labels", "value": {"start": start, "end": end, "labels": [type_]}}
                    for start, end, type_ in SPANS
                ]
                + [{"type": "choices", "value": {"choices": ["news"]}}]
            }
        ],
    },
    "Label Studio, short": {"text": TEXT, "label": objects(label="labels"), "annotator": 1},
}


def read(path: Path, *rows: Any, labels: Any = "read") -> list[RowResult]:
    path.write_text("\n".join(map(json.dumps, rows)))
    return list(SpansConfig().read(path, labels))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_document", [False, True])
def test_each_form_gives_the_same_tags_and_is_recognised(form: str, is_document: bool, tmp_path: Path) -> None:
    """No form of spans of characters was read: users had to convert them to tags of words, and lost some."""
    path = tmp_path / "train.json"
    rows = [[FORMS[form]] * 3] if is_document else [FORMS[form]] * 3
    records = [Kept(place, TaggedRecord(str(place), WORDS, TAGS)) for place in (1, 2, 3)]
    assert read(path, *rows) == records
    found = guess(path)
    assert (found.reader, found.task) == ({"spans": {}}, {"tagging": {}})
    assert read(path, *rows, labels="ignored")[0] == Kept(1, TaggedRecord("1", WORDS, ()))


@pytest.mark.parametrize(
    ("text", "spans", "tags", "note"),
    [
        ("Parisians ran", [[0, 5, "LOC"]], "B-LOC O", MISALIGNED),
        ("Ada ran", [[0, 4, "PER"]], "B-PER O", None),  # a space at the end is not part of a word
        ("Ada  ran", [[3, 5, "PER"]], "O O", MISALIGNED),
        ("Uni Bonn ran", [[0, 3, "TYPE"], [4, 8, "LOC"], [0, 8, "ORG"]], "B-ORG I-ORG O", OVERLAPPING),
        ("\u6771\u4eac\u3067\u3059", [[0, 2, "LOC"]], "B-LOC I-LOC O O", None),  # Japanese
        ("no spans", [], "O O", None),
    ],
)
def test_spans_that_do_not_fit_the_words_are_counted(
    text: str, spans: list[Any], tags: str, note: str | None, tmp_path: Path
) -> None:
    (found,) = read(tmp_path / "a.jsonl", {"text": text, "label": spans})
    assert isinstance(found, Kept)
    assert isinstance(found.record, TaggedRecord)
    assert (" ".join(found.record.tags), found.note) == (tags, note)


def test_malformed_rows_are_bad_and_rejected_texts_are_dropped(tmp_path: Path) -> None:
    rows = [
        {"text": TEXT, "label": [[0, 99, "PER"]]},
        {"text": TEXT, "label": [[0, "9", "PER"]]},
        {"text": TEXT},
        {"label": []},
        {"text": TEXT, "spans": objects(), "answer": "reject"},
        {"text": " ", "label": []},
    ]
    found = read(tmp_path / "a.jsonl", *rows)
    assert [type(row) for row in found] == [Bad, Bad, Bad, Bad, Drop, Drop]
    assert [row.place for row in found] == [1, 2, 3, 4, 5, 6]
