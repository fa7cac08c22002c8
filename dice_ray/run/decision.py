"""Which decision predictions are made with, and why: that of dev where it has enough evidence, or the user's choice."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np

from dice_ray.errors import InputError, counted
from dice_ray.metrics.calibration import estimated_prior
from dice_ray.metrics.decisions import NUM_FOLDS, UNTUNED_THRESHOLD, FittedDecision
from dice_ray.metrics.rules import RateRule, RecallRule, Rule
from dice_ray.tasks.base import TaskBranch
from dice_ray.tasks.predictions import Predictions, TablePredictions, Threshold
from dice_ray.tasks.text_classification import TextClassificationConfig

Prior: TypeAlias = float | str | None
"""The share of positives where predictions are used; `auto` to estimate it, None to leave probabilities as they are."""
_LEAST_PRIOR: Final = 1e-6


def in_use(
    decision: FittedDecision | None, task: TaskBranch, choice: float | str = "auto"
) -> tuple[FittedDecision | None, Threshold | None]:
    """The decision of predictions, whose `used` numbers they are made with, and its threshold where it has one.

    Args:
        decision: That of the run.
        task: Of the run.
        choice: A threshold, `tuned` for what dev chose, or `auto`: that only where `FittedDecision.is_used`, else 0.5,
            or 0 for the no-answer threshold of questions.

    Raises:
        InputError: The task has no threshold, or the choice is none of these.
    """
    if decision is None or "threshold" not in decision.tuned:
        if choice == "tuned" and decision is not None:
            return replace(decision, is_used=True), None
        if choice != "auto":
            raise InputError(f"a threshold must be for a task that has one, and {task.name} has none")
        return decision, None
    tuned, untuned = decision.tuned["threshold"], decision.untuned["threshold"]
    on = f"{decision.support} positives of dev"
    if choice == "tuned":
        reason = f"tuned on {on}, as chosen{_uncertain(decision, task)}"
        return replace(decision, is_used=True), Threshold(tuned, decision.support, reason)
    if choice != "auto":
        low, high = (0.0, 1.0) if untuned == UNTUNED_THRESHOLD else (-math.inf, math.inf)
        if not low <= (value := _as_float(choice)) <= high:
            must = f"a threshold must be `auto`, `tuned` or a number from {low:g} to {high:g}"
            raise InputError(f"{must}, got {choice!r}")
        reason = f"as chosen; tuned on {on} it is {tuned:.6g}"
        chosen = replace(decision, tuned={"threshold": value}, is_used=True)
        return chosen, Threshold(value, decision.support, reason)
    if decision.is_used and task.uses_decision():
        own = len(decision.tuned) - 1
        has = "has a threshold of its own" if own == 1 else "have thresholds of their own"
        more = f", and {counted(own, 'label')} {has}" if own else ""
        return decision, Threshold(
            tuned, decision.support, f"tuned for {decision.metric} on {on}{more}{_uncertain(decision, task)}"
        )
    if not task.uses_decision():
        why = f"the tuned one, {tuned:.6g}, is tuned for {decision.metric}, and the run's score is {task.objective()}"
    elif decision.support < NUM_FOLDS:
        why = f"dev has {decision.support} positives, and needs {NUM_FOLDS} to tune one"
    else:
        fails = "is not enough above the constant predictor" if decision.beats_untuned else "is not better"
        why = f"on dev ({decision.support} positives, cross-fitted) the tuned one, {tuned:.6g}, {fails}"
    return replace(decision, is_used=False), Threshold(untuned, decision.support, why)


def _uncertain(decision: FittedDecision, task: TaskBranch) -> str:
    """That dev has too few positives to show the limit that is promised with certainty; empty where it has enough."""
    rule = task.rule() if isinstance(task, TextClassificationConfig) else None
    if not isinstance(rule, Rule) or decision.support >= rule.least_positives():
        return ""
    predicted = "every record is" if isinstance(rule, RecallRule) else "almost no record is"
    return f", which needs {rule.least_positives():g} to show the limit with certainty: {predicted} predicted positive"


def with_prior(
    decision: FittedDecision | None, prior: float | str, predicted: Predictions, task: TaskBranch | None = None
) -> FittedDecision:
    """The decision with probabilities corrected to the share of positives where they are used.

    Args:
        decision: Of the predictions.
        prior: That share, or `auto` to estimate it from the predictions.
        predicted: The predictions without correction.
        task: For what the threshold was fitted, unless it is a number that was given.

    Raises:
        InputError: The task has no positive class, or the share is none; or the threshold keeps a recall or a rate.
    """
    if decision is None or decision.share is None or not isinstance(predicted, TablePredictions):
        raise InputError("a prior must be for a task with a positive label (task.text_classification.positive)")
    if decision.share in (0, 1):
        raise InputError("a prior must be for a run whose dev split has both classes, and all its records have one")
    rule = task.rule() if isinstance(task, TextClassificationConfig) else None
    if decision.is_used and isinstance(rule, RecallRule | RateRule):
        raise InputError(
            f"a prior must be for a decision whose threshold it keeps right, got task.text_classification.decision="
            f"{rule.name}: corrected probabilities would miss its limit; leave --prior out, or give --threshold NUMBER"
        )
    before = decision.share
    if prior == "auto":
        after = estimated_prior(np.array([row[-1] for row in predicted.rows], dtype=float), before)
        if not _LEAST_PRIOR < after < 1 - _LEAST_PRIOR:
            raise InputError(
                f"a share of positives estimated from the records must lie between 0 and 1, got {after:.3g} from "
                f"{len(predicted.rows)}: their probabilities are not calibrated; give the share by --prior"
            )
    else:
        after = _as_float(prior)
        if not _LEAST_PRIOR < after < 1 - _LEAST_PRIOR:
            raise InputError(f"a prior must be `auto` or a share of positives between 0 and 1, got {prior!r}")
    return replace(decision, prior=(before, after))


def notes(decision: FittedDecision | None) -> tuple[str, ...]:
    """What predictions apply besides a threshold: one sentence each."""
    if decision is None:
        return ()
    parts = []
    if decision.calibration:
        kind = "isotonic regression" if decision.calibration["steps"] else "temperature"
        value = "" if decision.calibration["steps"] else f" {decision.calibration['temperature']:.3g}"
        parts.append(f"probabilities: calibrated on dev by {kind}{value}")
        if decision.calibration["steps"] and not (decision.is_used or decision.prior):
            parts.append("labels: by the probabilities before calibration, as untuned scores")
    if decision.prior:
        before, after = decision.prior
        parts.append(f"probabilities: corrected from {before:.3g} positive to {after:.3g}")
    if "threshold" not in decision.tuned:
        match decision.tuned:
            case {"background": bias}:
                what = f"{bias:+.3g} is added to the logit of the background"
            case {"start": start, "end": end}:
                what = f"starts are more probable than {start:.3g} and ends than {end:.3g}"
            case _:
                what = "a shift of each class's logit"
        fitted = f"{what}, fitted on dev for {decision.metric}"
        untuned = "untuned, as dev does not show that a fitted one is better"
        parts.append(f"decision: {fitted if decision.is_used else untuned}")
    return tuple(parts)


def _as_float(given: Any) -> float:
    """The number that was given; NaN where it is none, which lies between no limits."""
    try:
        return float(given)
    except (TypeError, ValueError):
        return math.nan
