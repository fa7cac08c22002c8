"""Answers of an LLM to each task: what is read, what is not, and what a record without an answer counts as."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dice_ray.data.records import AnswerSpan, QueryRecord, QuestionRecord, TaggedRecord, TextRecord
from dice_ray.errors import DataError, InputError
from dice_ray.tasks.answers import Answers, LabelNames
from dice_ray.tasks.base import Scores, Task
from dice_ray.tasks.extractive_qa import ExtractiveQAConfig
from dice_ray.tasks.mrc_ner import MrcNerConfig
from dice_ray.tasks.tagging import TaggingConfig
from dice_ray.tasks.text_classification import TextClassificationConfig


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("toxic", "toxic"),
        ("Toxic.", "toxic"),
        ("**Severe toxic**", "severe_toxic"),
        ("The label is SEVERE_TOXIC, clearly", "severe_toxic"),
        ("Answer: 1", "1"),
        ("-1", "-1"),
        ("It has the score -1.", "-1"),
        ("yes", "yes"),
        ("No", "no"),
        ("\u7b54\u6848\u662f\u6b63\u9762\u3002", "\u6b63\u9762"),
        ("toxic or fine", None),
        ("not toxic", None),
        ("It isn't toxic", None),
        ("nontoxic", None),
        ("intoxicated", None),
        ("1.5", None),
        ("0.1", None),
        ("", None),
        ("US", "US"),
        ("us", "us"),
        ("Us", None),
    ],
)
def test_a_label_is_read_where_a_text_names_exactly_one(text: str, label: str | None) -> None:
    """A label that is found within another word, or that is denied, would be the opposite of the answer."""
    names = LabelNames(("toxic", "severe_toxic", "fine", "1", "-1", "yes", "no", "\u6b63\u9762", "US", "us"))
    assert names.named(text) == label


def scored(
    task: Task[Any], records: list[Any], answers: Mapping[str, object], folder: Path, name: str
) -> tuple[Scores, str]:
    file = folder / "answers.jsonl"
    file.write_text("".join(json.dumps({"id": id_, name: answer}) + "\n" for id_, answer in answers.items()))
    read = Answers.read(file, task.answer_ids(records, file))
    scores, counts_as = task.score_answers(records, read, None)
    return scores, read.sentence(counts_as)


def test_without_a_negative_label_a_missing_answer_is_wrong(tmp_path: Path) -> None:
    """As the first class it would be right for each record of that class."""
    records = [TextRecord(str(n), "", (label,)) for n, label in enumerate("aaabbc")]
    task = TextClassificationConfig().build(("a", "b", "c"))
    scores, said = scored(task, records, {"1": "a", "2": "A", "3": "b", "5": "c"}, tmp_path, "label")
    # Missing are an `a` and a `b`.
    assert scores.metrics["accuracy"] == pytest.approx(4 / 6)
    assert [(item.id, item.tp) for item in scores.items if not item.tp] == [("0", 0), ("4", 0)]
    assert said == (
        "1 answer with other case or extra text was read as the label that it names (2: 'A'); 2 ids are missing (0, "
        "4); what is missing or unread counts as wrong."
    )
    assert not {"log_loss", "roc_auc"} & scores.metrics.keys()  # which labels alone do not have


def test_several_labels_are_a_list_or_separated(tmp_path: Path) -> None:
    """`a;b` was read as one label, and an empty answer as a missing one."""
    records = [TextRecord("0", "", ("a", "b")), TextRecord("1", "", ()), TextRecord("2", "", ("b",))]
    task = TextClassificationConfig(labels="several").build(("a", "b"))
    scores, said = scored(task, records, {"0": "A; b", "1": "", "2": ["b"]}, tmp_path, "label")
    assert scores.metrics["f1"] == 1
    assert said == "1 answer with other case or extra text was read as the label that it names (0: 'A; b')."
    scores, said = scored(task, records, {"0": ["a", "both"], "1": [], "2": ["b"]}, tmp_path, "label")
    # 2 of 3 labels are missed.
    assert scores.metrics["f1"] == pytest.approx(2 / 4)
    assert (
        "1 answer cannot be read, or names no label or several (0: \"['a', 'both']\"); what is missing or unread counts"
        in said
    )


def test_a_label_with_a_comma_is_read_whole(tmp_path: Path) -> None:
    records = [TextRecord("0", "", ("a, b", "c")), TextRecord("1", "", ("a, b",)), TextRecord("2", "", ("c",))]
    task = TextClassificationConfig(labels="several").build(("a, b", "c"))
    assert scored(task, records, {"0": "a, b; c", "1": "a, b", "2": "c"}, tmp_path, "label")[0].metrics["f1"] == 1


def test_one_of_several_labels_may_be_the_number_0(tmp_path: Path) -> None:
    """The number was read as an answer without labels."""
    records = [TextRecord("0", "", ("0",)), TextRecord("1", "", ("1",))]
    task = TextClassificationConfig(labels="several").build(("0", "1"))
    assert scored(task, records, {"0": 0, "1": 1}, tmp_path, "labels")[0].metrics["f1"] == 1


@pytest.mark.parametrize("separator", ["\u2028", "\x85", "\x0c"])
def test_a_line_of_a_table_ends_at_a_line_break_alone(tmp_path: Path, separator: str) -> None:
    """A page break or a line separator of Unicode within a cell cut the row in two."""
    file = tmp_path / "answers.tsv"
    file.write_text(f"id\ttext\tlabel\n0\tone{separator}two\ta\n1\tthree\tb\n", encoding="utf-8")
    assert [row["label"] for row in Answers.read(file, ["0", "1"]).by_id.values()] == ["a", "b"]


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ([{"probability": 0.9}], "0 must have a probability of each label, and lacks probability_a"),
        ([{"probability_a": 0.9, "probability_b": 0.1}], "0 must have a probability of each label, and lacks prob.*_c"),
        ([{"probability_a": 9, "probability_b": 1, "probability_c": 0}], "from 0 to 1, got 9 for 0"),
        ([{"probability_a": 10**400, "probability_b": 0, "probability_c": 0}], "from 0 to 1, got 10.* for 0"),
    ],
)
def test_probabilities_of_classes_must_be_whole(tmp_path: Path, rows: list[dict[str, Any]], error: str) -> None:
    """The probability of one of several classes was taken for that of none."""
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps({"id": str(n), **row}) + "\n" for n, row in enumerate(rows)))
    task = TextClassificationConfig().build(("a", "b", "c"))
    with pytest.raises(DataError, match=error):
        task.score_answers([TextRecord("0", "", ("a",))], Answers.read(file, ["0"]), None)


def test_probabilities_count_more_than_the_label_beside_them(tmp_path: Path) -> None:
    """A label at a threshold of the other program's own, and a probability that is missing, would go unnoticed."""
    rows = [
        {"id": "0", "label": "yes", "probability": 0.4},
        {"id": "1", "label": "yes", "probability": 0.8},
        {"id": "2", "label": "no"},
    ]
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    records = [TextRecord(str(n), "", (label,)) for n, label in enumerate(("yes", "yes", "no"))]
    answers = Answers.read(file, ["0", "1", "2"])
    scores, counts_as = (
        TextClassificationConfig(positive="yes").build(("no", "yes")).score_answers(records, answers, None)
    )
    assert scores.metrics["f1"] == pytest.approx(2 / 3)
    assert answers.sentence(counts_as) == (
        "1 answer has a label without a probability: it is taken as 1 (2); 1 label is not that of the probabilities "
        "at .5: the probabilities count (0: 'yes')."
    )


