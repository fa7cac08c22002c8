"""What predictions are made with, as it is said and applied."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dice_ray.errors import InputError
from dice_ray.metrics.decisions import FittedDecision
from dice_ray.run.decision import in_use, notes, with_prior
from dice_ray.tasks.predictions import Json, TablePredictions
from dice_ray.tasks.text_classification import TextClassificationConfig

DECISION = FittedDecision("f1", {"threshold": 0.2}, {"threshold": 0.5}, is_used=True, support=30, on_dev=0.7, share=0.1)


def predicted(probabilities: list[float]) -> TablePredictions:
    return TablePredictions(("id", "label", "p"), [(str(n), "a", p) for n, p in enumerate(probabilities)])


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_a_prior_is_taken_as_given_or_estimated(share: float) -> None:
    """Calibrated probabilities of a model that was fitted where a tenth is positive."""
    state = np.random.default_rng(0)
    scores = state.normal(3.0 * (state.random(20_000) < share), 1)
    odds = np.exp(3 * scores - 4.5) / 9
    found = with_prior(DECISION, "auto", predicted((odds / (1 + odds)).tolist()))
    assert found.prior is not None
    assert found.prior[1] == pytest.approx(share, abs=0.01)
    assert with_prior(DECISION, "0.25", predicted([0.5])).prior == (0.1, 0.25)
    assert notes(found)[0].startswith("probabilities: corrected from 0.1 positive to 0.")


@pytest.mark.parametrize("prior", ["half", 0, 1.0, float("nan")])
def test_a_prior_that_is_no_share_is_refused(prior: Any) -> None:
    with pytest.raises(InputError, match="a prior must be `auto` or a share of positives between 0 and 1, got"):
        with_prior(DECISION, prior, predicted([0.5]))


def test_an_estimate_that_calls_everything_positive_is_refused() -> None:
    with pytest.raises(
        InputError, match="got 1 from 2: their probabilities are not calibrated; give the share by --prior"
    ):
        with_prior(DECISION, "auto", predicted([0.9, 0.8]))


@pytest.mark.parametrize("rule", [{"recall": {"at_least": 0.9}}, {"rate": {"at_most": 0.1}}])
def test_a_prior_is_refused_where_it_would_miss_the_limit(rule: dict[str, Any]) -> None:
    """A recall of .9 was .5 where the share of positives fell to a tenth: recall does not depend on that share."""
    task = TextClassificationConfig.model_validate({"positive": "a", "decision": rule})
    with pytest.raises(InputError, match="corrected probabilities would miss its limit; leave --prior out, or give"):
        with_prior(DECISION, 0.03, predicted([0.5]), task)
    assert with_prior(DECISION, 0.03, predicted([0.5])).prior, "a number that was given"
    assert with_prior(replace(DECISION, is_used=False), 0.03, predicted([0.5]), task).prior


def test_a_prior_needs_a_positive_class() -> None:
    for decision, predictions in ((None, predicted([0.5])), (replace(DECISION, share=None), Json([]))):
        with pytest.raises(InputError, match="a prior must be for a task with a positive label"):
            with_prior(decision, 0.1, predictions)
    with pytest.raises(InputError, match="dev split has both classes"):
        with_prior(replace(DECISION, share=0.0), 0.1, predicted([0.5]))


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (
            {"recall": {"at_least": 0.95, "certainty": 0.95}},
            "needs 59 to show the limit with certainty: every",
        ),
        ({"precision": {"at_least": 0.9, "certainty": 0.99}}, "needs 44 to show the limit with certainty: almost no"),
        ({"recall": {"at_least": 0.9, "certainty": 0.95}}, None),
        ({"recall": {"at_least": 0.95}}, None),
    ],
)
def test_too_few_positives_for_a_certainty_are_told(rule: dict[str, Any], told: str | None) -> None:
    task = TextClassificationConfig.model_validate({"positive": "a", "decision": rule})
    threshold = str(in_use(DECISION, task)[1])
    assert told in threshold if told else threshold.endswith("on 30 positives of dev")


@pytest.mark.parametrize(
    ("beats_untuned", "reason"), [(False, "is not better"), (True, "is not enough above the constant predictor")]
)
def test_the_condition_that_a_tuned_threshold_failed_is_said(beats_untuned: bool, reason: str) -> None:
    """Finds "not better" of a threshold that is better than .5, and too near the constant predictor."""
    unused = replace(DECISION, is_used=False, beats_untuned=beats_untuned)
    assert str(in_use(unused, TextClassificationConfig(positive="a"))[1]).endswith(f"the tuned one, 0.2, {reason}")


def test_what_is_applied_is_said() -> None:
    task = TextClassificationConfig(positive="a")
    assert str(in_use(DECISION, task)[1]) == "threshold 0.2: tuned for f1 on 30 positives of dev"
    own = replace(DECISION, tuned={"threshold": 0.2, "threshold:a": 0.1})
    assert str(in_use(own, task)[1]).endswith("positives of dev, and 1 label has a threshold of its own")
    calibrated = replace(DECISION, calibration={"temperature": 1.5, "steps": []})
    assert notes(calibrated) == ("probabilities: calibrated on dev by temperature 1.5",)
    shifted = replace(DECISION, metric="macro_f1", tuned={"shift:a": 0.5}, untuned={"shift:a": 0.0})
    assert notes(shifted) == ("decision: a shift of each class's logit, fitted on dev for macro_f1",)
    of_background = replace(shifted, tuned={"background": -1.25})
    assert notes(of_background)[0].startswith("decision: -1.25 is added to the logit of the background, fitted on dev")
    of_queries = replace(shifted, tuned={"start": 0.35, "end": 0.2})
    assert "starts are more probable than 0.35 and ends than 0.2, fitted on dev for" in notes(of_queries)[0]
    assert notes(replace(shifted, is_used=False)) == (
        "decision: untuned, as dev does not show that a fitted one is better",
    )
