"""Arms at equal tuning budget: a study whose variants are settings drawn from a search space, the same for all arms.

A search of n trials is the best of n of these settings by dev. So the tuning is replicated together with the seeds:
one search for each arm would compare single draws of the searches (`tests/benchmarks/uncertainty.py`).

Each setting is run with one seed, another for each setting, or all settings with all seeds (crossed). As many runs show
smaller differences if each has a setting of its own; a crossed study shows what the scores vary with.

A run that failed has a dev score below all others, so that a search chooses it only where all its runs failed. Its
test score is that of the constant predictor, or the worst of any arm with this setting and seed if that is worse: to
fail is never better than to train a bad model. So all arms have the same settings and seeds, without gaps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.formats import ScoreFormat
from analysis.frames import (
    Declared,
    Findings,
    all_params,
    collapsed,
    constant,
    decisive_metric,
    has_drawn_settings,
    of_kind,
    parent_tag,
    place_of,
    scores,
    states,
    tag_values,
    test_per_train,
)
from analysis.statistics.best_of_n import best_of, crossed_errors, one_seed_errors, pseudo_values
from analysis.statistics.intervals import FEW_SEEDS, NO_SPREAD, Difference, Interval, fitting, holm_of, interval_around
from analysis.statistics.variance import deviations
from dice_ray.metrics import catalogue
from dice_ray.tracking import schema

_FEW_SETTINGS: Final = 20
"""With fewer settings of one seed each no arm is called better."""
_FEW_CROSSED: Final = 6
"""The same of a crossed study: a third of fewer is one, and of one setting a search chooses nothing."""


@dataclass(frozen=True)
class ArmAtBudget:
    """One arm of the study.

    Attributes:
        scores: The expected test score of the best of 1, 2, ... settings; without bounds above half of the settings,
            where all subsets share most of their settings.
        differences: To the baseline, by number of settings; the p of one number are Holm-corrected over the arms. Empty
            for the baseline.
    """

    name: str
    scores: tuple[Interval, ...]
    differences: Mapping[int, Difference] = field(default_factory=dict)


@dataclass(frozen=True)
class AtBudget:
    """The arms of a study on one data set and encoder, at equal tuning budget.

    Attributes:
        place: Data set and encoder.
        metric: On test: `test/f1_tuned` where a tuned metric chose the checkpoints, unless `untuned` was declared.
        arms: The best at `budget` first; empty as long as no setting and seed has run with all arms, or no run has a
            score.
        constant: The score of the constant predictor; None if it is not stored.
        num_draws: The number of settings.
        num_seeds: The number of seeds that each setting was run with.
        is_crossed: Whether these are the same for all settings.
        planned_budget: The number of settings of which the best is compared; None for a third of them.
        own: By arm, the paths in which its settings differ from each other, and those of some other arm do not.
        varied: The paths that the settings differ in, of a crossed study.
        deviations: Likewise, the standard deviations of the test score by what it varies with.
        without_score: The arms of which no run has a score, which are not compared.
        num_failed: The number of runs without a score, by compared arm; absent for none.
        num_collapsed: The number of runs that predict one class only, likewise.
        num_left_out: The number of ended runs that are not compared, such as those of settings or seeds that not all
            arms have run with yet.
        test_per_train: As in `Comparison`.
    """

    place: str
    metric: str
    baseline: str
    arms: tuple[ArmAtBudget, ...] = ()
    constant: Interval | None = None
    num_draws: int = 0
    num_seeds: int = 0
    is_crossed: bool = True
    planned_budget: int | None = None
    own: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    varied: tuple[str, ...] = ()
    deviations: Mapping[str, Interval] = field(default_factory=dict)
    without_score: tuple[str, ...] = ()
    num_failed: Mapping[str, int] = field(default_factory=dict)
    num_collapsed: Mapping[str, int] = field(default_factory=dict)
    num_left_out: int = 0
    test_per_train: float = 0.0

    @property
    def budget(self) -> int:
        """The number of settings at which the arms are compared: without a plan a third of those that have run.

        The best of half of them would rest on two independent searches.
        """
        return max(1, min(self.planned_budget or self.num_draws // 3, self.num_draws))

    @property
    def settings_needed(self) -> int:
        """The fewest settings with which an arm is called better."""
        return max(_FEW_CROSSED if self.is_crossed else _FEW_SETTINGS, 2 * (self.planned_budget or 0))

    @property
    def score_format(self) -> ScoreFormat:
        """How its table writes scores and differences."""
        return ScoreFormat.of(self.metric, (score.mean for arm in self.arms for score in arm.scores))

    @property
    def is_decided(self) -> bool:
        """Whether there is a verdict, which has a certainty."""
        return self.outcome in ("no_difference", "different")

    @property
    def outcome(self) -> Literal["nothing", "all_collapsed", "too_few", "no_difference", "different"]:
        if len(self.arms) < 2:
            return "nothing"
        num_scored = len(self.arms) * self.num_draws * self.num_seeds - sum(self.num_failed.values())
        if sum(self.num_collapsed.values()) == num_scored:
            return "all_collapsed"
        if self.num_draws < self.settings_needed or (self.is_crossed and self.num_seeds < FEW_SEEDS):
            return "too_few"
        return "different" if self.different else "no_difference"

    @property
    def different(self) -> tuple[ArmAtBudget, ...]:
        """The arms that differ significantly from the baseline at `budget`; none with fewer than `settings_needed`."""
        arms = self.arms if self.num_draws >= self.settings_needed else ()
        return tuple(arm for arm in arms if arm.differences and arm.differences[self.budget].is_significant)

    @property
    def not_above_constant(self) -> tuple[ArmAtBudget, ...]:
        """The arms whose score at `budget` is not better than the constant predictor's; none if that is not stored."""
        level = self.constant.mean if self.constant else math.nan
        gains = [catalogue.gain(self.metric, arm.scores[self.budget - 1].mean - level) for arm in self.arms]
        return tuple(arm for arm, gain in zip(self.arms, gains, strict=True) if gain <= NO_SPREAD)


