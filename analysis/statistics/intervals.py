"""Uncertainty of means over seeds: intervals of bounded scores, paired differences, Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from analysis.statistics.looks import Looks

ALPHA: Final = 0.05
"""Two arms are significantly different if the Holm-corrected p is at most this; intervals have the level 1 - ALPHA."""
FEW_SEEDS: Final = 5
"""With fewer shared seeds no difference is called significant, and no arm the winner."""
NO_SPREAD: Final = 1e-12
"""A smaller spread is rounding error, and the values count as equal."""
UNIT_INTERVAL: Final = (0.0, 1.0)
_LEAST_FOR_PRIOR: Final = 4
"""Fewer spreads do not show how alike they are."""


@dataclass(frozen=True)
class Interval:
    """A mean and its interval over `num` values; the bounds are NaN for fewer than two values or no spread."""

    mean: float
    low: float = math.nan
    high: float = math.nan
    num: int = 0


@dataclass(frozen=True)
class StandardError:
    """The standard error of a mean with the degrees of freedom of its t distribution."""

    size: float
    freedom: float

    @classmethod
    def of_sum(cls, *variances: tuple[float, float]) -> StandardError:
        """Of a sum of independent parts with these variances and degrees of freedom, by Satterthwaite."""
        variance = sum(each for each, _ in variances)
        rest = sum(each**2 / freedom for each, freedom in variances)
        return cls(math.sqrt(variance), variance**2 / rest if rest else math.inf)


@dataclass(frozen=True)
class Difference:
    """A mean difference over shared seeds; `p` is NaN if it is not tested. Without spread the interval has no bounds.

    Attributes:
        interval: It excludes 0 exactly if a `p` is at most `ALPHA`, before and after a correction.
        p: The largest p value of the t tests with these standard errors, over all looks.
        errors: The interval is the widest of theirs. The last one is that over seeds.
        bound: The largest difference that is possible; 1 for shares, 2 for MCC.
        looks: The looks of which this is one; None for a number of seeds that was chosen before the first run.
        lower_is_better: Whether a difference below 0 is a gain, as of a cost.
    """

    interval: Interval
    p: float
    errors: tuple[StandardError, ...] = ()
    bound: float = math.inf
    looks: Looks | None = None
    lower_is_better: bool = False

    @classmethod
    def tested(
        cls, mean: float, num: int, errors: tuple[StandardError, ...], bound: float, looks: Looks | None = None
    ) -> Difference:
        """The t test of a mean over `num` seeds. Without spread (of two arms that collapse) nothing is tested."""
        from scipy import special

        if not errors or max(error.size for error in errors) < NO_SPREAD:
            return cls(Interval(mean, num=num), math.nan, errors, bound, looks)
        p = max(float(2 * special.stdtr(error.freedom, -abs(mean) / max(error.size, NO_SPREAD))) for error in errors)
        p = looks.overall(p) if looks else p
        return cls(Interval(mean, num=num), p, errors, bound, looks).corrected(p, ALPHA)

    @property
    def untested(self) -> Difference:
        """The same mean without a test."""
        return replace(self, interval=Interval(self.interval.mean, num=self.interval.num), p=math.nan, errors=())

    @property
    def item_variance(self) -> float:
        """The part of test items in the variance of the mean; 0 if they are not known."""
        return max(self.errors[0].size ** 2 - self.errors[-1].size ** 2, 0.0) if self.errors else 0.0

    @property
    def gain(self) -> Interval:
        """The interval of how much better it is: the other way round where lower is better."""
        of = self.interval
        return Interval(-of.mean, -of.high, -of.low, of.num) if self.lower_is_better else of

    def corrected(self, p: float, alpha: float) -> Difference:
        """The same with a corrected p and the interval of the level 1 - `alpha`, at which it was tested."""
        if not self.errors:
            return replace(self, p=p)
        mean, bound = self.interval.mean, self.bound
        level = self.looks.level(alpha) if self.looks else alpha
        half = max(_quantile(error.freedom, level) * error.size for error in self.errors)
        interval = replace(self.interval, low=max(mean - half, -bound), high=min(mean + half, bound))
        return replace(self, interval=interval, p=p)

    @property
    def is_significant(self) -> bool:
        """Whether the p, which must be the corrected one, is at most `ALPHA`, over at least `FEW_SEEDS` seeds."""
        return self.p <= ALPHA and self.interval.num >= FEW_SEEDS

    @property
    def is_ahead(self) -> bool:
        """Whether it is significant and a gain."""
        return self.is_significant and self.gain.mean > 0

    @property
    def is_constant(self) -> bool:
        """Whether it is the same with all of at least `FEW_SEEDS` seeds and not 0: no t test can judge it."""
        is_without_spread = bool(self.errors) and math.isnan(self.p)
        return is_without_spread and self.interval.num >= FEW_SEEDS and abs(self.interval.mean) >= NO_SPREAD


def t_interval(
    scores: Sequence[float], test_per_train: float = 0.0, limits: tuple[float, float] = UNIT_INTERVAL
) -> Interval:
    """Student's t interval of the mean score, on the logit scale if the metric has limits.

    The interval of a share is that of the logit of the mean, with the delta method: it never leaves [0, 1], and covers
    the mean of skewed scores near 0 or 1 more often than an interval on the plain scale that is cut off there
    (`tests/benchmarks/uncertainty.py`). That of an MCC is the same for its place between -1 and 1, which is Fisher's z.
    No method finds a chance to collapse that no seed shows: see `over_seeds._of_collapse`.

    Args:
        scores: One for each seed.
        test_per_train: n_test/n_train if each seed drew its own splits, else 0. The training sets of such seeds
            overlap, so that the variance of their mean is not s^2/n but (1/n + n_test/n_train) s^2 (Nadeau and Bengio
            2003).
        limits: The lowest and highest possible value of the metric, as in its catalogue. The scores do not show
            them: those of an MCC may all be above 0, and as shares they would never have 0, which is chance, in their
            interval. Scores beyond the limits have the plain interval, as of a user's function `f1` in percent.

    Returns:
        NaN bounds for one score or scores without spread, and a NaN mean for none.

    >>> t_interval([0.75, 0.875, 0.8125])
    Interval(mean=0.8125, low=0.6099741710180954, high=0.9231169494479634, num=3)
    """
    num = len(scores)
    if num < 2 or np.ptp(scores) < NO_SPREAD:
        return Interval(float(np.mean(scores)) if num else math.nan, num=num)
    error = _standard_error(scores, test_per_train)
    return interval_around(float(np.mean(scores)), (error,), num, fitting(limits, scores))


def interval_around(mean: float, errors: Sequence[StandardError], num: int, limits: tuple[float, float]) -> Interval:
    """The widest t interval of these standard errors around a mean, on the logit scale if there are limits.

    NaN bounds without a standard error, without spread, and of a mean at its limit.
    """
    low, high = limits
    if not errors or max(error.size for error in errors) < NO_SPREAD or not low < mean < high:
        return Interval(mean, num=num)
    half = max(_quantile(error.freedom, ALPHA) * error.size for error in errors)
    if math.isinf(high - low):
        return Interval(mean, max(mean - half, low), min(mean + half, high), num)
    from scipy import special

    width, share = high - low, (mean - low) / (high - low)
    # The derivative of the logit is 1/(share (1 - share)).
    half, logit = half / width / (share * (1 - share)), float(special.logit(share))
    lower, upper = (low + width * float(special.expit(logit + side)) for side in (-half, half))
    return Interval(mean, lower, upper, num)


def paired_difference(
    values: Mapping[int, float],
    baseline: Mapping[int, float],
    test_per_train: float = 0.0,
    limits: tuple[float, float] = UNIT_INTERVAL,
    looks: Looks | None = None,
) -> Difference:
    """Student's paired t test of the mean difference over the seeds that both have, or Welch's test without such seeds.

    Bounds of differences are cut off at the largest possible ones, which changes neither the test nor the coverage.
    Differences without spread are not tested: their p and bounds are NaN. `test_per_train` and `limits` are those of
    `t_interval`.
    """
    shared = sorted(values.keys() & baseline.keys())
    differences = [values[seed] - baseline[seed] for seed in shared]
    low, high = fitting(limits, [*values.values(), *baseline.values()])
    if not shared and min(len(values), len(baseline)) > 1:
        return _unpaired([*values.values()], [*baseline.values()], test_per_train, high - low, looks)
    mean = float(np.mean(differences)) if shared else math.nan
    errors = (_standard_error(differences, test_per_train),) if len(shared) > 1 else ()
    return Difference.tested(mean, len(shared), errors, high - low, looks)


def moderated(differences: Sequence[Difference]) -> list[Difference]:
    """The same differences, each with a standard error that the spreads of the others support.

    Few seeds say little about a spread, and those of the arms of a study are alike. So each has, besides its own
    degrees of freedom, those of a prior that is fitted to all (the moderated t of limma, Smyth 2004). The prior has at
    most as many as the difference itself and at least the median spread, and never makes a spread smaller. What it
    gains, and what it costs where spreads differ much, is simulated in `tests/benchmarks/looks.py`.

    Nothing changes for fewer than four differences with `FEW_SEEDS` seeds, and for those at looks, whose levels hold
    for the t test alone.
    """
    from scipy import optimize, special

    known = [
        each
        for each in differences
        if each.errors and not each.looks and each.interval.num >= FEW_SEEDS and each.errors[-1].size > NO_SPREAD
    ]
    if len(known) < _LEAST_FOR_PRIOR:
        return [*differences]
    freedom = np.array([each.errors[-1].freedom for each in known])
    variance = np.array([each.errors[-1].size ** 2 * each.interval.num for each in known])
    logs = np.log(variance) - special.digamma(freedom / 2) + np.log(freedom / 2)
    excess = float(logs.var(ddof=1) - special.polygamma(1, freedom / 2).mean())
    prior_freedom = float(freedom.min())
    if excess > special.polygamma(1, prior_freedom / 2):  # the spreads differ by so much that the prior has fewer
        half = optimize.brentq(lambda x: float(special.polygamma(1, x)) - excess, 1 / excess, prior_freedom / 2)
        prior_freedom = 2 * half
    level = math.exp(float(logs.mean() + special.digamma(prior_freedom / 2)) - math.log(prior_freedom / 2))
    level = max(level, float(np.median(variance)))
    made = []
    for each in differences:
        if not any(each is other for other in known):
            made.append(each)
            continue
        both, seeds = each.errors[0], each.errors[-1]
        own = seeds.size**2 * each.interval.num
        shared = (prior_freedom * level + seeds.freedom * own) / (prior_freedom + seeds.freedom)
        error = StandardError(math.sqrt(max(own, shared) / each.interval.num), prior_freedom + seeds.freedom)
        errors: tuple[StandardError, ...] = (error,)
        if len(each.errors) > 1:
            of_items = max(both.size**4 / both.freedom - seeds.size**4 / seeds.freedom, 0.0)
            whole = error.size**2 + each.item_variance
            errors = (StandardError(math.sqrt(whole), whole**2 / (error.size**4 / error.freedom + of_items)), error)
        tested = Difference.tested(each.interval.mean, each.interval.num, errors, each.bound)
        made.append(replace(tested, lower_is_better=each.lower_is_better))
    return made


def _unpaired(
    values: Sequence[float], baseline: Sequence[float], test_per_train: float, bound: float, looks: Looks | None
) -> Difference:
    """Welch's test, as of the same arm with other seeds; over as many seeds as the smaller side has."""
    sides = [_standard_error(side, test_per_train) for side in (values, baseline)]
    error = StandardError.of_sum(*((side.size**2, side.freedom) for side in sides))
    mean = float(np.mean(values) - np.mean(baseline))
    return Difference.tested(mean, min(len(values), len(baseline)), (error,), bound, looks)