def test_tags_are_read_by_word_and_a_wrong_number_of_them_is_no_answer(tmp_path: Path) -> None:
    """Tags for other words would be shifted against the gold ones."""
    words, tags = ("Ann", "Berg", "saw", "Rome"), ("B-PER", "I-PER", "O", "B-LOC")
    records = [TaggedRecord(str(number), words, tags) for number in range(4)]
    task = TaggingConfig().build(("O", "B-LOC", "B-PER", "I-PER"))
    given = {"0": ["b-per", "I-PER", "O", "B-CITY"], "1": tags[:3], "2": " ".join(tags), "3": tags}
    scores, said = scored(task, records, given, tmp_path, "tags")
    # Of 8 spans, the place of sentence 0 and both of sentence 1 are missed.
    assert scores.metrics["f1"] == pytest.approx(10 / 13)
    assert said == (
        "1 answer with other case or extra text was read as the label that it names (0: 'b-per'); 2 answers cannot "
        "be read, or name no label or several (0: 'B-CITY', 1: '3 tags for 4 words'); what is missing or unread counts "
        "as words outside of all spans."
    )


def test_a_file_of_tags_must_have_the_sentences_of_the_split(tmp_path: Path) -> None:
    """A CoNLL file has no ids: that of another split, or in another order, would be scored."""
    records = [TaggedRecord(str(number), (f"word{number}",), ("B-X",)) for number in range(2)]
    task, file = TaggingConfig().build(("O", "B-X")), tmp_path / "tags.conll"
    for text, error in (
        ("word0\tB-X\n", "must have the 2 sentences of the split in their order, got 1"),
        ("word1\tB-X\n\nword0\tB-X\n", r"0 must have the words \['word0'\], got \['word1'\]"),
    ):
        file.write_text(text)
        with pytest.raises(DataError, match=error):
            task.score_answers(records, Answers.read(file, ["0", "1"]), None)
    file.write_text("word0\tB-X\n\nword1\tO\n")
    answers = Answers.read(file, ["0", "1"])
    with pytest.raises(InputError, match=r"tags.conll has none"):
        task.score_answers(records, answers, (records, answers))


