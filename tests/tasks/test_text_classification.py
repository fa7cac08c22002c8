"""Text classification: one label, a positive one, several; windows; generated texts are learnt."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from sklearn.metrics import accuracy_score, f1_score

from dice_ray.config.load import Layer, resolve
from dice_ray.data.records import PairRecord, TextRecord
from dice_ray.errors import DataError
from dice_ray.metrics.decisions import FittedDecision
from dice_ray.models.encoder import ModelConfig, load_tokenizer
from dice_ray.run import single
from dice_ray.tasks.encoding import _write_rows
from dice_ray.tasks.text_classification import SentencePairConfig, TextClassificationConfig, _TextTask

LABELS = ["a", "b", "c", "a", "a"]
ONE = tuple(TextRecord(str(number), f"text {number}", (label,)) for number, label in enumerate(LABELS))
SEVERAL = tuple(
    TextRecord(str(number), f"text {number}", labels)
    for number, labels in enumerate([("a",), ("a", "b"), ("c",), ("a", "c"), ("b",)])
)


def built(records: tuple[TextRecord, ...], **settings: Any) -> _TextTask:
    config = TextClassificationConfig.model_validate(settings)
    return config.build(config.classes(records))


def at(threshold: float) -> FittedDecision:
    """The decision of dev for this threshold."""
    return FittedDecision("f1", {"threshold": threshold}, {"threshold": 0.5}, is_used=True, support=9, on_dev=0.0)


def scored(task: _TextTask, records: tuple[TextRecord, ...], decoded: list[list[float]]) -> dict[str, float]:
    rows = task.encode(records, load_tokenizer(ModelConfig(), task.texts(records)))
    return task.score(records, rows, decoded, task.decide(records, rows, decoded)).metrics


def test_one_label_is_scored_as_scikit_learn_does() -> None:
    predicted = np.array([0, 1, 1, 2, 0])
    metrics = scored(built(ONE), ONE, np.eye(3)[predicted].tolist())
    gold = ["abc".index(label) for label in LABELS]
    assert metrics["accuracy"] == accuracy_score(gold, predicted)
    assert metrics["macro_f1"] == pytest.approx(f1_score(gold, predicted, average="macro"))
    assert [metrics[f"f1_{name}"] for name in "abc"] == pytest.approx(f1_score(gold, predicted, average=None))
    assert metrics["constant_accuracy"] == 0.6
    assert metrics["constant_macro_f1"] == pytest.approx(f1_score(gold, [0] * 5, average="macro", zero_division=0))


def test_a_positive_label_is_scored_at_a_half_and_at_its_tuned_threshold() -> None:
    records = tuple(TextRecord(str(number), "x", (label,)) for number, label in enumerate(["no", "yes", "yes", "no"]))
    task = built(records, positive="no")
    assert task.classes == ("yes", "no")
    metrics = scored(task, records, [[0.6, 0.4], [0.9, 0.1], [0.8, 0.2], [0.3, 0.7]])
    assert metrics["f1"] == pytest.approx(2 / 3)
    assert metrics["f1_tuned"] == 1
    assert 0.2 < metrics["threshold"] < 0.4
    assert metrics["constant_f1"] == pytest.approx(2 / 3)
    assert task.config.objective() == "f1"


@pytest.mark.parametrize(
    ("settings", "decoded", "f1", "num_false"),
    [
        ({"positive": "a"}, [[0.3, 0.7], [0.8, 0.2], [0.9, 0.1]], 1 / 2, 2),
        ({"labels": "several"}, [[0.7, 0.1], [0.2, 0.8], [0.1, 0.9]], 2 / 3, 3),
    ],
)
def test_a_split_is_scored_at_the_given_threshold_not_at_its_own_best(
    settings: dict[str, Any], decoded: list[list[float]], f1: float, num_false: int
) -> None:
    records = tuple(TextRecord(str(number), "x", (label,)) for number, label in enumerate(["a", "b", "b"]))
    task = built(records, **settings)
    rows = task.encode(records, load_tokenizer(ModelConfig(), task.texts(records)))
    scores = task.score(records, rows, decoded, at(0.05))
    assert scores.metrics["f1"] == 1
    assert scores.metrics["f1_tuned"] == pytest.approx(f1)
    assert sum(item.fp for item in scores.tuned_items) == num_false


def test_several_labels_are_scored_as_scikit_learn_does() -> None:
    state = np.random.default_rng(0)
    probabilities = state.random((5, 3))
    metrics = scored(built(SEVERAL, labels="several"), SEVERAL, probabilities.tolist())
    gold = np.array([["abc"[index] in record.labels for index in range(3)] for record in SEVERAL]).astype(int)
    for threshold, suffix in ((0.5, ""), (metrics["threshold"], "_tuned")):
        predicted = (probabilities > threshold).astype(int)
        assert metrics[f"f1{suffix}"] == pytest.approx(f1_score(gold, predicted, average="micro"))
        assert metrics[f"macro_f1{suffix}"] == pytest.approx(f1_score(gold, predicted, average="macro"))
    assert metrics["f1_tuned"] >= metrics["f1"]
    constants = [
        f1_score(gold, np.tile(labels, (5, 1)), average="micro", zero_division=0) for labels in np.ndindex(2, 2, 2)
    ]
    assert metrics["constant_f1"] == pytest.approx(max(constants))


def test_the_best_constant_labels_are_those_that_most_texts_have() -> None:
    """All labels or none were called the best constant, and a model worse than one looked better."""
    records = tuple(TextRecord(str(number), "x", ("a", "b") if number == 3 else ("a",)) for number in range(10))
    for score, best in (("f1", 2 * 10 / (2 * 10 + 1)), ("f2", 5 * 10 / (5 * 10 + 4))):
        metrics = scored(built(records, labels="several", score=score), records, [[0.9, 0.1]] * 10)
        assert metrics[f"constant_{score}"] == pytest.approx(best)
    rule = {"cost": {"false_positive": 1.0, "false_negative": 2.0}}
    metrics = scored(built(records, labels="several", decision=rule), records, [[0.9, 0.1]] * 10)
    assert metrics["constant_cost"] == pytest.approx(1000 * 2 / 20), "b is missed once"


def predicted(
    task: _TextTask, texts: list[str], decoded: list[list[float]], threshold: float | None
) -> list[list[str]]:
    records = [TextRecord(str(number), text, ()) for number, text in enumerate(texts)]
    rows = task.encode(records, load_tokenizer(ModelConfig(), texts))
    decision = None if threshold is None else at(threshold)
    return [line.split("\t") for line in task.predict(records, rows, decoded, decision).text().splitlines()]


def test_a_text_is_predicted_as_its_most_probable_label_over_its_windows() -> None:
    task = built(ONE, max_length=8, stride=0)
    decoded = [[0.6, 0.4, 0.0], [0.0, 0.6, 0.4], [0.2, 0.2, 0.6]]
    assert predicted(task, ["a b c d e f g h i j", "b"], decoded, None) == [
        ["id", "label", "probability_a", "probability_b", "probability_c"],
        ["0", "b", "0.3", "0.5", "0.2"],
        ["1", "c", "0.2", "0.2", "0.6"],
    ]


def test_a_positive_label_and_several_are_predicted_at_the_tuned_threshold() -> None:
    records = tuple(TextRecord(str(number), "x", (label,)) for number, label in enumerate(["no", "yes"]))
    found = predicted(built(records, positive="yes"), ["x", "x"], [[0.7, 0.3], [0.8, 0.2]], 0.25)
    assert [row[1] for row in found] == ["label", "yes", "no"]
    several = built(SEVERAL, labels="several")
    found = predicted(several, ["x", "x"], [[0.3, 0.2, 0.26], [0.1, 0.1, 0.1]], 0.25)
    assert [row[1] for row in found] == ["label", "a;c", ""]


def test_a_label_without_texts_has_the_same_part_in_every_macro_f1() -> None:
    """Finds a mean over the predicted labels: one false positive of a label without texts would divide by one more."""
    task = built(SEVERAL, labels="several")
    for of_third in (0.1, 0.9):
        metrics = scored(task, SEVERAL[:2], [[0.9, 0.1, of_third], [0.9, 0.1, 0.1]])
        assert metrics["macro_f1"] == pytest.approx((1 + 0 + 0) / 3), "as in scikit-learn"


def test_several_labels_are_as_many_items_of_two_classes() -> None:
    task = built(SEVERAL, labels="several")
    tokenizer = load_tokenizer(ModelConfig(), task.texts(SEVERAL))
    rows = task.encode(SEVERAL, tokenizer)
    (facts,) = task.facts(rows)
    assert (facts.link, facts.counts, facts.background) == ("sigmoid", (8, 7), 0)
    by_label = dict(zip(facts.labels, facts.label_counts, strict=True))
    assert by_label == Counter(label for record in SEVERAL for label in record.labels)
    assert [part.counts for part in facts.by_label] == [(5 - count, count) for count in by_label.values()]
    term = task.terms({"label": torch.zeros(2, 3)}, task.collate(rows, [1, 2], tokenizer))["label"]
    assert term.targets.tolist() == [[1, 1, 0], [0, 0, 1]]


def test_probabilities_are_averaged_over_the_windows_of_a_text() -> None:
    records = (TextRecord("1", "a b c d e f g h i j", ("b",)), TextRecord("2", "b", ("a",)))
    task = built(records, max_length=8, stride=0)
    tokenizer = load_tokenizer(ModelConfig(), task.texts(records))
    rows = task.encode(records, tokenizer)
    assert [row["record"] for row in rows] == [0, 0, 1]
    assert task.facts(rows)[0].counts == (1, 2)
    scores = task.score(records, rows, [[0.6, 0.4], [0.1, 0.9], [0.7, 0.3]], None)
    assert scores.metrics["accuracy"] == 1
    assert [(item.id, item.tp) for item in scores.items] == [("1", 1), ("2", 1)]
    assert scores.label_probabilities == pytest.approx({"1": 0.65, "2": 0.7}), "of the label b, and of a"
    tuned = built(records, positive="b", max_length=8, stride=0)
    scores = tuned.score(records, rows, [[0.6, 0.4], [0.1, 0.9], [0.7, 0.3]], at(0.7))
    assert scores.metrics["f1_tuned"] == 0, "the mean is .65, the sum 1.3"


@pytest.mark.parametrize(
    ("settings", "objective"),
    [
        ({}, "accuracy"),
        ({"score": "macro_f1"}, "macro_f1"),
        ({"positive": "a"}, "f1"),
        ({"positive": "a", "score": "accuracy"}, "accuracy"),
        ({"labels": "several"}, "f1"),
        ({"labels": "several", "score": "macro_f1"}, "macro_f1"),
    ],
)
def test_the_objective_is_given_or_follows_from_the_labels(settings: dict[str, Any], objective: str) -> None:
    assert TextClassificationConfig.model_validate(settings).objective() == objective


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"score": "f1"}, "score f1 is that of one label: name it as `positive`, or choose accuracy, macro_f1"),
        ({"score": "pr_auc"}, "score pr_auc is that of one label"),
        ({"labels": "several", "positive": "a"}, "several labels have no positive one: leave `positive` out"),
        ({"labels": "several", "score": "accuracy"}, "score must be one of f1, .*, got 'accuracy'"),
        ({"labels": "several", "link": "softmax"}, "link must be sigmoid for several labels"),
        ({"link": "sigmoid"}, "link must be softmax without a `positive` label"),
    ],
)
def test_scores_and_links_that_do_not_fit_the_labels_are_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        TextClassificationConfig.model_validate(settings)


def test_pairs_of_three_classes_are_one_row_each_with_both_texts() -> None:
    """Premises and hypotheses were refused, as pairs had two classes: the second text must reach the encoder."""
    records = tuple(
        PairRecord(str(number), f"it rains {number}", "it is wet", "enc"[number % 3]) for number in range(6)
    )
    config = TextClassificationConfig(max_length=8)
    task = config.build(config.classes(records))
    tokenizer = load_tokenizer(ModelConfig(), task.texts(records))
    first, *_ = rows = task.encode(records, tokenizer)
    assert len(rows) == len(records)
    assert tokenizer.decode(first["input_ids"]) == "[CLS] it rains [SEP] it is wet [SEP]"
    assert first["cut"]
    assert [row["label"] for row in rows] == [1, 2, 0, 1, 2, 0], "classes in the order of their names"
    assert set(first["token_type_ids"]) == {0, 1}
    assert task.score(records, rows, np.eye(3)[[1, 2, 0, 1, 2, 2]].tolist(), None).metrics["accuracy"] == pytest.approx(
        5 / 6
    )


@pytest.mark.parametrize("side", ["right", "left"])
def test_a_pair_is_cut_on_the_side_where_its_tokenizer_cuts(side: str) -> None:
    records = [
        PairRecord("1", "the router is broken since last monday again", "we sent a new one", "0"),
        PairRecord("2", "it is lovely", "thanks", "1"),
    ]
    config = SentencePairConfig(max_length=12)
    task = config.build(config.classes(records))
    tokenizer = load_tokenizer(ModelConfig(), task.texts(records))
    tokenizer.truncation_side = side
    expected = tokenizer(*records[0].content, truncation=True, max_length=12)["input_ids"]
    rows = task.encode(records, tokenizer)
    assert rows[0]["input_ids"] == expected
    assert [row["cut"] for row in rows] == [True, False]


def test_predictions_of_one_class_are_collapsed() -> None:
    records = tuple(TextRecord(str(number), "x", (label,)) for number, label in enumerate(["no", "yes", "yes"]))
    task = built(records, positive="yes")
    rows = task.encode(records, load_tokenizer(ModelConfig(), ["x"]))
    for last, is_collapsed in ((0.4, True), (0.6, False)):
        decoded = [[1 - positive, positive] for positive in (0.1, 0.2, last)]
        assert task.score(records, rows, decoded, at(0.15)).collapsed == is_collapsed


@pytest.mark.parametrize("labels", [["1", "1"], ["0", "0"], ["0", "1", "2"], ["yes", "no"]])
def test_a_pair_has_exactly_two_labels(labels: list[str]) -> None:
    records = [PairRecord(str(number), "a", "b", label) for number, label in enumerate(labels)]
    with pytest.raises(DataError, match=r"sentence_pair .*exactly two labels.*\(task.sentence_pair.positive\)"):
        SentencePairConfig().classes(records)


def test_the_link_is_in_the_key_of_rows_only_where_older_versions_had_it_or_it_was_chosen() -> None:
    """Rows that were cached before texts had a link are found."""
    texts = [{}, {"labels": "several"}, {"positive": "a"}, {"positive": "a", "link": "sigmoid"}]
    assert [TextClassificationConfig.model_validate(each).row_settings().get("link") for each in texts] == [
        None,
        None,
        None,
        "sigmoid",
    ]
    assert set(SentencePairConfig().row_settings()) == {"positive", "score", "link", "max_length"}


def test_labels_that_do_not_fit_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="exactly two labels"):
        built(ONE, positive="a")
    with pytest.raises(DataError, match="at least two labels"):
        built(ONE[:1])
    tokenizer = load_tokenizer(ModelConfig(), ["text"])
    with pytest.raises(DataError, match=r"text 9: its labels must be among .* got 'z'"):
        built(ONE).encode([TextRecord("9", "text", ("z",))], tokenizer)
    with pytest.raises(DataError, match=r"must have one label, got \('a', 'b'\); task\.text_classification\.labels"):
        built(ONE).check_labels([SEVERAL[1]])
    bare = TextRecord("bare", "text", ())
    with pytest.raises(DataError, match=r"text bare must have one label, got none; task\.text_classification\.labels"):
        _write_rows(built(ONE), tokenizer, [bare], tmp_path / "dev.arrow")  # a whole split without labels ended a run
    assert built(ONE).encode([bare], tokenizer), "texts without labels are predicted"


@pytest.mark.parametrize("labels", ["one", "several"])
def test_a_tiny_encoder_learns_the_generated_texts(tmp_path: Path, labels: str) -> None:
    """By 50 points of macro F1 over the constant predictor; without the rare class it would reach 74."""
    preset = {
        "task": {"text_classification": {"labels": labels, "score": "macro_f1"}},
        "data": {"source": {"synthetic": {"kind": "texts", "size": 800}}},
        "training": {"epochs": 4, "batch_size": 16, "lr": 2e-3},
    }
    list(single.evaluations(config := resolve([Layer("preset", preset)]), tmp_path))
    test = single.score(config, tmp_path, "test")
    assert test["test/macro_f1"] > test["test/constant_macro_f1"] + 0.5
    assert test["test/f1_safety"] > 0.6
