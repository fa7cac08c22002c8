"""Spans of characters: the forms of four annotation tools give the same tags, and what does not align is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dice_ray.data.formats.base import UNLABELLED, Bad, Drop, Kept, RowResult
from dice_ray.data.formats.span_files import SpansConfig
from dice_ray.data.formats.spans import _IN_PIECES, _MISALIGNED, _MISPLACED, _OVERLAPPING, WORD
from dice_ray.data.formats.tables import TablesConfig
from dice_ray.data.formats.words import SpanRows
from dice_ray.data.guess import guess
from dice_ray.data.records import NestedRecord, TaggedRecord, WordSpan
from dice_ray.errors import DataError

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
    "spaCy's keys": {"text": TEXT, "entities": objects("start_char", "end_char")},
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


def tags_of(rows: list[RowResult]) -> list[str]:
    records = [row.record for row in rows if isinstance(row, Kept)]
    return [" ".join(record.tags) for record in records if isinstance(record, TaggedRecord)]


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
        ("Parisians ran", [[0, 5, "LOC"]], "B-LOC O", _MISALIGNED),
        ("Ada ran", [[0, 4, "PER"]], "B-PER O", None),  # a space at the end is not part of a word
        ("Ada  ran", [[3, 5, "PER"]], "O O", _MISALIGNED),
        ("Uni Bonn ran", [[0, 3, "TYPE"], [4, 8, "LOC"], [0, 8, "ORG"]], "B-ORG I-ORG O", _OVERLAPPING),
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
    assert (" ".join(found.record.tags), found.notes) == (tags, (note,) if note else ())


def test_each_oddity_of_a_text_is_counted(tmp_path: Path) -> None:
    """A span that was taken whole hid that another one was left out."""
    (found,) = read(tmp_path / "a.jsonl", {"text": "Parisians ran", "label": [[0, 9, "ORG"], [0, 5, "LOC"]]})
    assert isinstance(found, Kept)
    assert set(found.notes) == {_MISALIGNED, _OVERLAPPING}


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


def test_tasks_of_label_studio_without_an_annotation_are_unlabelled(tmp_path: Path) -> None:
    """Read as texts without names, the open tasks of a project teach the model to find none."""
    good, cancelled = FORMS["Label Studio"]["annotations"][0], {"result": [], "was_cancelled": True}
    tasks = [
        {"data": {"text": TEXT}, "annotations": each}
        for each in ([], [cancelled], [cancelled, good], [{"result": []}, good])
    ]
    found = read(tmp_path / "a.jsonl", *tasks, {"text": TEXT, "annotations": []})
    assert found[:2] == [Drop(1, UNLABELLED), Drop(2, UNLABELLED)]
    assert tags_of(found) == [" ".join(TAGS), "O O O O O O", "O O O O O O"]
    assert len(tags_of(read(tmp_path / "a.jsonl", *tasks, labels="ignored"))) == 4


def test_overlapping_spans_are_all_read_where_asked_for(tmp_path: Path) -> None:
    """Two thirds of the spans of nested annotations were left out, and only counted."""
    spans = [[4, 8, "LOC"], [0, 8, "ORG"], [0, 3, "TYPE"], [0, 8, "ORG"]]
    (tmp_path / "a.json").write_text(json.dumps([{"text": "Uni Bonn ran", "label": spans}] * 3))
    found = guess(tmp_path / "a.json")
    assert (found.reader, found.task) == ({"spans": {"overlapping": "all"}}, {"mrc_ner": {"spans": "nested"}})
    expected = (WordSpan("ORG", 0, 2), WordSpan("TYPE", 0, 1), WordSpan("LOC", 1, 2))
    assert found.records[0] == NestedRecord("1", ("Uni", "Bonn", "ran"), expected)


@pytest.mark.parametrize(
    ("row", "tags", "note"),
    [
        ({"sentence": ["Ada", "Byron", "ran"], "ner": [{"index": [0, 2], "type": "PER"}]}, "O O O", _IN_PIECES),
        ({"text": "Ada ran", "spans": [{"start": 4, "end": 6, "label": "PER", "text": "Ada"}]}, "O B-PER", _MISPLACED),
        ({"text": "Ada ran", "label": {"PER": {"Ada": [[0, 2]]}}}, "B-PER O", None),
        (
            {"content": "Ada ran", "annotation": [{"label": ["PER"], "points": [{"start": 0, "end": 2}]}]},
            "B-PER O",
            None,
        ),
        ({"tokens": ["Ada", "ran"], "entities": [{"type": "PER", "start": 0, "end": 0}]}, "B-PER O", None),
    ],
)
def test_ends_can_be_last_places(row: Any, tags: str, note: str | None, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([row]))
    (found,) = SpansConfig(ends="last").read(tmp_path / "a.json")
    assert isinstance(found, Kept)
    assert isinstance(found.record, TaggedRecord)
    assert (" ".join(found.record.tags), found.notes) == (tags, (note,) if note else ())


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"tokens": ["Ada", ""], "entities": []}, "no empty word"),
        ({"tokens": ["Ada", 1], "entities": []}, "a text under one of"),
        ({"tokens": ["Ada"], "entities": [{"type": "PER", "start": 0, "end": 2}]}, "spans within the text"),
        ({"text": "Ada", "label": {"PER": {"Ada": [[0]]}}}, "spans within the text"),
        ({"text": "Ada", "ner": [{"index": [], "type": "PER"}]}, "spans within the text"),
        ({"text": "Ada", "ner": [{"index": ["0"], "type": "PER"}]}, "spans within the text"),
        ({"text": "Ada", "annotation": [{"label": ["PER"], "points": [3]}]}, "spans within the text"),
        ({"data": {"text": "Ada"}, "annotations": [True, {"result": []}]}, "spans within the text"),
        ({"text": "Ada", "annotations": [{"result": {"value": {"start": 0}}}]}, "spans within the text"),
    ],
)
def test_malformed_annotations_of_every_form_are_bad_rows(row: Any, expected: str, tmp_path: Path) -> None:
    (found,) = read(tmp_path / "a.jsonl", row)
    assert isinstance(found, Bad)
    assert expected in found.expected


def test_texts_of_brat_are_read_line_by_line(tmp_path: Path) -> None:
    """Offsets count the characters of all lines before, and a carriage return at the end of each."""
    (tmp_path / "a.txt").write_bytes("Caf\u00e9.\r\n\r\nAda ran.\r\nBob Byron".encode())
    annotations = [
        "T1\tPER 9 12\tAda",
        "T2\tPER 19 22;26 28\tBob on",
        "T3\tDAY 13 22\tran. Bob",
        "E1\tRun:T1",
        "*\tEquiv T1 T2",
    ]
    (tmp_path / "a.ann").write_text("\n".join(annotations))
    (tmp_path / "b.txt").write_text("No file beside.")
    found = list(SpansConfig().read(tmp_path))
    assert [row.place for row in found] == ["a.txt line 1", "a.txt line 3", "a.txt line 4", "b.txt"]
    records = [row.record for row in found if isinstance(row, Kept)]
    assert [record.tags for record in records if isinstance(record, TaggedRecord)] == [
        ("O", "O"),
        ("B-PER", "O", "O"),
        ("O", "O"),
    ]
    assert {record.document for record in records if isinstance(record, TaggedRecord)} == {"a"}
    assert [row.notes for row in found if isinstance(row, Kept)] == [(), (_IN_PIECES,), (_IN_PIECES,)]
    assert isinstance(found[-1], Drop)
    assert len(list(SpansConfig().read(tmp_path, "ignored"))) == 4
    (tmp_path / "a.ann").write_text("T1\tPER 8 12\tAda")  # from the line break on
    records = [row.record for row in SpansConfig().read(tmp_path) if isinstance(row, Kept)]
    assert [record.tags[0] for record in records if isinstance(record, TaggedRecord)] == ["O", "B-PER", "O"]
    (tmp_path / "a.ann").write_text("T1\tPER 9 12\tAda\nT2\tPER 90 93\tBob\nT3 PER 19 22 Bob\nR1\tKnows Arg1:T1")
    lost = [(row.place, row.actual) for row in SpansConfig().read(tmp_path) if isinstance(row, Bad)]
    assert [place for place, _ in lost] == ["a.ann line 2", "a.ann line 3"]
    assert lost[1][1] == "'T3 PER 19 22 Bob'"
    for path in tmp_path.iterdir():
        path.unlink()
    with pytest.raises(DataError, match=r"texts in files \.txt, each with a file \.ann, found none"):
        list(SpansConfig().read(tmp_path))


def test_titles_and_abstracts_of_pubtator_are_records_of_one_document(tmp_path: Path) -> None:
    content = [
        "7|t|Ada ran.",
        "7|a|In Paris, 5 | 6.",
        "7\t0\t3\tAda\tPER\tD1",
        "7\t12\t17\tParis\tLOC\tD2\tmore",
        "7\t6\t11\tn. In\tX\tD3",
        "7\tMet\tD1\tD2",
        "",
        "8|t|Bob sat.",
        "8|a|",
        "9\t0\t3\tBob\tPER\tD1",
        "8\t0\t3\tBob",
        "10|t|Cleo sat.",
        "10\t0\t4\tCleo\tPER\tD4",
        "10\t40\t44\tCleo\tPER\tD4",
    ]
    path = tmp_path / "a.txt"
    path.write_text("\n".join(content))
    first, second, third, bad, without_type, last = SpansConfig().read(path)
    assert first == Kept(1, TaggedRecord("7.t", ("Ada", "ran", "."), ("B-PER", "O", "O"), "7"), (_IN_PIECES,), "7")
    words = ("In", "Paris", ",", "5", "|", "6", ".")
    assert second == Kept(2, TaggedRecord("7.a", words, ("O", "B-LOC", *"OOOOO"), "7"), (), "7")
    assert isinstance(bad, Bad)
    assert (bad.place, bad.expected) == (10, "an annotation of the article 8")
    assert third == Kept(8, TaggedRecord("8.t", ("Bob", "sat", "."), ("O", "O", "O"), "8"), (), "8")
    assert isinstance(last, Bad)
    assert isinstance(without_type, Bad)
    assert without_type.place == 11
    assert (last.place, last.expected) == (12, "spans within the text, each with start, end and type")
    ignored = [row.record for row in SpansConfig().read(path, "ignored") if isinstance(row, Kept)]
    assert [record.id for record in ignored] == ["7.t", "7.a", "8.t", "10.t"]


def test_a_table_with_a_span_a_row_gives_a_record_for_each_text(tmp_path: Path) -> None:
    """Each span was read as a text of its own with one label."""
    rows = [
        "text,start,end,label",
        "Ada ran,0,3,PER",
        "Ada ran,4.0,7.0,ACT",
        "no span,,,",
        "Bob ran,0,x,PER",
        "Bob sat,0,3,PER",
    ]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    reader = TablesConfig(quoting=True, delimiter=",", columns=SpanRows())
    found = list(reader.read(tmp_path / "a.csv"))
    assert [row.place for row in found] == [2, 4, 5, 6]
    assert isinstance(found[2], Bad)
    records = [row.record for row in found if isinstance(row, Kept)]
    assert [record.tags for record in records if isinstance(record, TaggedRecord)] == [
        ("B-PER", "B-ACT"),
        ("O", "O"),
        ("B-PER", "O"),
    ]
    assert len(list(reader.read(tmp_path / "a.csv", "ignored"))) == 4


def test_a_text_that_returns_with_other_spans_is_malformed(tmp_path: Path) -> None:
    """A table sorted by type gave two records of one sentence, each with the other's entity as O."""
    rows = ["text,start,end,label", "Ada in Rome,0,3,PER", "Bob ran,0,3,PER", "Ada in Rome,7,11,LOC", "Bob ran,0,3,PER"]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    reader = TablesConfig(quoting=True, delimiter=",", columns=SpanRows())
    first, again, other, equal = reader.read(tmp_path / "a.csv")
    assert isinstance(other, Bad)
    assert (other.place, other.expected) == (4, "the rows of a text one after the other, with all of its spans")
    assert [type(row) for row in (first, again, equal)] == [Kept] * 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("राम दिल्ली में", ["राम", "दिल्ली", "में"]),
        ("cafe\u0301 noir", ["cafe\u0301", "noir"]),
        ("می\u200cرود شب", ["می\u200cرود", "شب"]),
        ("我住 x_1's", ["我", "住", "x", "_", "1", "'", "s"]),
    ],
)
def test_a_word_has_the_marks_of_its_letters(text: str, words: list[str]) -> None:
    """Vowel signs, accents that follow their letter, and joiners were words of their own."""
    assert WORD.findall(text) == words


def test_spans_that_do_not_fit_the_words_are_refused(tmp_path: Path) -> None:
    """Offsets that count otherwise, as in UTF-16, would give wrong words for every span."""
    rows = [{"text": f"\U0001f600\U0001f600 Ada Byron {number}", "label": [[5, 14, "PER"]]} for number in range(9)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(DataError, match="in 9 of 9 texts, spans do not fit the words"):
        guess(tmp_path / "a.jsonl")
