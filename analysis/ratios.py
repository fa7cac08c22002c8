"""A study over training sets of several imbalance ratios: the scores of its arms by ratio, plain, tuned and PR-AUC."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Final, Literal

from analysis.comparison import CONSTANT, Comparison, comparisons
from analysis.decisions import DecisionFacts
from analysis.formats import ScoreFormat
from analysis.frames import Findings, param_values, place_of
from analysis.statistics.intervals import Interval
from dice_ray.metrics import catalogue
from dice_ray.tracking import schema

_RATIO: Final = "data.imbalance.ratio.negatives"
PR_AUC: Final = "PR-AUC"


@dataclass(frozen=True)
class _Reading:
    """One score of the arms by the number of negatives for each positive: the intervals of the tables of the ratios.

    Attributes:
        name: `ByRatio.plain`, `ByRatio.tuned` or `PR_AUC`.
        metric: What the scores are of.
        scores: By arm and ratio; the baseline first, then the others by the mean over their ratios. The constant
            predictor, last, is among the plain scores only.
        significantly: Whether an arm is better or worse than the baseline at a ratio, where the difference is
            significant; PR-AUC beside another metric is not tested.
    """

    name: str
    metric: str
    scores: Mapping[str, Mapping[float, Interval]]
    significantly: Mapping[tuple[str, float], Literal["better", "worse"]]

    @property
    def score_format(self) -> ScoreFormat:
        """How table and figure write its scores."""
        return ScoreFormat.of(self.metric, (score.mean for of_arm in self.scores.values() for score in of_arm.values()))


@dataclass(frozen=True)
class ByRatio:
    """The comparisons of a study on one data set and encoder, by the number of negatives for each positive, ascending.

    Attributes:
        place: Data set and encoder; empty if there is one.
    """

    place: str
    metric: str
    baseline: str
    comparisons: Mapping[float, Comparison]

    @property
    def _decision(self) -> DecisionFacts:
        return next(iter(self.comparisons.values())).decision

    @property
    def plain(self) -> str:
        """The name of the scores of plain predictions: that of the metric, if it needs no threshold."""
        untuned = self._decision.untuned.strip() if catalogue.metric(self.metric).needs_threshold else ""
        return untuned or self.metric

    @property
    def tuned(self) -> str:
        """The name of the scores with the decision that is fitted on dev."""
        return self._decision.tuned.strip()

    @property
    def readings(self) -> tuple[_Reading, ...]:
        """The readings that the runs store: only tasks of two classes have a threshold and PR-AUC."""
        areas = () if self.metric.endswith("/pr_auc") else (PR_AUC,)
        made = map(self._reading, (self.plain, self.tuned, *areas))
        return tuple(reading for reading in made if reading.scores)

    def _reading(self, name: str) -> _Reading:
        scores: dict[str, dict[float, Interval]] = {}
        significantly: dict[tuple[str, float], Literal["better", "worse"]] = {}
        for ratio, compared in self.comparisons.items():
            for arm in compared.arms:
                score = arm.pr_auc if name == PR_AUC else arm.score
                is_kind = arm.is_tuned == (name == self.tuned) and (arm.name != CONSTANT or name == self.plain)
                if is_kind and score and not math.isnan(score.mean):
                    scores.setdefault(arm.arm, {})[ratio] = score
                    if name != PR_AUC and arm.decisive and arm.decisive.is_significant:
                        significantly[arm.arm, ratio] = "better" if arm.decisive.is_ahead else "worse"
        means = {arm: sum(score.mean for score in of.values()) / len(of) for arm, of in scores.items()}
        metric = "test/pr_auc" if name == PR_AUC else self.metric
        order = sorted(
            scores, key=lambda arm: (arm != self.baseline, arm == CONSTANT, -catalogue.gain(metric, means[arm]))
        )
        return _Reading(name, metric, {arm: scores[arm] for arm in order}, significantly)


@lru_cache(maxsize=1)
def by_ratio(findings: Findings) -> tuple[ByRatio, ...]:
    """For each data set and encoder of a study over training sets of two imbalance ratios or more, and with a score."""
    by_place: dict[str, list[tuple[float, Comparison]]] = {}
    for compared in comparisons(findings):
        ratios = param_values(compared.cells, _RATIO).dropna().unique()
        if len(ratios) == 1:
            place = str(place_of(compared.cells, schema.DATA, schema.ENCODER).iloc[0])
            by_place.setdefault(place, []).append((float(ratios[0]), compared))
    several = {
        place: dict(sorted(of, key=itemgetter(0)))
        for place, of in by_place.items()
        if 1 < len(of) == len({ratio for ratio, _ in of})  # else the sets differ in more than their ratio
    }
    found = (
        ByRatio(place if len(several) > 1 else "", first.metric, first.baseline, of)
        for place, of in several.items()
        for first in [next(iter(of.values()))]
    )
    return tuple(each for each in found if each.readings)
