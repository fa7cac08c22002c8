"""What a decision is fitted for on dev: the highest F1, the lowest cost, the highest precision at a recall, and so on.

A rule gives each threshold a gain, from the four counts of its predictions; the threshold with the highest gain is
fitted. Its metric is the value that is reported and compared.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from dice_ray.metrics.catalogue import metric_of
from dice_ray.metrics.classification import ratios
from dice_ray.settings import Branch, Choice
from dice_ray.user_code import Address

Shifted: TypeAlias = Literal["macro_f1", "accuracy", "balanced_accuracy", "mcc"]
"""The metrics that shifts are fitted for."""


@dataclass(frozen=True)
class Outcomes:
    """The numbers of true and false positives and negatives, one of each or `..._K` for several thresholds."""

    tp: Any
    fp: Any
    fn: Any
    tn: Any

    def __add__(self, other: Outcomes) -> Outcomes:
        return Outcomes(self.tp + other.tp, self.fp + other.fp, self.fn + other.fn, self.tn + other.tn)

    @classmethod
    def of(cls, predicted: NDArray[np.bool_], gold: NDArray[np.bool_]) -> Outcomes:
        tp, flagged, positive = (int(each.sum()) for each in (predicted & gold, predicted, gold))
        return cls(tp, flagged - tp, positive - tp, gold.size - flagged - positive + tp)

    @classmethod
    def of_constants(cls, gold_NC: NDArray[np.bool_]) -> Outcomes:
        """`outcomes_K`: of the same labels for every item: all of them, the most frequent ones, none.

        >>> Outcomes.of_constants(np.array([[1, 1], [1, 0], [1, 0]]) > 0).tp.tolist()
        [4, 3, 0]
        """
        num_positive, num_left_out_K = int(gold_NC.sum()), np.append(0, np.sort(gold_NC.sum(0)).cumsum())
        tp_K, flagged_K = num_positive - num_left_out_K, len(gold_NC) * np.arange(gold_NC.shape[1], -1, -1)
        return cls(tp_K, flagged_K - tp_K, num_left_out_K, gold_NC.size - flagged_K - num_left_out_K)

    @property
    def precision(self) -> Any:
        return ratios(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> Any:
        return ratios(self.tp, self.tp + self.fn)

    @property
    def flagged(self) -> Any:
        """The share of all items that is predicted positive."""
        return ratios(self.tp + self.fp, self.tp + self.fp + self.fn + self.tn)


class Rule(Branch, ABC):
    """What a decision is fitted for."""

    is_target: ClassVar[bool] = False
    """Whether it promises a limit, which may be missed on other data."""

    @property
    @abstractmethod
    def metric(self) -> str:
        """The metric that is its value."""

    @abstractmethod
    def value(self, outcomes: Outcomes) -> Any:
        """The value of that metric."""

    def gain(self, outcomes: Outcomes) -> Any:
        """What is maximised."""
        return self.value(outcomes)

    def misses(self, outcomes: Outcomes) -> bool:
        """Whether predictions miss the limit that it promises."""
        return False

    def least_positives(self) -> float:
        """How many positives dev must have to show the limit with certainty; 0 for a rule without one.

        >>> RecallRule(at_least=0.95, certainty=0.95).least_positives()
        59
        """
        return 0

    def scores(self, plain: Outcomes, tuned: Outcomes, constants_K: Outcomes) -> dict[str, float]:
        """Its metric for untuned, tuned and constant predictions; of a limit also whether the tuned ones miss it."""
        values = {self.metric: float(self.value(plain)), f"{self.metric}_tuned": float(self.value(tuned))}
        values[f"constant_{self.metric}"] = float(self.value(constants_K)[self.gain(constants_K).argmax()])
        if not self.is_target:
            return values
        return values | {"flagged_tuned": float(tuned.flagged), "target_missed": float(self.misses(tuned))}


class F1Rule(Rule):
    """The highest F1."""

    name = "f1"

    @property
    def metric(self) -> str:
        return f"f{self._beta:g}"

    @property
    def _beta(self) -> float:
        return 1.0

    def value(self, outcomes: Outcomes) -> Any:
        weighted = (1 + self._beta**2) * outcomes.tp
        return ratios(weighted, weighted + outcomes.fp + self._beta**2 * outcomes.fn)


class FBetaRule(F1Rule):
    """The highest F-beta.

    Attributes:
        beta: How many times as much recall counts as precision.
    """

    name = "f_beta"
    beta: float = Field(gt=0)

    @property
    def _beta(self) -> float:
        return self.beta


class CostRule(Rule):
    """The lowest expected cost per 1,000 records; with calibrated probabilities its threshold is about a / (a + b).

    Attributes:
        false_positive: The cost a of a record that is predicted positive and is not.
        false_negative: The cost b of a positive record that is missed.
    """

    name = "cost"
    metric: ClassVar[str] = "cost"
    false_positive: float = Field(1.0, gt=0)
    false_negative: float = Field(1.0, gt=0)

    def value(self, outcomes: Outcomes) -> Any:
        cost = self.false_positive * outcomes.fp + self.false_negative * outcomes.fn
        return 1000 * ratios(cost, outcomes.tp + outcomes.fp + outcomes.fn + outcomes.tn)

    def gain(self, outcomes: Outcomes) -> Any:
        return -self.value(outcomes)


class _FloorRule(Rule):
    """A rule that promises a share of at least so much, perhaps with a certainty."""

    is_target = True
    at_least: float = Field(gt=0, le=1)
    certainty: float | None = Field(None, gt=0.5, lt=1)

    @model_validator(mode="after")
    def _can_be_shown(self) -> Self:
        if self.certainty is not None and self.at_least == 1:
            raise ValueError("at_least must be below 1 with a certainty, which no number of positives gives for 1")
        return self

    def least_positives(self) -> float:
        # So many hits without a miss show that their share is at least this one.
        return 0 if self.certainty is None else math.ceil(math.log(1 - self.certainty) / math.log(self.at_least))


class RecallRule(_FloorRule):
    """The highest precision with a recall of at least this.

    Attributes:
        at_least: The lowest recall on dev. In use it is lower about every other time: a floor of .95 in 59 % of dev
            sets with 200 positives, and in 74 % of those with 20.
        certainty: The share of dev sets with which the recall in use is not lower, by its exact binomial limit. To be
            95 % certain of .8, .9, .95 or .99 takes 14, 29, 59 or 299 positives in dev (80 %: 8, 16, 32, 161); with
            fewer, but 5 or more, all is predicted positive. It costs precision: of a good model, with 200 positives in
            dev, 56 become 41.
    """

    name = "recall"
    metric: ClassVar[str] = "precision"

    def value(self, outcomes: Outcomes) -> Any:
        return outcomes.precision

    def gain(self, outcomes: Outcomes) -> Any:
        reached = outcomes.recall >= self.at_least
        if self.certainty is not None:  # where all records are positive none is missed, also in use
            is_certain = _is_certain(outcomes.tp, outcomes.fn, self.at_least, self.certainty)
            reached = is_certain | (outcomes.fn + outcomes.tn == 0)
        return np.where(reached, outcomes.precision, -1.0)

    def misses(self, outcomes: Outcomes) -> bool:
        return bool(outcomes.recall < self.at_least)


class PrecisionRule(_FloorRule):
    """The highest recall with a precision of at least this; where none reaches it, the highest precision.

    Attributes:
        at_least: The lowest precision on dev. In use it is lower about every other time: a floor of .8 in 35 to 62 % of
            dev sets with 20 positives, and in 43 to 57 % of those with 200.
        certainty: The share of dev sets with which the precision in use is not lower, while the share of positives
            stays. Where dev cannot show it, almost nothing is predicted positive. A floor of .8 and a certainty of 95 %
            have held in 96 % of dev sets or more; recall fell from 82 to 29 with 20 positives, from 84 to 80 with 200.
    """

    name = "precision"
    metric: ClassVar[str] = "recall"

    def value(self, outcomes: Outcomes) -> Any:
        return outcomes.recall

    def gain(self, outcomes: Outcomes) -> Any:
        if self.certainty is None:
            return np.where(outcomes.precision >= self.at_least, outcomes.recall, outcomes.precision - 2)
        is_certain = _is_certain(outcomes.tp, outcomes.fp, self.at_least, self.certainty)
        return np.where(is_certain | (outcomes.tp + outcomes.fp == 0), outcomes.recall, -1.0)

    def misses(self, outcomes: Outcomes) -> bool:
        return bool(outcomes.precision < self.at_least)


class RateRule(Rule):
    """The highest recall with at most this share of all records predicted positive: a budget of alerts.

    Attributes:
        at_most: The largest share.
    """

    name = "rate"
    metric: ClassVar[str] = "recall"
    is_target = True
    at_most: float = Field(gt=0, lt=1)

    def value(self, outcomes: Outcomes) -> Any:
        return outcomes.recall

    def gain(self, outcomes: Outcomes) -> Any:
        return np.where(outcomes.flagged <= self.at_most, outcomes.recall, -outcomes.flagged)

    def misses(self, outcomes: Outcomes) -> bool:
        return bool(outcomes.flagged > self.at_most)


class OwnRule(Branch):
    """The highest value of a function of the user.

    Attributes:
        function: The address of a function of the list of labels and the list of predicted labels of all records.
    """

    name = "own"
    function: Address = Field(pattern=":")

    @property
    def metric(self) -> str:
        return metric_of(self.function)


class ShiftRule(Branch):
    """For three and more classes: what is added to each class's logit, for the highest value of a metric.

    Attributes:
        metric: By default `score`, where that is one of these, else macro F1.
    """

    name = "shift"
    metric: Shifted | None = None


DecisionConfig: TypeAlias = Annotated[
    F1Rule | FBetaRule | CostRule | RecallRule | PrecisionRule | RateRule | OwnRule | ShiftRule, Choice()
]


def _is_certain(hits: Any, misses: Any, share: float, certainty: float) -> Any:
    """Whether the exact lower limit of the share of hits (Clopper and Pearson 1934) is at least this share.

    That is: if the true share were this one, so many hits or more would be found in at most 1 - `certainty` of cases.
    """
    from scipy import special

    return (np.asarray(hits) > 0) & (special.betainc(np.maximum(hits, 1), misses + 1, share) <= 1 - certainty)