def test_spans_of_queries_must_lie_in_their_sentence(tmp_path: Path) -> None:
    """A span beyond the sentence was a false alarm without a word."""
    records = [QueryRecord(f"{n}.1", ("Ann", "saw", "Rome"), "", "PER", ((0, 1),), str(n)) for n in range(3)]
    file = tmp_path / "spans.json"
    places = ([0], [0]), ([2], [3]), ([0, 2], [0, 2])
    rows = [
        {"qas_id": f"{n}.1", "start_position": first, "end_position": last} for n, (first, last) in enumerate(places)
    ]
    file.write_text(json.dumps(rows))
    task = MrcNerConfig().build(("PER",))
    answers = Answers.read(file, task.answer_ids(records, file))
    scores, counts_as = task.score_answers(records, answers, None)
    assert scores.metrics["f1"] == pytest.approx(4 / 6)  # 2 found, 1 missed, 1 false alarm
    assert "(1.1: '[2] to [3]'); what is missing or unread counts as without spans" in answers.sentence(counts_as)


def test_a_missing_answer_is_wrong_also_where_the_question_has_none(tmp_path: Path) -> None:
    """SQuAD 2.0 scores an empty answer to such a question as right, and a file that lacks the id would gain by it."""
    span = ((AnswerSpan("Rome", 8),),)
    records = [
        QuestionRecord(str(number), "Where?", "Ann saw Rome", answers, not answers, "")
        for number, answers in enumerate((span, span, (), (), (), ()))
    ]
    task = ExtractiveQAConfig().build(("none", "answer"))
    given = {"0": "Rome", "1": "in Rome", "2": "", "3": "Unanswerable.", "4": None}
    scores, said = scored(task, records, given, tmp_path, "answer")
    assert scores.metrics["f1"] == pytest.approx((1 + 2 / 3 + 1 + 1 + 0 + 0) / 6)
    assert said == (
        "1 answer was read as no answer (3: 'Unanswerable.'); 1 id is missing (5); 1 answer cannot be read, or names "
        "no label or several (4: 'None'); what is missing or unread counts as wrong."
    )
