"""What is known of metrics: which may decide, the user's own, and labels in their names."""

from __future__ import annotations

import math
import re
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mlflow.utils.validation import _validate_metric
from pydantic import ValidationError
from sklearn import metrics as reference

from dice_ray.config.checks import check_data
from dice_ray.config.schema import RunConfig
from dice_ray.errors import InputError
from dice_ray.metrics.catalogue import _LONGEST_LABEL, Metric, best_evaluation, metric, metric_name_part, scores_of
from dice_ray.tasks.text_classification import SentencePairConfig, TextClassificationConfig
from tests.tasks.test_text_classification import ONE, SEVERAL, built, scored


@pytest.mark.parametrize(
    "settings",
    [
        *({"positive": "b", "score": score} for score in (*scores_of("positive"), "f0.5", "f3")),
        *({"score": score} for score in scores_of("classes")),
        *({"labels": "several", "score": score} for score in (*scores_of("labels"), "f2") if score != "macro_f1"),
    ],
    ids=lambda settings: "-".join(settings.values()),
)
def test_the_constant_predictor_has_every_score_that_may_decide(settings: dict[str, str]) -> None:
    """It is the best of the same labels for all texts; only of several labels' macro F1 it is that of all labels."""
    labels = settings.get("labels")
    records = SEVERAL if labels else (*ONE[:2], *ONE[3:]) if "positive" in settings else ONE
    task, score = built(records, **settings), settings["score"]
    num_classes = len(task.classes)
    choices = np.ndindex(*[2] * num_classes) if labels else np.eye(num_classes)
    constants = [scored(task, records, [list(map(float, each))] * len(records)) for each in choices]
    assert constants[0][f"constant_{score}"] == pytest.approx(max(each[score] for each in constants))


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        (
            {"score": "roc"},
            "score must be one of accuracy, macro_f1, balanced_accuracy, mcc, roc_auc, decision, or file.py:func",
        ),
        ({"score": "f2"}, "score f2 is that of one label: name it as `positive`"),
        # Finds scores that no decision's metric equals, so that predictions never use it.
        ({"positive": "a", "score": "f2.0"}, "the score of an F-beta must be spelled f2, got 'f2.0'"),
        ({"labels": "several", "score": "f1.0"}, "the score of an F-beta must be spelled f1, got 'f1.0'"),
        ({"positive": "a", "score": "fx"}, r"pr_auc, decision, f2 \(any F-beta\), or file.py:function, got 'fx'"),
        (
            {"labels": "several", "score": "mcc"},
            r"f1, precision, recall, macro_f1, roc_auc, decision, f2 \(any F-beta\)",
        ),
    ],
)
def test_a_score_that_the_labels_do_not_have_is_refused(settings: dict[str, str], match: str) -> None:
    with pytest.raises(ValidationError, match=match):
        TextClassificationConfig.model_validate(settings)


def share_of_first(targets: list[str], predictions: list[str]) -> float:
    return sum(target == "a" for target in targets) / len(predictions)


def first_labels(targets: list[list[str]], predictions: list[list[str]]) -> float:
    assert all(isinstance(labels, list) for labels in (*targets, *predictions))
    return len(predictions[0]) + 10 * len(targets[0])


def not_a_number(targets: list[str], predictions: list[str]) -> float:
    return float("nan")


def accuracy(targets: list[str], predictions: list[str]) -> float:
    return 1.0


def test_the_users_function_gets_the_labels_and_decides() -> None:
    address = f"{__name__}:share_of_first"
    config = SentencePairConfig(score=address)
    assert (config.objective(), config.own_metric()) == ("share_of_first", config.score)
    metrics = scored(built(ONE, score=address), ONE, [[0.1, 0.2, 0.7]] * len(ONE))
    assert metrics["share_of_first"] == 3 / 5
    several = built(SEVERAL, labels="several", score=f"{__name__}:first_labels")
    metrics = scored(several, SEVERAL, [[0.9, 0.9, 0.1]] * len(SEVERAL))
    assert metrics["first_labels"] == 2 + 10 * 1


@pytest.mark.parametrize(
    ("name", "match"),
    [("not_a_number", "must return a finite number, got nan"), ("accuracy", "there is a metric accuracy: rename it")],
)
def test_a_function_that_is_no_metric_is_refused(name: str, match: str) -> None:
    with pytest.raises(InputError, match=match):
        scored(built(ONE, score=f"{__name__}:{name}"), ONE, [[0.1, 0.2, 0.7]] * len(ONE))


def test_the_users_function_is_loaded_before_training() -> None:
    """A wrong address was found when dev was scored for the first time."""
    task = {"text_classification": {"score": "no_such.py:cost"}}
    (problem,) = check_data(RunConfig.model_validate({"task": task, "data": {}}), [], num_rows=1000)
    assert problem.path == "task.text_classification.score"
    assert "no_such.py" in problem.must


