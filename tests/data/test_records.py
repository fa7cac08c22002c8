"""The report of what was read, as the terminal shows it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

from dice_ray.data.records import (
    _ENOUGH_ITEMS,
    AnswerSpan,
    LoadReport,
    QueryRecord,
    QuestionRecord,
    Rarest,
    ReadReport,
    RowTally,
    TaggedRecord,
    TextRecord,
    digest,
    documents,
    record_text,
)

CLEAN = LoadReport(
    read={"train": ReadReport("a.tsv", 40, 40), "test": ReadReport("b.tsv", 9, 9)},
    sizes={"train": 36, "test": 9, "dev": 4},
    drawn={"dev": "0.1 of train, drawn with seed 0"},
    shared={},
    cut={"train": 0, "dev": 0},
)


def test_the_document_of_a_question_is_its_article_or_else_its_paragraph() -> None:
    def question(id: str, group: str) -> QuestionRecord:
        return QuestionRecord(id, "", "", (), False, group)

    article = [question("a", "data[0].paragraphs[0]"), question("b", "data[0].paragraphs[1]")]
    assert documents(article) == {"a": "data[0]", "b": "data[0]"}
    assert documents([question("a", "8f2"), question("b", "8f2"), question("c", "91a")])["b"] == "8f2"
    assert documents([question("a", "8f2"), question("c", "91a")]) == {}, "nothing is shared"
    assert documents([TextRecord("a", "", ())]) == {}
    texts = [TextRecord("1", "a", ("x",), "Ann"), TextRecord("2", "b", ("x",), "Ann")]
    assert documents(texts) == {"1": "Ann", "2": "Ann"}, "the group that the user names"
    sentences = [TaggedRecord(id, ("a",), ("O",), document) for id, document in (("1", ""), ("4", "3"), ("6", "3"))]
    assert documents(sentences) == {"1": "record 1", "4": "3", "6": "3"}
    assert len(set(documents([*sentences, TaggedRecord("7", ("a",), ("O",))]).values())) == 3, "each is one of its own"
    assert documents([replace(sentence, document="") for sentence in sentences]) == {}


def test_the_text_of_a_record_is_its_input_without_labels() -> None:
    """Finds words that are joined as sentences are, and answers or tags beside the text."""
    tagged = TaggedRecord("1", ("Ada", "sings"), ("B-PER", "O"))
    query = QueryRecord("2", ("Ada", "sings"), "Who?", "PER", ((0, 1),), "g")
    question = QuestionRecord("3", "Who sings?", "Ada sings.", ((AnswerSpan("Ada", 0),),), False, "g")
    texts = [record_text(record) for record in (tagged, query, question, TextRecord("4", "Hi", ("a",)))]
    assert texts == ["Ada sings", "Who? | Ada sings", "Who sings? | Ada sings.", "Hi"]


def test_the_digest_of_data_is_that_of_versions_without_documents() -> None:
    sentence = TaggedRecord("4", ("a",), ("O",))
    assert digest([[sentence]]) == digest([[replace(sentence, document="3")]])
    written = json.dumps(["4", ["a"], ["O"]]).encode() + b"\n"
    assert digest([[sentence]]) == hashlib.sha256(written).hexdigest()[:16]


def test_the_digest_of_splits_by_columns_is_of_these_and_of_the_groups() -> None:
    """With splits of one's own, groups change intervals but no record: a study must not mix them."""
    rows = [[TextRecord("1", "a", ("x",), group)] for group in ("", "Ann", "Bob")]
    columns = [None, {"groups": "who"}, {"groups": "whom"}, {"time": "when"}]
    digests = [digest([each], by) for each in rows for by in columns]
    assert len(set(digests)) == 10, "without columns, the three have the same"


def test_a_clean_load_is_a_line() -> None:
    assert str(CLEAN) == "data: 36 train, 4 dev, 9 test records (dev is 0.1 of train, drawn with seed 0)"


def test_too_few_items_of_the_rarest_class_are_the_first_line_with_a_remedy() -> None:
    few = {"dev": Rarest("yes", 0), "test": Rarest("yes", _ENOUGH_ITEMS - 1)}
    assert str(replace(CLEAN, rarest=few)).splitlines()[0] == (
        "Warning: too few items of the rarest class: dev has 0 of 'yes' and test has 19 of 'yes', and with fewer than "
        "20 a score depends on chance. Label more of them, draw a larger dev split (data.dev_share) or give a larger "
        "test file."
    )
    few = {"dev": Rarest("questions", 3, together=True)}
    assert str(replace(CLEAN, rarest=few)).startswith("Warning: too few items: dev has 3 of 'questions', and with")
    enough = replace(CLEAN, rarest={"dev": Rarest("yes", _ENOUGH_ITEMS)})
    assert (enough.few_items(), str(enough)) == (None, str(CLEAN))
    assert LoadReport.of(json.loads(enough.as_json())) == enough
    assert LoadReport.of({key: value for key, value in CLEAN.plain().items() if key != "rarest"}) == CLEAN


def test_dropped_noted_shared_and_truncated_rows_have_a_line_each() -> None:
    read = ReadReport("a.tsv", 50, 40, {"no label": RowTally(10, [3, 5])}, {"an odd offset": RowTally(1, ["data[0]"])})
    report = LoadReport(
        read={"train": read},
        sizes={"train": 36, "dev": 4},
        drawn={},
        shared={"train and dev": 2},
        cut={"train": 7, "dev": 0},
    )
    assert str(report).splitlines() == [
        "data: 36 train, 4 dev records",
        "  10 of 50 rows of a.tsv dropped: no label (line 3, line 5, ...)",
        "  1 of 50 rows of a.tsv noted: an odd offset (data[0])",
        "  2 of 4 dev records also occur in train",
        "  7 of 36 train records truncated to max_length",
    ]
    assert json.loads(report.as_json()) == report.plain()
