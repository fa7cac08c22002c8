"""The arms over data sets: a mean difference to the baseline for each, and Wilcoxon's signed-rank test."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.comparison import Comparison
from analysis.formats import ScoreFormat
from analysis.frames import tag_values
from analysis.statistics.intervals import ALPHA, Interval, holm
from dice_ray.tracking import schema


@dataclass(frozen=True)
class _OverDataSets:
    """An arm against the baseline over data sets.

    Attributes:
        means: Its mean difference on each data set, over its variants, encoders and studies.
        least: The fewest data sets with which any result could be significant.
        p: Of the test; NaN if it is not run.
        holm_p: The same, corrected for the arms that are tested.
        lower_is_better: Whether a difference below 0 is a gain.
    """

    arm: str
    means: tuple[float, ...]
    least: int
    p: float
    holm_p: float = math.nan
    lower_is_better: bool = False

    @property
    def _gains(self) -> NDArray[np.floating]:
        return np.negative(self.means) if self.lower_is_better else np.asarray(self.means)

    @property
    def mean(self) -> float:
        return float(np.mean(self.means))

    @property
    def median(self) -> float:
        return float(np.median(self.means))

    @property
    def better_on(self) -> int:
        return int((self._gains > 0).sum())

    @property
    def is_better(self) -> bool:
        """In the direction that the test finds: that of the sum of signed ranks, which one outlier does not decide."""
        from scipy import stats

        return float(np.sum(stats.rankdata(np.abs(self.means)) * np.sign(self._gains))) > 0


def over_data_sets(compared: Sequence[Comparison]) -> list[_OverDataSets]:
    """Each arm against the baseline; none unless all have the same baseline, on two data sets or more.

    None either if a data set is compared by several metrics.
    """
    # Differences to other baselines are of other contrasts, and those of other directions have no mean.
    is_one_contrast = len({(each.baseline, each.lower_is_better) for each in compared}) == 1
    if not is_one_contrast or not has_one_metric_each(compared):
        return []
    by_arm: dict[str, dict[str, list[float]]] = {}
    for each in compared:
        data_set = _data_set(each)
        for arm in each.primary:
            if arm.difference and arm.difference.interval.num:
                by_arm.setdefault(arm.name, {}).setdefault(data_set, []).append(arm.over_all)
    if len({data_set for by_data in by_arm.values() for data_set in by_data}) < 2:
        return []
    arms = []
    for name, by_data in by_arm.items():
        means = [float(np.mean(of_variants)) for of_variants in by_data.values()]
        # Arms on fewer data sets, as at a tuned threshold, are not in the family of this one: if they have enough to be
        # tested, it has too.
        num_arms = sum(len(other) >= len(by_data) for other in by_arm.values())
        least, p = _least_data_sets(num_arms), math.nan
        # Without those of 0: from 14 data sets on SciPy approximates the test of them by a normal distribution.
        if len(unequal := [mean for mean in means if not np.isclose(mean, 0)]) >= least:
            from scipy import stats

            p = float(stats.wilcoxon(unequal).pvalue)
        arms.append(_OverDataSets(name, tuple(means), least, p, lower_is_better=compared[0].lower_is_better))
    return [replace(arm, holm_p=p) for arm, p in zip(arms, holm([arm.p for arm in arms]), strict=True)]


def has_one_metric_each(compared: Sequence[Comparison]) -> bool:
    """Whether each data set is compared by one metric: scores, or differences, of several metrics have no mean."""
    return len({(_data_set(each), each.metric) for each in compared}) == len({_data_set(each) for each in compared})


def _data_set(compared: Comparison) -> str:
    return str(tag_values(compared.cells, schema.DATA).iloc[0])


def _least_data_sets(num_arms: int) -> int:
    """The fewest data sets with which one of these arms could be significant after Holm's correction.

    >>> [_least_data_sets(num_arms) for num_arms in (1, 2, 3, 4, 6, 7)]
    [6, 7, 7, 8, 8, 9]
    """
    # With n data sets the smallest possible p is 2^(1-n), and Holm compares the smallest p with ALPHA/num_arms.
    return math.ceil(1 + math.log2(num_arms / ALPHA))


def sentence_over_data_sets(compared: Sequence[Comparison]) -> Iterator[str]:
    """Which arms are better or worse than the baseline over data sets; nothing if no arm can be tested."""
    tested = [arm for arm in over_data_sets(compared) if not math.isnan(arm.p)]
    if not tested:
        return
    scale = format_over_data_sets(compared)
    significant = [arm for arm in tested if arm.holm_p <= ALPHA]
    better, worse = (
        ", ".join(
            f"{arm.arm} (median {scale.show_difference(Interval(arm.median))}, better on "
            f"{arm.better_on} of {len(arm.means)})"
            for arm in significant
            if arm.is_better == is_better
        )
        for is_better in (True, False)
    )
    yield (
        f"Over data sets (Wilcoxon, Holm p <= {ALPHA}), significantly better than {compared[0].baseline}: "
        f"{better or 'no arm'}; worse: {worse or 'no arm'}."
    )


def format_over_data_sets(compared: Sequence[Comparison]) -> ScoreFormat:
    """In percent, or in another unit, only if the scores of all data sets are."""
    first, *others = {each.score_format for each in compared}
    return ScoreFormat(percent=False, is_minimised=compared[0].lower_is_better) if others else first
