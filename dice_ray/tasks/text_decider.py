"""How the probabilities of texts become labels: by the thresholds or shifts of a decision, or untuned."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dice_ray.metrics.calibration import fit_calibration, implied_prior
from dice_ray.metrics.classification import Counts, class_scores, confusion, label_counts, micro_and_macro
from dice_ray.metrics.decisions import UNTUNED_THRESHOLD, FittedDecision, Numbers, thresholds
from dice_ray.metrics.fitting import fit_classes, fit_own_threshold, fit_threshold
from dice_ray.metrics.rules import Outcomes, OwnRule, Rule, ShiftRule
from dice_ray.metrics.shifts import shifted


@dataclass(frozen=True)
class TextDecider:
    """What the decision of a task over texts is fitted for, and to what.

    Attributes:
        classes: The class names.
        is_exclusive: Whether a text has one label, and not any number.
        has_positive: Whether the second of two classes is the positive one.
        rule: What it is fitted for.
        metric: The name of its value.
        own_value: The user's function of the labels and the predicted labels of all texts, for an `OwnRule`.
    """

    classes: tuple[str, ...]
    is_exclusive: bool
    has_positive: bool
    rule: Rule | OwnRule | ShiftRule
    metric: str
    own_value: Callable[[list[Any], list[Any]], float]

    def counted(self, of_classes_NC: NDArray[Any]) -> NDArray[Any]:
        """The columns that are scored: of two classes the positive one."""
        return of_classes_NC[:, 1:] if self.has_positive else of_classes_NC

    def names(self, members_NC: NDArray[np.bool_]) -> list[Any]:
        """The labels of each text, as users' functions take them."""
        if self.is_exclusive:
            return [self.classes[index] for index in members_NC.argmax(1).tolist()]
        return [[self.classes[index] for index in np.flatnonzero(has_C)] for has_C in members_NC]

    def fit(
        self,
        gold_NC: NDArray[np.bool_],
        probabilities_NC: NDArray[np.floating],
        calibration: Literal["none", "temperature", "isotonic"],
        groups: Sequence[str] | None,
    ) -> FittedDecision:
        """The calibration and the decision of these probabilities on dev."""
        plain = self._fit(gold_NC, probabilities_NC, groups)
        if calibration == "none":
            return plain
        fitted = fit_calibration(calibration, probabilities_NC, gold_NC, exclusive=self.is_exclusive)
        after = self._fit(gold_NC, fitted.apply(probabilities_NC, exclusive=self.is_exclusive), groups)
        # Isotonic steps hold the labels of all of dev: the folds would not be judged by what others were fitted to.
        judged = plain if calibration == "isotonic" else after
        return replace(judged, tuned=after.tuned, share=after.share, calibration=fitted.stored())

    def _fit(
        self, gold_NC: NDArray[np.bool_], probabilities_NC: NDArray[np.floating], groups: Sequence[str] | None
    ) -> FittedDecision:
        p_NC, has_NC = self.counted(probabilities_NC), self.counted(gold_NC)
        match self.rule:
            case ShiftRule():
                decision = fit_classes(probabilities_NC, gold_NC.argmax(1), self.classes, self.metric, groups)
            case OwnRule():
                decision = fit_own_threshold(p_NC, has_NC, self.metric, self._own, groups)
            case _:
                decision = fit_threshold(p_NC, has_NC, self.rule, self._labels, groups)
        share = implied_prior(probabilities_NC[:, 1], float(gold_NC[:, 1].mean())) if self.has_positive else None
        return replace(decision, share=share)

    def untuned(self) -> FittedDecision:
        """The decision that changes nothing."""
        is_shift = isinstance(self.rule, ShiftRule)
        numbers = {f"shift:{name}": 0.0 for name in self.classes} if is_shift else {"threshold": UNTUNED_THRESHOLD}
        return FittedDecision(self.metric, numbers, numbers, is_used=False, support=0, on_dev=math.nan)

    def chosen(
        self,
        probabilities_NC: NDArray[np.floating],
        decision: FittedDecision | None = None,
        numbers: Numbers | None = None,
    ) -> NDArray[np.bool_]:
        """`chosen_NC`: the predicted classes, with these numbers of the decision, or untuned."""
        classes_C = np.arange(len(self.classes))
        if decision is None or numbers is None:
            if self.is_exclusive:
                return np.asarray(probabilities_NC.argmax(-1)[:, None] == classes_C)
            return np.asarray(probabilities_NC > UNTUNED_THRESHOLD)
        probabilities_NC = decision.probabilities(probabilities_NC, exclusive=self.is_exclusive)
        if "threshold" not in numbers:
            shifts_C = np.array([numbers[f"shift:{name}"] for name in self.classes])
            return np.asarray(shifted(probabilities_NC, shifts_C)[:, None] == classes_C)
        return self._whole(np.asarray(self.counted(probabilities_NC) > thresholds(numbers, self._labels)))

    @property
    def without_answer(self) -> str:
        """What a text that another program did not answer counts as: the negative label, no label, or wrong."""
        if self.has_positive:
            return repr(self.classes[0])
        return "wrong" if self.is_exclusive else "without labels"

    def tuned_metrics(
        self, gold_NC: NDArray[np.bool_], plain_NC: NDArray[np.bool_], tuned_NC: NDArray[np.bool_]
    ) -> dict[str, float]:
        """The scores of tuned predictions; what the rule counts also for untuned and constant ones."""
        if isinstance(self.rule, ShiftRule):
            counts_CC = confusion(gold_NC.argmax(1), tuned_NC.argmax(1), len(self.classes))
            return {f"{self.metric}_tuned": class_scores(counts_CC)[self.metric]}
        plain, tuned = (Outcomes.of(self.counted(each), self.counted(gold_NC)) for each in (plain_NC, tuned_NC))
        scores = Counts(tuned.tp, tuned.fp, tuned.fn).scores
        if not self.is_exclusive:
            scores["macro_f1"] = micro_and_macro(label_counts(gold_NC, tuned_NC))["macro_f1"]
        metrics = {f"{name}_tuned": value for name, value in scores.items()}
        if isinstance(self.rule, Rule):
            return metrics | self.rule.scores(plain, tuned, Outcomes.of_constants(self.counted(gold_NC)))
        return metrics | {f"{self.metric}_tuned": self._own(*map(self.counted, (gold_NC, tuned_NC)))}

    @property
    def _labels(self) -> tuple[str, ...]:
        """The labels that may have a threshold of their own."""
        return () if self.is_exclusive else self.classes

    def _own(self, *counted_NC: NDArray[np.bool_]) -> float:
        """The value of the user's function, from the columns that are scored: gold ones and predicted ones."""
        gold, predicted = (self.names(self._whole(each_NC)) for each_NC in counted_NC)
        return self.own_value(gold, predicted)

    def _whole(self, counted_NC: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The inverse of `counted`."""
        return np.concatenate([~counted_NC, counted_NC], 1) if self.has_positive else counted_NC
