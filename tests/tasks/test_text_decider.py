"""Decisions of texts, from probabilities that are drawn: what each rule gains, and what is stored of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from sklearn.metrics import f1_score

from dice_ray.data.records import TextRecord
from dice_ray.metrics.decisions import FittedDecision
from dice_ray.models.encoder import ModelConfig, load_tokenizer
from dice_ray.tasks.base import Row, Scores
from dice_ray.tasks.text_classification import TextClassificationConfig, _TextTask
from tests.tasks.test_text_classification import built

POSITIVE = {"positive": "yes"}


def drawn(num: int = 600, share: float = 0.1, seed: int = 0) -> tuple[tuple[TextRecord, ...], list[list[float]]]:
    """Records of two classes, and probabilities of a model that finds them at low ones."""
    state = np.random.default_rng(seed)
    labels = state.random(num) < share
    p = 0.4 / (1 + np.exp(-state.normal(4 * labels - 2, 1)))
    records = tuple(TextRecord(str(n), "x", ("yes" if label else "no",)) for n, label in enumerate(labels))
    return records, np.stack([1 - p, p], 1).tolist()


def fitted(
    task: _TextTask, records: tuple[TextRecord, ...], decoded: list[list[float]]
) -> tuple[list[Row], FittedDecision]:
    """The rows of the records, and the decision of these probabilities."""
    rows = task.encode(records, load_tokenizer(ModelConfig(), ["x"]))
    return rows, task.decide(records, rows, decoded)


def scored(task: _TextTask, records: tuple[TextRecord, ...], decoded: list[list[float]]) -> Scores:
    rows, decision = fitted(task, records, decoded)
    return task.score(records, rows, decoded, decision)


@pytest.mark.parametrize(
    ("decision", "metric", "is_lower"),
    [
        ({"f_beta": {"beta": 2}}, "f2", False),
        ({"cost": {"false_positive": 1, "false_negative": 20}}, "cost", True),
        ({"recall": {"at_least": 0.9}}, "precision", False),
        ({"precision": {"at_least": 0.9}}, "recall", False),
        ({"rate": {"at_most": 0.1}}, "recall", False),
    ],
)
def test_a_chosen_decision_decides_and_its_value_is_stored(
    decision: dict[str, Any], metric: str, is_lower: bool
) -> None:
    records, decoded = drawn()
    task = built(records, **POSITIVE, decision=decision)
    assert task.config.objective() == f"{metric}_tuned"
    metrics = scored(task, records, decoded).metrics
    tuned, plain, constant = (metrics[name] for name in (f"{metric}_tuned", metric, f"constant_{metric}"))
    if metric != "recall":  # a limit costs some recall: everything positive has 1
        assert (tuned < min(plain, constant)) if is_lower else (tuned > constant)
    assert metrics["threshold_used"] == metrics["threshold"] < 0.4
    match next(iter(decision)):
        case "recall":
            assert metrics["recall_tuned"] >= 0.9
        case "precision":
            assert metrics["precision_tuned"] >= 0.9
        case "rate":
            assert metrics["flagged_tuned"] <= 0.1
    if "target_missed" in metrics:
        assert metrics["target_missed"] == 0


def test_a_missed_limit_is_told_by_the_scores_of_other_records() -> None:
    records, decoded = drawn()
    others, of_others = drawn(seed=5)
    task = built(records, **POSITIVE, decision={"recall": {"at_least": 0.99}})
    rows, decision = fitted(task, records, decoded)
    metrics = task.score(others, rows, of_others, decision).metrics
    assert metrics["target_missed"] == (metrics["recall_tuned"] < 0.99) == 1


def test_frequent_labels_have_thresholds_of_their_own() -> None:
    """Finds one threshold for all: the model finds `a` at high probabilities, and `b` at low ones."""
    state = np.random.default_rng(0)
    has_NC = state.random((400, 3)) < (0.3, 0.3, 0.02)
    p_NC = 1 / (1 + np.exp(-state.normal(5 * has_NC - 2.5, 1))) * (1, 0.2, 1) + (0, 0, 0)
    records = tuple(
        TextRecord(str(n), "x", tuple(label for label, has in zip("abc", row, strict=True) if has))
        for n, row in enumerate(has_NC)
    )
    task = built(records, labels="several")
    rows, decision = fitted(task, records, p_NC.tolist())
    assert set(decision.tuned) == {"threshold", "threshold:a", "threshold:b"}, "c has few positives"
    assert decision.tuned["threshold:b"] < 0.2 < decision.tuned["threshold:a"]
    metrics = task.score(records, rows, p_NC.tolist(), decision).metrics
    limits = [decision.tuned.get(f"threshold:{label}", decision.tuned["threshold"]) for label in "abc"]
    assert metrics["f1_tuned"] == pytest.approx(f1_score(has_NC, p_NC > limits, average="micro"))
    (line, *_) = task.predict(records, rows, p_NC.tolist(), decision).rows
    assert line[1] == ";".join(np.array(list("abc"))[p_NC[0] > limits])


def test_three_classes_have_shifts_for_the_score_or_macro_f1() -> None:
    state = np.random.default_rng(0)
    labels = state.choice(3, 900, p=[0.8, 0.15, 0.05])
    logits = state.normal(0, 1, (900, 3)) + 1.5 * np.eye(3)[labels] + (2, 0, -1)
    p_NC = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    records = tuple(TextRecord(str(n), "x", ("abc"[label],)) for n, label in enumerate(labels))
    task = built(records, score="decision")
    assert task.config.objective() == "macro_f1_tuned"
    rows, decision = fitted(task, records, p_NC.tolist())
    metrics = task.score(records, rows, p_NC.tolist(), decision).metrics
    shifted = (np.log(p_NC) + [decision.tuned[f"shift:{name}"] for name in "abc"]).argmax(1)
    assert metrics["macro_f1_tuned"] == pytest.approx(f1_score(labels, shifted, average="macro"))
    assert metrics["macro_f1_tuned"] > metrics["macro_f1"] + 0.05
    assert "accuracy_tuned" in scored(built(records), records, p_NC.tolist()).metrics, "of the score"
    assert "mcc_tuned" in scored(built(records, decision={"shift": {"metric": "mcc"}}), records, p_NC.tolist()).metrics


def saved(labels: list[str], predicted: list[str]) -> float:
    """What a user's function counts: 10 for each one found, -1 for each false alarm."""
    pairs = list(zip(labels, predicted, strict=True))
    return float(10 * pairs.count(("yes", "yes")) - pairs.count(("no", "yes")))