@lru_cache(maxsize=1)
def at_budget(findings: Findings) -> tuple[AtBudget, ...]:
    """The arms at equal tuning budget, for each data set and encoder; empty for all studies without drawn settings."""
    cells = findings.cells
    if cells.empty or not has_drawn_settings(findings.frame):
        return ()
    metric, baseline = findings.metric, parent_tag(findings.frame, schema.BASELINE)
    planned = tag_values(of_kind(findings.frame, "study"), schema.BUDGET).dropna()
    budget = int(planned.iloc[-1]) if len(planned) else None
    is_tuned = decisive_metric(cells, metric).endswith("_tuned")
    if is_tuned and Declared.in_frame(findings.frame).threshold == "tuned":
        metric = schema.sibling(metric, "tuned")
    groups = cells.groupby(place_of(cells, schema.DATA, schema.ENCODER), sort=False)
    return tuple(_of_cells(group, metric, baseline, str(place), budget) for place, group in groups)


def _of_cells(cells: pd.DataFrame, metric: str, baseline: str, place: str, budget: int | None) -> AtBudget:
    dev, test = scores(cells, decisive_metric(cells, metric)), scores(cells, metric)
    predictor, sign = constant(cells, metric), catalogue.gain(metric, 1.0)
    # Collapses are counted at .5.
    has_collapses = catalogue.metric(metric).needs_threshold and not metric.endswith("_tuned")
    is_scored = dev.notna() & test.notna()
    runs = cells[["arm", "seed"]].assign(
        draw=tag_values(cells, schema.VARIANT),
        gain=(sign * dev).where(is_scored, -math.inf),
        test=test.where(is_scored),
        is_failed=~is_scored,
        is_collapsed=collapsed(cells, metric) & is_scored & has_collapses,
    )
    ended = runs[states(cells) != "unfinished"]
    # The latest run with a score counts, of those that repeat a cell.
    order = (~ended["is_failed"]).sort_values(kind="stable").index
    once = ended.loc[order].drop_duplicates(["arm", "draw", "seed"], keep="last")
    # Such an arm would have the score of the constant predictor, or the worst of the other arms, and a verdict by it.
    never_scored = once.groupby("arm")["is_failed"].transform("all")
    without_score = tuple(str(name) for name in once[never_scored]["arm"].unique())
    once = once[~never_scored]
    # By all runs: those of the first setting alone, which end first, do not show the design.
    is_crossed = runs["seed"].nunique() < 2 or bool(runs.groupby("draw")["seed"].nunique().max() > 1)
    if not is_crossed:  # the seed of a setting is no other one for each arm, and is part of the setting
        once = once.assign(seed=0)
    block = _without_gaps(_block(once), predictor, sign)
    names = [str(name) for name in dict.fromkeys(block["arm"])]
    if baseline not in names or block["is_failed"].all():
        return AtBudget(place, metric, baseline, without_score=without_score, num_left_out=len(once))
    names.sort(key=lambda name: name != baseline)
    num_draws, num_seeds = block["draw"].nunique(), block["seed"].nunique()
    by_arm = block.set_index("arm").sort_values(["draw", "seed"])
    gain_ANR, test_ANR = (
        np.stack([by_arm.loc[[name], of].to_numpy(float).reshape(num_draws, num_seeds) for name in names])
        for of in ("gain", "test")
    )
    ratio = test_per_train(cells)
    made = AtBudget(
        place,
        metric,
        baseline,
        constant=predictor,
        num_draws=num_draws,
        num_seeds=num_seeds,
        is_crossed=is_crossed,
        planned_budget=budget,
        own=_own(cells.loc[block.index]),
        varied=_varied(cells.loc[block.index]) if is_crossed else (),
        deviations=deviations(test_ANR) if is_crossed else {},
        without_score=without_score,
        num_failed=_counts(block, "is_failed"),
        num_collapsed=_counts(block, "is_collapsed"),
        num_left_out=len(once) - len(block),
        test_per_train=ratio,
    )
    arms = compare(names, gain_ANR, test_ANR, made.budget, ratio, metric, is_crossed=is_crossed)
    arms.sort(key=lambda arm: -sign * arm.scores[made.budget - 1].mean)
    return replace(made, arms=tuple(arms))


