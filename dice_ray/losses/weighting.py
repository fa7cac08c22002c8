"""Class weights: computed from the counts in the training split, or given by name, and losses that have them."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import torch
from pydantic import Field
from torch import Tensor

from dice_ray.errors import ConfigError, Problem, nearest
from dice_ray.losses.base import ItemLoss, LossBranch
from dice_ray.losses.items import Items
from dice_ray.settings import Branch, Choice

if TYPE_CHECKING:
    from dice_ray.terms import TermFacts


class _WeightingBranch(Branch, ABC):
    """One way to weight classes.

    Attributes:
        labels: Of a multi-label term: `pooled` weights the presence and the absence of any label alike, `per_label`
            those of each label by its own counts.
    """

    labels: Literal["pooled", "per_label"] = "pooled"

    def class_weights(self, facts: TermFacts) -> tuple[float, ...]:
        """The weight a_t of each class; a class absent from the training split counts as one item, with a warning.

        With `per_label`, the two weights of each label, one label after the other. Raises a ConfigError if the
        weighting does not fit the classes and counts.
        """
        if problems := self.problems(facts, self.name):
            raise ConfigError(problems)
        parts = self._parts(facts)
        for part in parts:
            absent = [name for name, count in zip(part.classes, part.counts, strict=True) if count == 0]
            if absent and not isinstance(self, GivenWeightsConfig):
                warnings.warn(
                    f"The training split has no {', '.join(absent)} for term {part.name!r}: weighted as if it had one "
                    "item each",
                    stacklevel=2,
                )
        return tuple(weight for part in parts for weight in self._weights(part))

    def range_of(self, facts: TermFacts) -> str:
        """The smallest and the largest weight, with their classes: `0.174 (no) to 0.484 (yes)`."""
        names = [name for part in self._parts(facts) for name in part.classes]
        weights = sorted(zip(self.class_weights(facts), names, strict=True))
        return " to ".join(f"{weight:.3g} ({name})" for weight, name in (weights[0], weights[-1]))

    def problems(self, facts: TermFacts, path: str) -> list[Problem]:
        """The values of this section, located at `path`, that do not fit the classes and counts of the term."""
        if self.labels == "per_label" and not facts.labels:
            must = f"must be pooled: term {facts.name!r} has one label for each item"
            return [Problem(f"{path}.labels", must, self.labels)]
        parts = self._parts(facts)
        if problems := self.problems_of(parts, path):
            return problems
        if not any(weight > 0 for part in parts for weight in self._weights(part)):
            return [Problem(path, f"must give a class of term {facts.name!r} a weight above 0", "only weights of 0")]
        return []

    def _parts(self, facts: TermFacts) -> tuple[TermFacts, ...]:
        return facts.by_label if self.labels == "per_label" else (facts,)

    def _weights(self, facts: TermFacts) -> tuple[float, ...]:
        return self.weights_of([max(count, 1) for count in facts.counts], facts.classes)

    @abstractmethod
    def weights_of(self, counts: Sequence[int], classes: Sequence[str]) -> tuple[float, ...]:
        """The class weights for these counts, each of which is at least 1."""

    def problems_of(self, parts: Sequence[TermFacts], path: str) -> list[Problem]:
        """The values that do not fit the classes and counts of the term, or those of its labels."""
        return []


class LgConfig(_WeightingBranch):
    """a_t = log10((n - n_t)/n_t + k), the paper's weights (below eq. 2, lg read as log10); with k = 1, log10(n/n_t).

    Attributes:
        k: Added to the ratio of the other items to those of the class; a larger k makes the weights more alike.
        strength: Below 1, k is raised until the ratio of the largest to the smallest weight is r^strength, where r is
            the ratio at the given k. So a search of it tries strong and weak weights alike, for any counts.
    """

    name = "lg"
    # The paper wants a_t between 0 and 1; with k = 1 it exceeds 1 for a class with less than a tenth of the items.
    k: float = 1.0
    strength: Annotated[float, Field(ge=0.05, le=1)] = 1.0

    def weights_of(self, counts: Sequence[int], classes: Sequence[str]) -> tuple[float, ...]:
        k = self._raised_k(_odds(counts))
        return tuple(math.log10(odds + k) for odds in _odds(counts))

    def _raised_k(self, odds: Sequence[float]) -> float:
        """The k whose weights have the ratio that `strength` asks for, by bisection: the ratio falls as k rises."""

        def ratio(k: float) -> float:
            smallest = math.log10(min(odds) + k)
            return math.log10(max(odds) + k) / smallest if smallest > 0 else math.inf

        target = ratio(self.k) ** self.strength
        low = high = self.k
        step = 1.0
        while ratio(high) > target:
            low, high, step = high, high + step, 2 * step
        while (middle := (low + high) / 2) not in (low, high):
            low, high = (middle, high) if ratio(middle) > target else (low, middle)
        return high

    def problems_of(self, parts: Sequence[TermFacts], path: str) -> list[Problem]:
        lowest, name, term = min(
            (odds, class_, facts.name)
            for facts in parts
            for odds, class_ in zip(_odds([max(count, 1) for count in facts.counts]), facts.classes, strict=True)
        )
        # That is k >= 2 - n / max n_t: never above 1, so the default is valid for any counts.
        if self.k >= 1 - lowest:
            return []
        must = f"must be at least {1 - lowest:g}, or class {name!r} of term {term!r} has a weight below 0"
        return [Problem(f"{path}.k", must, f"{self.k:g}")]


class InverseConfig(_WeightingBranch):
    """a_t = n / (C n_t): inverse class frequency, 1 for balanced classes."""

    name = "inverse"

    def weights_of(self, counts: Sequence[int], classes: Sequence[str]) -> tuple[float, ...]:
        return tuple(sum(counts) / (len(counts) * count) for count in counts)


class EffectiveNumberConfig(_WeightingBranch):
    """a_t proportional to (1 - beta)/(1 - beta^n_t) with sum C (Cui et al. 2019, eq. 2).

    Attributes:
        beta: 0 weights all classes alike; close to 1, the weights are inverse to the counts.
    """

    name = "effective_number"
    beta: Annotated[float, Field(ge=0, lt=1)] = 0.999

    def weights_of(self, counts: Sequence[int], classes: Sequence[str]) -> tuple[float, ...]:
        raw = [(1 - self.beta) / (1 - self.beta**count) for count in counts]
        return tuple(len(raw) * weight / sum(raw) for weight in raw)


class GivenWeightsConfig(_WeightingBranch):
    """a_t by class name; the weight of a class that is not named is 1.

    With `labels: per_label`, the classes are the labels, and `without NAME` for the absence of a label.

    Attributes:
        weights: The weight of each class that is named.
    """

    name = "given"
    weights: Annotated[dict[str, Annotated[float, Field(ge=0)]], Field(min_length=1, description="must be given")]

    def weights_of(self, counts: Sequence[int], classes: Sequence[str]) -> tuple[float, ...]:
        return tuple(self.weights.get(name, 1.0) for name in classes)

    def problems_of(self, parts: Sequence[TermFacts], path: str) -> list[Problem]:
        must = f"must name classes of term {parts[0].name!r}"
        known = tuple(name for facts in parts for name in facts.classes)
        return [
            Problem(f"{path}.weights", must, repr(name), suggestion=nearest(name, known), known=known)
            for name in self.weights
            if name not in known
        ]


Weighting: TypeAlias = Annotated[LgConfig | InverseConfig | EffectiveNumberConfig | GivenWeightsConfig, Choice()]


class WeightedConfig(LossBranch):
    """Fields of the means over items, which can be weighted by class: not those that are ratios or ranks of a step.

    Attributes:
        weighting: The class weights a_t; 1 where not given.
        reweight_after: The share of the steps before which all weights are 1 (deferred re-weighting, Cao et al. 2019).
    """

    weighting: Weighting | None = None
    reweight_after: Annotated[float, Field(ge=0, lt=1)] = 0.0

    @abstractmethod
    def unweighted(self, facts: TermFacts) -> ItemLoss:
        """The loss of one term, without class weights."""

    def build(self, facts: TermFacts) -> ItemLoss:
        loss = self.unweighted(facts)
        if self.weighting is None:
            return loss
        return ClassWeightedLoss(loss, self.weighting.class_weights(facts), self.reweight_after)

    def problems(self, facts: TermFacts, path: str) -> list[Problem]:
        if self.weighting is None:
            must = "has no effect without weighting, must be 0"
            return [Problem(f"{path}.reweight_after", must, str(self.reweight_after))] if self.reweight_after else []
        if facts.link == "position":
            must = f"must be left out for term {facts.name!r}: it predicts positions, which have no class weights"
            return [Problem(f"{path}.weighting", must, self.weighting.name)]
        return self.weighting.problems(facts, f"{path}.weighting.{self.weighting.name}")


class ClassWeightedLoss(ItemLoss):
    """The loss of each item times the weight a_t of its class, averaged over the N items (eq. 2).

    Torch's `weight=` divides by the sum of the weights instead. A term of several labels has two weights, or two for
    each label. Before the share `after` of the steps all weights are 1. An absent class adds nothing; with every item
    masked the value is 0.

    >>> from dice_ray.losses import CrossEntropyLoss
    >>> loss = ClassWeightedLoss(CrossEntropyLoss(), weights=[1, 3])
    >>> round(loss(torch.zeros(2, 2), torch.tensor([0, 1])).item(), 4)  # (1 + 3) log(2) / 2
    1.3863
    """

    weights_C: Tensor

    def __init__(self, loss: ItemLoss, weights: Sequence[float], after: float = 0.0) -> None:
        super().__init__(loss.link)
        self.loss, self.after, self.is_on = loss, after, after == 0
        self.register_buffer("weights_C", torch.tensor(weights, dtype=torch.float32), persistent=False)

    def begin_step(self, progress: float) -> None:
        super().begin_step(progress)
        self.is_on = progress >= self.after

    def losses(self, items: Items) -> Tensor:
        losses_N = self.loss.losses(items)
        if not self.is_on:
            return losses_N
        classes_N, num_weights = items.targets, len(self.weights_C)
        if self.link == "sigmoid" and num_weights > 2:
            first_K = torch.arange(0, num_weights, 2, device=classes_N.device)
            classes_N = (classes_N.reshape(-1, len(first_K)) + first_K).flatten()
        return losses_N * self.weights_C.index_select(0, classes_N)


def _odds(counts: Sequence[int]) -> list[float]:
    return [(sum(counts) - count) / count for count in counts]