def test_a_function_of_the_user_is_tuned_too() -> None:
    records, decoded = drawn()
    address = f"{__file__}:saved"
    task = built(records, **POSITIVE, score=address)
    assert task.config.objective() == "saved"
    metrics = scored(task, records, decoded).metrics
    assert metrics["saved_tuned"] > metrics["saved"] == 0
    by_decision = built(records, **POSITIVE, decision={"own": {"function": address}})
    assert by_decision.config.objective() == "saved_tuned"
    assert scored(by_decision, records, decoded).metrics["saved_tuned"] == metrics["saved_tuned"]


@pytest.mark.parametrize(
    ("score", "is_used"), [("f1", True), ("pr_auc", True), ("precision", False), ("accuracy", False)]
)
def test_a_threshold_for_f1_is_not_used_where_another_score_decides(score: str, is_used: bool) -> None:
    records, decoded = drawn()
    metrics = scored(built(records, **POSITIVE, score=score), records, decoded).metrics
    assert metrics["threshold"] < 0.4
    assert metrics["threshold_used"] == (metrics["threshold"] if is_used else 0.5)


def test_the_share_that_probabilities_stand_for_is_stored() -> None:
    records, decoded = drawn(5000)
    task = built(records, **POSITIVE, calibration="isotonic")
    _, decision = fitted(task, records, decoded)
    assert decision.share == pytest.approx(0.1, abs=0.02)


def test_calibrated_probabilities_are_scored_and_predicted() -> None:
    records, decoded = drawn(2000)
    for kind in ("temperature", "isotonic"):
        task = built(records, **POSITIVE, calibration=kind)
        scores = scored(task, records, decoded)
        assert scores.metrics["log_loss_calibrated"] < scores.metrics["log_loss"]
        assert set(scores.calibrated_probabilities) == {record.id for record in records}
    assert scores.metrics["calibration_error_calibrated"] < 0.2 * scores.metrics["calibration_error"]
    assert not scored(built(records, **POSITIVE), records, decoded).calibrated_probabilities


def test_isotonic_steps_do_not_judge_a_decision_by_what_they_were_fitted_to() -> None:
    """Finds a useless model whose threshold looks good on folds, as the steps hold the labels of all of them."""
    for seed in range(5):
        records, _ = drawn(300, seed=seed)
        p = np.random.default_rng(100 + seed).random(300)
        judged = []
        for kind in ("none", "isotonic"):
            task = built(records, **POSITIVE, calibration=kind)
            _, decision = fitted(task, records, np.stack([1 - p, p], 1).tolist())
            judged.append((decision.on_dev, decision.is_used))
        assert judged[0] == judged[1]


def test_untuned_labels_are_those_that_are_scored_whatever_calibrates_their_probabilities() -> None:
    """Finds a label by .5 of isotonic probabilities, where `accuracy` counts that of the plain ones."""
    records, decoded = drawn(2000)
    p = np.array(decoded)[:, 1] + 0.45  # far too high
    task = built(records, **POSITIVE, calibration="isotonic", score="accuracy")
    biased = np.stack([1 - p, p], 1).tolist()
    rows, decision = fitted(task, records, biased)
    assert not decision.is_used
    labels = [row[1] for row in task.predict(records, rows, biased, decision).rows]
    right = np.mean([label == record.labels[0] for label, record in zip(labels, records, strict=True)])
    assert right == pytest.approx(task.score(records, rows, biased, decision).metrics["accuracy"])
    corrected = task.predict(records, rows, biased, replace(decision, prior=(0.1, 0.1)))
    assert [row[1] for row in corrected.rows] != labels, "a correction changes labels too"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"decision": "f1"}, "decision must be shift for one label of several classes, got f1"),
        ({"positive": "a", "decision": "shift"}, "decision must be another than shift, got shift"),
        ({"positive": "a", "decision": {"recall": {}}}, "at_least"),
        ({"positive": "a", "decision": {"rate": {"at_most": 1.5}}}, "less than 1"),
        ({"positive": "a", "decision": {"own": {"function": "costs"}}}, "function"),
        (
            {"positive": "a", "score": "x.py:f", "decision": {"own": {"function": "y.py:g"}}},
            "score and decision must have the same function",
        ),
    ],
)
def test_decisions_that_do_not_fit_are_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        TextClassificationConfig.model_validate(settings)