def fitting(limits: tuple[float, float], scores: Iterable[float]) -> tuple[float, float]:
    """The limits, or infinite ones if a score is beyond them."""
    low, high = limits
    return limits if all(low <= score <= high for score in scores) else (-math.inf, math.inf)


def _standard_error(values: Sequence[float], test_per_train: float) -> StandardError:
    """Of the mean of two values or more; `test_per_train` as in `t_interval`."""
    return StandardError(float(np.std(values, ddof=1)) * math.sqrt(1 / len(values) + test_per_train), len(values) - 1)


def sign_test(num: int, others: int, looks: Looks | None = None) -> float:
    """The exact two-sided p value of so many differences of one sign and of the other, over all looks; NaN without any.

    >>> sign_test(0, 6)
    0.03125
    """
    if not (total := num + others):
        return math.nan
    from scipy import special

    p = min(1.0, 2 * float(special.bdtr(min(num, others), total, 0.5)))
    return looks.overall(p) if looks else p


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction (Holm 1979) of the p values; NaN values stay NaN and do not count.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    tested = sorted((p, index) for index, p in enumerate(p_values) if not math.isnan(p))
    adjusted, highest = [math.nan] * len(p_values), 0.0
    for rank, (p, index) in enumerate(tested):
        # The running maximum: a larger p must not get a smaller corrected p.
        highest = max(highest, min(1.0, (len(tested) - rank) * p))
        adjusted[index] = highest
    return adjusted


def holm_of(differences: Sequence[Difference]) -> list[Difference]:
    """The same differences with Holm-corrected p values, each with the interval of the level at which it was tested.

    With m differences, Holm's procedure tests the smallest p at `ALPHA`/m, the next at `ALPHA`/(m - 1), and so on up to
    the first that is larger than its level; that one and all larger ones have this same level. So an interval excludes
    0 exactly if its corrected p is at most `ALPHA`, and at most 5 % of studies have an interval that excludes 0 where
    the true difference is 0.
    """
    adjusted = holm([difference.p for difference in differences])
    num_tested, num_rejected = sum(p >= 0 for p in adjusted), sum(p <= ALPHA for p in adjusted)
    corrected = []
    for difference, p in zip(differences, adjusted, strict=True):
        rank = sum(other.p < difference.p for other in differences)
        corrected.append(
            difference if math.isnan(p) else difference.corrected(p, ALPHA / (num_tested - min(rank, num_rejected)))
        )
    return corrected


def _quantile(freedom: float, alpha: float) -> float:
    """Of Student's t, exceeded in both tails together with the probability `alpha`."""
    from scipy import special

    return float(special.stdtrit(freedom, 1 - alpha / 2))
