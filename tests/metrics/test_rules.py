"""Every rule against brute force over all thresholds, and the promise of a certainty against the binomial."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError
from scipy import stats

from dice_ray.metrics.fitting import _best_threshold
from dice_ray.metrics.rules import CostRule, F1Rule, FBetaRule, PrecisionRule, RateRule, RecallRule, Rule

Floats: TypeAlias = NDArray[np.float64]
Gain: TypeAlias = Callable[[Floats, Floats, Floats, Floats], Floats]

NUM_CASES = 10_000


def ratio(above: Floats, below: Floats) -> Floats:
    return np.where(below > 0, above / np.maximum(below, 1), 0.0)


def f(beta: float) -> Gain:
    return lambda tp, fp, fn, tn: ratio((1 + beta**2) * tp, (1 + beta**2) * tp + fp + beta**2 * fn)


def recall_of(at_least: float, tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return np.where(ratio(tp, tp + fn) >= at_least, ratio(tp, tp + fp), -1)


def certain_recall(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """If recall in use were .7, so many positives or more would be found in at most 20 % of dev sets."""
    is_certain = (stats.binom.sf(tp - 1, tp + fn, 0.7) <= 0.2 + 1e-12) | (fn + tn == 0)
    return np.where(is_certain, ratio(tp, tp + fp), -1)


def precision_of(at_least: float, tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    precision = ratio(tp, tp + fp)
    return np.where(precision >= at_least, ratio(tp, tp + fn), precision - 2)


def certain_precision(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    is_certain = (stats.binom.sf(tp - 1, tp + fp, 0.6) <= 0.2 + 1e-12) | (tp + fp == 0)
    return np.where(is_certain, ratio(tp, tp + fn), -1)


def rate_of(at_most: float, tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return np.where(tp + fp <= at_most * (tp + fp + fn + tn), ratio(tp, tp + fn), -1)


RULES: list[tuple[Rule, Gain]] = [
    (F1Rule(), f(1)),
    (FBetaRule(beta=2.0), f(2)),
    (FBetaRule(beta=0.5), f(0.5)),
    (CostRule(false_positive=1.0, false_negative=10.0), lambda tp, fp, fn, tn: -(fp + 10 * fn)),
    (CostRule(false_positive=3.0), lambda tp, fp, fn, tn: -(3 * fp + fn)),
    (RecallRule(at_least=0.8), lambda *counts: recall_of(0.8, *counts)),
    (RecallRule(at_least=1.0), lambda *counts: recall_of(1.0, *counts)),
    (RecallRule(at_least=0.7, certainty=0.8), certain_recall),
    (PrecisionRule(at_least=0.75), lambda *counts: precision_of(0.75, *counts)),
    (PrecisionRule(at_least=0.6, certainty=0.8), certain_precision),
    (RateRule(at_most=0.25), lambda *counts: rate_of(0.25, *counts)),
]


@pytest.fixture(scope="module")
def cases() -> tuple[Floats, NDArray[np.int64]]:
    """Probabilities on grids, so that they tie, some of them 0 and 1; shares of positives from none to all."""
    draw = np.random.default_rng(0)
    steps_B1 = draw.choice([2, 5, 10, 1000], (NUM_CASES, 1))
    labels_BN = draw.random((NUM_CASES, 12)) < draw.choice([0, 0.1, 0.3, 0.6, 1], (NUM_CASES, 1))
    logits_BN = draw.normal(draw.uniform(0, 3, (NUM_CASES, 1)) * (labels_BN - 0.7), 1.5)
    return np.round(steps_B1 / (1 + np.exp(-logits_BN))) / steps_B1, labels_BN.astype(np.int64)


@pytest.mark.parametrize(("rule", "gain"), RULES, ids=[f"{rule!r}" for rule, _ in RULES])
def test_no_threshold_is_better(rule: Rule, gain: Gain, cases: tuple[Floats, NDArray[np.int64]]) -> None:
    """Finds a threshold that another one beats or that lies nearer to .5, and a limit that is missed on dev."""
    probabilities_BN, labels_BN = cases
    found_B = np.array([_best_threshold(p_N, y_N, rule) for p_N, y_N in zip(probabilities_BN, labels_BN, strict=True)])

    # All thresholds that differ: halfway below each probability, and halfway from the largest to 1.
    below_BNN = probabilities_BN[:, None, :] < probabilities_BN[:, :, None]
    lower_BN = np.where(below_BNN, probabilities_BN[:, None, :], -np.inf).max(2)
    lower_BN = np.where(np.isfinite(lower_BN), lower_BN, np.where(probabilities_BN > 0, 0.0, -1.0))
    last_B1 = (probabilities_BN.max(1, keepdims=True) + 1) / 2
    thresholds_BK = np.concatenate([(lower_BN + probabilities_BN) / 2, last_B1, found_B[:, None]], 1)

    flagged_BKN = probabilities_BN[:, None, :] > thresholds_BK[:, :, None]
    positive_B1N = labels_BN[:, None, :] == 1
    counts = [
        (flagged_BKN & positive_B1N).sum(2),
        (flagged_BKN & ~positive_B1N).sum(2),
        (~flagged_BKN & positive_B1N).sum(2),
        (~flagged_BKN & ~positive_B1N).sum(2),
    ]
    gains_BK = gain(*(each.astype(np.float64) for each in counts))
    has_positives_B = labels_BN.any(1)
    assert (~has_positives_B).sum() > 500
    assert labels_BN.all(1).sum() > 500
    assert (found_B[~has_positives_B] == 0.5).all()
    best_B = gains_BK.max(1)
    np.testing.assert_allclose(gains_BK[has_positives_B, -1], best_B[has_positives_B], rtol=1e-12)
    is_best_BK = gains_BK >= best_B[:, None] - 1e-12
    nearest_B = np.where(is_best_BK, np.abs(thresholds_BK - 0.5), np.inf).min(1)
    np.testing.assert_allclose(np.abs(found_B - 0.5)[has_positives_B], nearest_B[has_positives_B], atol=1e-12)


@pytest.mark.parametrize("positives", [20, 60, 300])
def test_a_certainty_is_the_share_of_dev_sets_that_keep_the_limit_in_use(positives: int) -> None:
    """Finds a limit of dev alone, and few positives for which a limit is promised that they cannot show.

    Positives are uniform between 0 and 1, and negatives between 0 and a half, so that scores in use are known.
    """
    draw = np.random.default_rng(0)
    rules = (RecallRule(at_least=0.9, certainty=0.9), PrecisionRule(at_least=0.8, certainty=0.9))
    gold = np.repeat([1, 0], [positives, 2 * positives])
    kept = []
    for _ in range(1000):
        probabilities = draw.random(len(gold)) * np.where(gold, 1, 0.5)
        recall, other = (1 - _best_threshold(probabilities, gold, rule) for rule in rules)
        precision = other / (other + 2 * max(0, 2 * other - 1))
        kept.append((recall >= 0.9, precision >= 0.8))
    of_recall, of_precision = np.mean(kept, axis=0)
    error = 3 * np.sqrt(0.1 * 0.9 / 1000)
    assert of_recall >= 0.9 - error
    assert of_precision >= 0.9 - error


@pytest.mark.parametrize("rule", [RecallRule, PrecisionRule])
def test_no_certainty_of_a_limit_of_1(rule: type[RecallRule | PrecisionRule]) -> None:
    """No number of positives shows it: the message of `predict` said that it needs inf."""
    assert rule(at_least=1).least_positives() == 0
    with pytest.raises(ValidationError, match="at_least must be below 1 with a certainty"):
        rule(at_least=1, certainty=0.95)


def test_a_certainty_that_dev_cannot_give_finds_all_or_nothing() -> None:
    probabilities, gold = np.array([0.1, 0.3, 0.7, 0.9]), np.array([0, 0, 1, 1])
    assert _best_threshold(probabilities, gold, RecallRule(at_least=0.8, certainty=0.9)) == pytest.approx(0.05)
    assert _best_threshold(probabilities, gold, PrecisionRule(at_least=0.8, certainty=0.9)) == pytest.approx(0.95)
    assert _best_threshold(probabilities, gold, PrecisionRule(at_least=1.0)) == pytest.approx(0.5)