def test_a_positive_label_has_every_f_beta() -> None:
    records = (*ONE[:2], *ONE[3:], ONE[1])  # a b a a b
    decoded = [[0.2, 0.8], [0.9, 0.1], [0.2, 0.8], [0.8, 0.2], [0.4, 0.6]]
    metrics = scored(built(records, positive="b", score="f3"), records, decoded)
    assert metrics["f3"] == pytest.approx(reference.fbeta_score([0, 1, 0, 0, 1], [1, 0, 1, 0, 1], beta=3))


def label_of(part: str) -> str:
    """The label of a part that was not cut: where it can be read back, no two labels have the same part."""
    return re.sub(r":([^:]+):", lambda match: _character(match[1]), part)


def _character(name: str) -> str:
    return chr(int(name[1:], 16)) if re.fullmatch(r"x[0-9a-f]+", name) else unicodedata.lookup(name)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30))
@example("Shipping & returns")
@example("a/../b")
@example(":colon: x26")
@example("tuned")
@example("\n\u0301\U0001f600")
def test_a_label_is_read_back_from_a_name_that_mlflow_allows(label: str) -> None:
    """`f1_Shipping x26 returns` could not be read, nor told apart from the label `Shipping x26 returns`."""
    part = metric_name_part(label)
    _validate_metric(f"dev/best_f1_{part}", 0.5, 0, 0, "")
    assert len(part) > _LONGEST_LABEL - 20 or label_of(part) == label
    assert part != "tuned", "f1_tuned is the F1 at the tuned threshold"


@pytest.mark.parametrize("letter", ["a", "&"])
def test_long_labels_are_cut_and_stay_different(letter: str) -> None:
    labels = [1000 * letter + end for end in ("x", "y")]
    parts = [metric_name_part(label) for label in labels]
    assert len(set(parts)) == 2
    assert max(map(len, parts)) <= _LONGEST_LABEL


def test_limits_and_direction_of_the_metrics_of_every_task() -> None:
    """A built-in metric without limits would have a plain interval, [-76.76, 210.09] %."""
    names = {*scores_of("positive"), *scores_of("classes"), *scores_of("labels"), "f2", "f0.5", "exact"}
    for name in names:
        assert metric(name) == metric(f"test/{name}")
        assert metric(name).limits == (-1 if name == "mcc" else 0, 1)
        assert metric(name).is_score
        assert not metric(name).is_minimised
    assert {name for name in names if not metric(name).needs_threshold} == {"roc_auc", "pr_auc"}
    assert all(metric(name).is_minimised for name in ("brier", "calibration_error", "seconds"))
    assert not any(metric(name).is_score for name in ("constant_f1", "threshold_used", "words_dropped", "answers_cut"))
    assert {metric(name) for name in ("saved", "f", "fx", "f1_a", "test/mcc_of_two")} == {Metric()}


def test_a_metric_at_what_dev_decided_is_known_as_the_metric_itself() -> None:
    """Unknown, `f1_tuned` had no limits and no percent sign, and `cost_tuned` was maximised."""
    for suffix in ("_tuned", "_calibrated", "_calibrated_tuned"):
        for name in ("f1", "f0.5", "mcc", "cost", "log_loss", "brier"):
            assert metric(f"dev/{name}{suffix}") == metric(name) != Metric()
    for name in ("cost", "log_loss"):
        assert (metric(name).is_minimised, metric(name).limits) == (True, (0, math.inf))
    assert (metric("cost").needs_threshold, metric("log_loss").needs_threshold) == (True, False)
    assert not any(metric(f"test/{name}").is_score for name in ("target_missed", "flagged"))


NAN = math.nan


@pytest.mark.parametrize(
    ("gains", "areas", "best"),
    [
        ([0.2, 0.6, 0.6], [0.9, 0.5, 0.5], 1),
        ([0.2, 0.6, 0.6], [0.9, 0.5, 0.6], 2),
        ([-9.0, -5.0, -7.0], [0.5, 0.5, 0.5], 1),
        ([NAN, 0.1, NAN], [0.9, 0.5, 0.9], 1),
        ([0.5, 0.5, 0.5], [NAN, 0.1, NAN], 1),
        ([NAN, NAN], [NAN, NAN], 0),
        ([0.2, 0.6, 0.6], [], 1),
    ],
)
def test_of_equal_evaluations_the_highest_pr_auc_is_best_and_then_the_first(
    gains: list[float], areas: list[float], best: int
) -> None:
    """A NaN is neither higher nor lower, so that where it stands decided which evaluation was the best."""
    evaluations = [{"dev/pr_auc": area} for area in areas] or [{}] * len(gains)
    assert best_evaluation(gains, evaluations) == best
    assert best_evaluation(gains, [{}] * len(gains)) == gains.index(
        max(gains, key=lambda value: (value == value, value))
    )