def _varied(cells: pd.DataFrame) -> tuple[str, ...]:
    """The paths whose value is the same in all runs of a setting and differs between settings; the seed is none."""
    params = all_params(cells)
    num_values = params.groupby(tag_values(cells, schema.VARIANT)).nunique(dropna=False).max()
    return tuple(map(str, params.columns[(params.nunique(dropna=False) > 1) & (num_values == 1)]))


def _own(cells: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    params = all_params(cells)
    is_varied = params.groupby(cells["arm"]).nunique() > 1
    own = is_varied.loc[:, ~is_varied.all()]
    return {str(arm): paths for arm, row in own.iterrows() if (paths := tuple(map(str, own.columns[row])))}


def _counts(runs: pd.DataFrame, name: str) -> dict[str, int]:
    return {str(arm): int(num) for arm, num in runs.groupby("arm")[name].sum().items() if num}


def _block(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of the settings, or of the seeds, that all arms have run with: of whichever leaves more runs."""
    num = {name: runs[name].nunique() for name in ("arm", "draw", "seed")}
    blocks = []
    for kept, other in (("draw", "seed"), ("seed", "draw")):
        size = runs.groupby(kept)["arm"].transform("size")
        blocks.append(runs[size == num["arm"] * num[other]])
    return max(blocks, key=len)


def _without_gaps(runs: pd.DataFrame, predictor: Interval | None, sign: float) -> pd.DataFrame:
    """The runs with a test score for those that failed too; NaN if all did, and no constant predictor is stored."""
    # Runs of older versions have no constant predictor for some metrics. A score of 0 may be one that no run can have.
    gains = sign * runs["test"]
    level = sign * predictor.mean if predictor else gains.min()
    lowest = gains.groupby([runs["draw"], runs["seed"]]).transform("min").fillna(level).clip(upper=level)
    return runs.assign(test=sign * gains.fillna(lowest))


def compare(
    names: Sequence[str],
    gain_ANR: NDArray[np.floating],
    test_ANR: NDArray[np.floating],
    budget: int,
    test_per_train: float = 0.0,
    metric: str = "f1",
    *,
    is_crossed: bool = True,
) -> list[ArmAtBudget]:
    """Each arm at every number of settings, and its difference to the first one at 1, at `budget` and at half of all.

    The settings and seeds are the same for all arms, so that their differences are paired. `gain_ANR` are the scores on
    dev, of which a higher one is better; `test_per_train` is that of `statistics.t_interval`.
    """
    num, num_seeds = gain_ANR.shape[1:]
    known, errors_of = catalogue.metric(metric), crossed_errors if is_crossed else one_seed_errors
    # A claim needs as many settings as seeds of a crossed study: both are drawn at random.
    least = min(num, num_seeds) if is_crossed else num
    low, high = limits = fitting(known.limits, test_ANR.ravel().tolist())
    differences: dict[str, dict[int, Difference]] = {name: {} for name in names}
    intervals: dict[str, list[Interval]] = {name: [] for name in names}
    for size in range(1, num + 1):
        # Above half of the settings no subset is disjoint from another, and no spread is left to estimate.
        is_known = size <= num // 2
        values = [
            pseudo_values(gain_NR, test_NR, size) if is_known else best_of(gain_NR, test_NR, size)
            for gain_NR, test_NR in zip(gain_ANR, test_ANR, strict=True)
        ]
        for name, value in zip(names, values, strict=True):
            errors = errors_of(value, size, test_per_train) if is_known else ()
            # A mean of shares that is 1 up to rounding is 1.
            mean = min(float(value.mean()), high)
            intervals[name].append(interval_around(mean, errors, least, limits))
        if is_known and size in (1, budget, num // 2):
            bound = high - low
            others = [value - values[0] for value in values[1:]]
            made = [
                Difference.tested(float(other.mean()), least, errors_of(other, size, test_per_train), bound)
                for other in others
            ]
            for name, difference in zip(names[1:], holm_of(made), strict=True):
                differences[name][size] = replace(difference, lower_is_better=known.is_minimised)
    return [ArmAtBudget(name, tuple(intervals[name]), differences[name]) for name in names]
