"""Inspections: by hand on small data sets, and compared with the files on real ones."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dice_ray import api
from dice_ray.data.records import (
    LoadReport,
    PairRecord,
    QueryRecord,
    QuestionRecord,
    Rarest,
    Splits,
    TaggedRecord,
    TextRecord,
)
from dice_ray.tasks.extractive_qa import ExtractiveQAConfig
from dice_ray.tasks.inspection import inspect, rarest_and_unseen
from dice_ray.tasks.mrc_ner import MrcNerConfig
from dice_ray.tasks.tagging import TaggingConfig
from dice_ray.tasks.text_classification import SentencePairConfig, TextClassificationConfig

TAGGED = (
    TaggedRecord("1", ("Ada", "met", "Grace", "Hopper"), ("B-PER", "O", "B-PER", "I-PER")),
    TaggedRecord("2", ("Nobody", "came"), ("O", "O")),
    TaggedRecord("3", ("Nobody", "came"), ("O", "O")),
)
TEXTS = tuple(TextRecord(str(number), f"text {number}", (label,)) for number, label in enumerate("aaabbc"))
PAIRS = tuple(PairRecord(str(number), "a b", f"c{number}", label) for number, label in enumerate("0100"))


def splits(train: tuple[Any, ...], dev: tuple[Any, ...] = ()) -> Splits:
    return Splits(train, dev, (), LoadReport({}, {"train": len(train)}, {}, {}), "")


def test_tagged_sentences_are_counted_by_words() -> None:
    found = inspect("mine", TaggingConfig(), splits(TAGGED))
    assert list(found.splits) == ["train"]
    facts = found.splits["train"]
    assert (facts.negatives, facts.positives, facts.ratio) == (5, 3, 5 / 3)
    assert facts.labels == {"O": 5, "B-PER": 2, "I-PER": 1}
    assert (facts.num_records, facts.duplicates) == (3, 1)
    assert (facts.lengths.median, facts.lengths.percentile_95, facts.lengths.longest, facts.lengths.total) == (
        2,
        4,
        4,
        8,
    )
    assert found.unit == "words"
    assert found.convention.startswith("Words (or characters) of the background")


def test_each_task_defines_what_is_negative() -> None:
    several = TextClassificationConfig(labels="several")
    many = (TextRecord("1", "x", ("a", "b")), TextRecord("2", "y", ()), TextRecord("3", "z", ("c",)))
    assert SentencePairConfig().negatives_and_positives(PAIRS) == (3, 1)
    assert SentencePairConfig(positive="0").negatives_and_positives(PAIRS) == (1, 3)
    assert TextClassificationConfig().negatives_and_positives(TEXTS) == (5, 1)
    assert TextClassificationConfig(positive="a").negatives_and_positives(TEXTS) == (3, 3)
    assert several.negatives_and_positives(many) == (6, 3)
    assert TaggingConfig(tags="plain").negatives_and_positives(TAGGED) == (7, 1)
    assert TaggingConfig(tags="plain", background="O").negatives_and_positives(TAGGED) == (5, 3)
    assert TaggingConfig(unit="character").negatives_and_positives(TAGGED) == (3 + 20, 3 + 5 + 6)
    assert TextClassificationConfig().negatives_and_positives(()) == (0, 0)


def test_the_rarest_class_is_one_that_the_score_counts() -> None:
    several, missing = TextClassificationConfig(labels="several"), ("a", "b", "c", "d")
    questions = (QuestionRecord("1", "q", "c", (), True, "g"), QuestionRecord("2", "q", "c", (), True, "g"))
    typed = (QueryRecord("1", ("a", "b"), "q", "T", ((0, 1), (0, 2)), "1"), QueryRecord("2", ("a",), "q", "U", (), "1"))
    for task, records, classes, expected in (
        (SentencePairConfig(), PAIRS, ("0", "1"), Rarest("1", 1)),
        (SentencePairConfig(), PAIRS[:1], ("0", "1"), Rarest("1", 0)),
        (TextClassificationConfig(score="macro_f1"), TEXTS, missing, Rarest("d", 0)),
        (several, TEXTS, missing[:3], Rarest("c", 1)),
        (TaggingConfig(), TAGGED, ("O", "B-PER", "I-PER"), Rarest("PER", 2, together=True)),
        (TaggingConfig(), TAGGED, ("O", "B-PER", "I-LOC"), Rarest("LOC", 0)),
        (TaggingConfig(tags="plain", background="O"), TAGGED, ("O", "B-PER", "I-PER"), Rarest("I-PER", 1)),
        (TaggingConfig(tags="plain"), TAGGED, ("O", "B-PER", "I-PER"), Rarest("words", 8, together=True)),
        (ExtractiveQAConfig(), questions, ("none", "answer"), Rarest("questions", 2, together=True)),
        (MrcNerConfig(), typed, ("T", "U"), Rarest("U", 0)),
    ):
        assert rarest_and_unseen(task, classes, {"dev": records, "test": ()})[0] == {"dev": expected}
    scores = (TextClassificationConfig(positive="a"), TextClassificationConfig(score="macro_f1"), SentencePairConfig())
    assert all(task.scores_every_class() for task in scores)
    assert not any(task.scores_every_class() for task in (TextClassificationConfig(), several, TaggingConfig()))


def test_chinese_is_measured_in_characters() -> None:
    found = inspect("mine", TextClassificationConfig(), splits((TextRecord("1", "今天 天气 很好 OK", ("a",)),)))
    assert found.unit == "characters"
    assert found.splits["train"].lengths.total == 8


def test_the_lengths_of_a_pair_are_those_of_both_texts() -> None:
    lengths = inspect("mine", SentencePairConfig(), splits(PAIRS, PAIRS[:2])).splits["dev"].lengths
    assert (lengths.total, lengths.longest) == (6, 3)


def test_a_question_is_as_long_as_it_and_its_context() -> None:
    from dice_ray.tasks.inspection import _length

    record = QuestionRecord("1", "Who came?", "Nobody came at all.", (), True, "1")
    assert _length(record, "words") == 6


def test_without_a_positive_there_is_no_ratio() -> None:
    found = inspect("mine", SentencePairConfig(positive="2"), splits(PAIRS))
    assert found.splits["train"].ratio is None
    assert found.plain()["splits"]["train"]["ratio"] is None


@pytest.mark.real_data
def test_the_counts_are_those_of_the_files(data_folder: Path) -> None:
    wnut17, mrpc, tnews = api.inspect(["wnut17", "mrpc", "tnews"])
    lines = (data_folder / "wnut17" / "wnut17train.conll").read_text().splitlines()
    tags = Counter(line.split("\t")[1].strip() for line in lines if line.strip())
    read = [wnut17.splits[split] for split in ("train", "dev")]  # dev is drawn from the file
    assert sum(each.negatives for each in read) == tags["O"]
    assert sum(each.positives for each in read) == tags.total() - tags["O"]
    assert sum((Counter(each.labels) for each in read), Counter()) == tags
    assert (mrpc.splits["test"].negatives, mrpc.splits["test"].positives) == (578, 1147)
    assert sum(tnews.splits["test"].labels.values()) == 2010
    assert tnews.unit == "characters"
