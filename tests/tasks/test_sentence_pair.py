"""Sentence pairs: rows, targets, and decoding of gold."""

from __future__ import annotations

import pytest
import torch

from dice_ray.data.records import PairRecord
from dice_ray.errors import DataError
from dice_ray.models.encoder import ModelConfig, load_tokenizer
from dice_ray.tasks.sentence_pair import SentencePair, SentencePairConfig

RECORDS = [
    PairRecord("1", "the router is broken", "we will look into it", "1"),
    PairRecord("2", "the router is broken since last monday again", "we sent a new one", "0"),
    PairRecord("3", "it is lovely", "thanks", "0"),
]


def task(**settings: object) -> SentencePair:
    config = SentencePairConfig.model_validate(settings)
    return config.build(config.classes(RECORDS))


def of(positive: list[float]) -> list[list[float]]:
    """The probabilities of both classes."""
    return [[1 - probability, probability] for probability in positive]


@pytest.mark.parametrize("link", ["softmax", "sigmoid"])
def test_gold_logits_decode_to_a_perfect_score(link: str) -> None:
    pair = task(link=link)
    tokenizer = load_tokenizer(ModelConfig(), pair.texts(RECORDS))
    rows = pair.encode(RECORDS, tokenizer)
    batch = pair.collate(rows, [2, 0, 1], tokenizer)
    gold = torch.tensor([0.0, 1.0, 0.0])
    assert batch.targets["label"].tolist() == [0, 1, 0]
    logits = {"label": (torch.stack([-gold, gold], 1) if link == "softmax" else 2 * gold[:, None] - 1) * 50}
    decoded = dict(zip(batch.rows, pair.decode(logits, batch), strict=True))
    decisions = pair.decide(RECORDS, rows, [decoded[row] for row in range(3)])
    scores = pair.score(RECORDS, rows, [decoded[row] for row in range(3)], decisions)
    assert scores.metrics["f1"] == scores.metrics["f1_tuned"] == 1.0
    assert scores.metrics["constant_f1"] == pytest.approx(0.5)
    assert not scores.collapsed
    assert [(item.id, item.tp, item.fp, item.fn) for item in scores.items] == [
        ("1", 1, 0, 0),
        ("2", 0, 0, 0),
        ("3", 0, 0, 0),
    ]


def test_facts_count_the_training_rows() -> None:
    pair = task()
    (facts,) = pair.facts(pair.encode(RECORDS, load_tokenizer(ModelConfig(), pair.texts(RECORDS))))
    assert (facts.classes, facts.counts, facts.background) == (("0", "1"), (2, 1), 0)


def test_a_row_that_loses_text_is_marked() -> None:
    pair = task(max_length=12)
    rows = pair.encode(RECORDS, load_tokenizer(ModelConfig(), pair.texts(RECORDS)))
    assert [row["cut"] for row in rows] == [False, True, False]
    assert all(len(row["input_ids"]) <= 12 for row in rows)


@pytest.mark.parametrize("side", ["right", "left"])
def test_a_pair_is_cut_on_the_side_where_its_tokenizer_cuts(side: str) -> None:
    pair = task(max_length=12)
    tokenizer = load_tokenizer(ModelConfig(), pair.texts(RECORDS))
    tokenizer.truncation_side = side
    expected = tokenizer(RECORDS[1].first, RECORDS[1].second, truncation=True, max_length=12)["input_ids"]
    assert pair.encode(RECORDS, tokenizer)[1]["input_ids"] == expected


def test_a_split_is_scored_at_the_given_threshold_not_at_its_own_best() -> None:
    pair = task()
    rows = pair.encode(RECORDS, load_tokenizer(ModelConfig(), pair.texts(RECORDS)))
    scores = pair.score(RECORDS, rows, of([0.7, 0.2, 0.1]), {"threshold": 0.05})
    assert (scores.metrics["f1"], scores.metrics["f1_tuned"]) == (1, 0.5)
    assert sum(item.fp for item in scores.tuned_items) == 2


def test_each_pair_has_the_probability_of_its_own_label() -> None:
    """Finds the probability of the positive class, or of the predicted one, in its place."""
    pair = task()
    rows = pair.encode(RECORDS, load_tokenizer(ModelConfig(), pair.texts(RECORDS)))
    assert [record.label for record in RECORDS] == ["1", "0", "0"]
    scores = pair.score(RECORDS, rows, of([0.3, 0.2, 0.9]), {"threshold": 0.5})
    assert scores.label_probabilities == pytest.approx({"1": 0.3, "2": 0.8, "3": 0.1})


def test_one_predicted_class_is_collapsed() -> None:
    pair = task()
    rows = pair.encode(RECORDS, load_tokenizer(ModelConfig(), pair.texts(RECORDS)))
    assert pair.score(RECORDS, rows, of([0.1, 0.2, 0.3]), {"threshold": 0.5}).collapsed
    assert not pair.score(RECORDS, rows, of([0.1, 0.2, 0.7]), {"threshold": 0.5}).collapsed


@pytest.mark.parametrize("labels", [["1", "1"], ["0", "0"], ["0", "1", "2"], ["yes", "no"]])
def test_other_labels_than_two_are_an_error(labels: list[str]) -> None:
    records = [PairRecord(str(number), "a", "b", label) for number, label in enumerate(labels)]
    with pytest.raises(DataError, match="exactly two labels"):
        SentencePairConfig().classes(records)


@pytest.mark.parametrize("link", ["softmax", "sigmoid"])
def test_a_pair_is_predicted_at_the_tuned_threshold_with_its_probabilities(link: str) -> None:
    pair = task(link=link)
    rows = pair.encode(RECORDS, load_tokenizer(ModelConfig(), pair.texts(RECORDS)))
    assert pair.predict(RECORDS, rows, of([0.3, 0.2, 0.1]), {"threshold": 0.25}).text().splitlines() == [
        "id\tlabel\tprobability_0\tprobability_1",
        "1\t1\t0.700000\t0.300000",
        "2\t0\t0.800000\t0.200000",
        "3\t0\t0.900000\t0.100000",
    ]
