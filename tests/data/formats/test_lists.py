"""Rows with lists: words with tags and questions with answers, from JSON lines and Parquet, class labels by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets
import pytest

from dice_ray.data.formats.base import Bad, Drop, Kept, RowResult
from dice_ray.data.formats.columns import PairColumns, TextColumns
from dice_ray.data.formats.lists import QuestionColumns, SpanColumns, TaggedColumns
from dice_ray.data.formats.questions import _MISPLACED, SquadConfig
from dice_ray.data.formats.rows import JsonlConfig, ParquetConfig, RowColumnsConfig
from dice_ray.data.records import AnswerSpan, PairRecord, QuestionRecord, TaggedRecord, TextRecord


def from_json(folder: Path, columns: RowColumnsConfig, *rows: Any) -> list[RowResult]:
    path = folder / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return list(JsonlConfig(columns=columns).read(path))


def from_parquet(
    folder: Path, columns: RowColumnsConfig, rows: list[dict[str, Any]], features: datasets.Features | None = None
) -> list[RowResult]:
    path = folder / "rows.parquet"
    datasets.Dataset.from_list(rows, features=features).to_parquet(path)
    return list(ParquetConfig(columns=columns).read(path))


def tagged(id: str, words: str, tags: str) -> TaggedRecord:
    return TaggedRecord(id, tuple(words.split()), tuple(tags.split()))


def test_plain_tags_stay_and_ids_are_taken_where_named(tmp_path: Path) -> None:
    row = {"id": 7, "words": ["Anna", "ran"], "pos": ["I-X", "NOUN"]}
    columns = TaggedColumns(id="id", words="words", tags="pos", scheme="plain")
    assert from_json(tmp_path, columns, row) == [Kept(1, tagged("7", "Anna ran", "I-X NOUN"))]


def test_numbers_are_tags_by_given_names_or_by_those_of_class_labels(tmp_path: Path) -> None:
    names = ("O", "B-PER", "I-PER")
    rows = [{"tokens": ["Anna", "Berg"], "tags": [1, 2]}, {"tokens": ["ran"], "tags": [0]}]
    found = [Kept(1, tagged("1", "Anna Berg", "B-PER I-PER")), Kept(2, tagged("2", "ran", "O"))]
    assert from_json(tmp_path, TaggedColumns(names=names), *rows) == found
    as_texts = [{"tokens": ["Anna", "Berg"], "tags": ["1", "2"]}, {"tokens": ["ran"], "tags": ["O"]}]
    assert from_json(tmp_path, TaggedColumns(names=names), *as_texts) == found
    features = datasets.Features(
        tokens=datasets.List(datasets.Value("string")), tags=datasets.List(datasets.ClassLabel(names=list(names)))
    )
    assert from_parquet(tmp_path, TaggedColumns(), rows, features) == found


def test_sentences_without_words_or_tags_are_counted_drops(tmp_path: Path) -> None:
    lost_words = {"tokens": [], "tags": ["B-PER", "O"]}
    rows = [{"tokens": [], "tags": []}, {"tokens": ["a"], "tags": None}, {"tokens": ["a"]}, lost_words]
    assert from_json(tmp_path, TaggedColumns(), *rows) == [
        Drop(1, "no words"),
        Drop(2, "no label"),
        Drop(3, "no key 'tags' for the label"),
        Bad(4, "as many tags as words", "2 tags for 0 words"),
    ]


def test_class_labels_of_texts_are_read_by_name_alone_and_in_lists(tmp_path: Path) -> None:
    label = datasets.ClassLabel(names=["bad", "good"])
    features = datasets.Features(sentence=datasets.Value("string"), label=label)
    rows: list[dict[str, Any]] = [
        {"sentence": "a", "label": 1},
        {"sentence": "b", "label": -1},
        {"sentence": "c", "label": None},
    ]
    assert from_parquet(tmp_path, TextColumns(), rows, features) == [
        Kept(1, TextRecord("1", "a", ("good",))),
        Drop(2, "no label"),
        Drop(3, "no label"),
    ]
    features = datasets.Features(sentence=datasets.Value("string"), label=datasets.List(label))
    rows = [{"sentence": "a", "label": [1, 0]}]
    assert from_parquet(tmp_path, TextColumns(), rows, features) == [Kept(1, TextRecord("1", "a", ("good", "bad")))]
    assert from_parquet(tmp_path, TextColumns(), [{"sentence": "a", "label": 1}]) == [
        Kept(1, TextRecord("1", "a", ("1",)))
    ]


def test_a_null_is_an_empty_text(tmp_path: Path) -> None:
    """A null in JSON lines or Parquet was an error, where an empty cell in a table is a counted drop."""
    rows: list[dict[str, Any]] = [{"a": "x", "b": None, "label": "p"}, {"a": None, "b": None, "label": "q"}]
    texts, pairs = TextColumns(text="b"), PairColumns(first="a", second="b")
    drops = [Drop(1, "no text"), Drop(2, "no text")]
    assert from_json(tmp_path, texts, *rows) == from_parquet(tmp_path, texts, rows) == drops
    half = [Kept(1, PairRecord("1", "x", "", "p")), Drop(2, "no text")]
    assert from_json(tmp_path, pairs, *rows) == from_parquet(tmp_path, pairs, rows) == half
    assert from_json(tmp_path, SpanColumns(), {"text": None, "spans": []}) == [Drop(1, "no words")]
    assert from_json(tmp_path, texts, {"b": None, "label": None}) == [Drop(1, "no label")]
    to_predict = JsonlConfig(columns=texts).read(tmp_path / "rows.jsonl", "ignored")
    assert list(to_predict) == [Kept(1, TextRecord("1", "", ()))], "a prediction for each row, as for an empty cell"


ANSWERS: list[list[dict[str, Any]]] = [
    [{"text": "Ann", "answer_start": 0}, {"text": "Ann ran", "answer_start": 0}],
    [{"text": "ran", "answer_start": 3}],
    [],
]
"""Two answers, one that does not stand where it says, and none."""


def hub_form(answers: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {key: [answer[key] for answer in answers] for key in ("text", "answer_start")}


@pytest.mark.parametrize("several", ["alternatives", "spans"])
def test_questions_are_the_records_of_the_squad_reader(tmp_path: Path, several: Any) -> None:
    context = "Ann ran."
    qas: list[dict[str, Any]] = [
        {"id": str(number), "question": "Who?", "answers": answers} for number, answers in enumerate(ANSWERS)
    ]
    qas[2]["is_impossible"] = True
    (tmp_path / "a.json").write_text(json.dumps({"data": [{"paragraphs": [{"context": context, "qas": qas}]}]}))
    expected = list(SquadConfig(several=several).read(tmp_path / "a.json"))

    columns = QuestionColumns(several=several)
    rows = [{"id": item["id"], "question": "Who?", "context": context, "answers": item["answers"]} for item in qas]
    on_hub = [row | {"answers": hub_form(row["answers"])} for row in rows]
    for found in (
        from_json(tmp_path, columns, *rows),
        from_json(tmp_path, columns, *on_hub),
        from_parquet(tmp_path, columns, on_hub),
    ):
        assert [(content(row), notes(row)) for row in found] == [(content(row), notes(row)) for row in expected]
        assert [notes(row) for row in found] == [(), (_MISPLACED,), ()]


def test_no_answers_are_unlabelled_and_contexts_are_groups(tmp_path: Path) -> None:
    row: dict[str, Any] = {"id": "1", "question": "Who?", "context": "Ann ran.", "answers": None}
    assert from_json(tmp_path, QuestionColumns(), row) == [Drop(1, "no label")]
    row["answers"] = {"text": [], "answer_start": []}
    found = from_json(tmp_path, QuestionColumns(), row, {**row, "id": "2"}, {**row, "id": "3", "context": "Bob ran."})
    records = [row.record for row in found if isinstance(row, Kept) and isinstance(row.record, QuestionRecord)]
    assert [(record.answers, record.impossible) for record in records] == [((), True)] * 3
    assert records[0].group == records[1].group != records[2].group
    cells = {"answers": "Ann", "start": "0.0"}, {"answers": {"text": ["Ann"], "answer_start": [0.0]}, "start": None}
    for answered in cells:  # pandas writes whole numbers so where some are missing
        (kept,) = from_json(tmp_path, QuestionColumns(start="start"), row | answered)
        assert content(kept)[3] == ((AnswerSpan("Ann", 0),),)


def content(row: RowResult) -> tuple[Any, ...]:
    assert isinstance(row, Kept)
    assert isinstance(row.record, QuestionRecord)
    return tuple(getattr(row.record, name) for name in ("id", "question", "context", "answers", "impossible"))


def notes(row: RowResult) -> tuple[str, ...]:
    assert isinstance(row, Kept)
    return row.notes
