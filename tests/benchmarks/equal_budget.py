"""Simulated studies of losses of which none is better: how often a comparison finds a difference nevertheless.

A score is the effect of the setting, which may differ between the arms, and the noise of the run; the dev score has
noise of its own. All arms have the same distribution of effects, so that no search is better with one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from analysis.best_of import best_of
from analysis.budget import compare
from analysis.statistics import holm_of, paired_difference

Floats: TypeAlias = NDArray[np.floating]

NUM_ARMS, NUM_DRAWS, NUM_SEEDS = 5, 12, 5
BUDGET = NUM_DRAWS // 3
SEEDS_AFTER_SEARCH = 10
"""Of the comparison that follows one search for each arm."""
RUN, DEV = 0.01, 0.01
"""Standard deviations of a run's score, and of the difference of its dev score."""
NUM_RESAMPLES = 200
LEAD = 0.03
"""Of an arm that is better, where one is."""
SCENARIOS: Final = (
    "settings suit all arms alike",
    "settings suit each arm differently",
    "4 of 10 settings fail to learn",
    "seeds suit each arm differently",
)


def scores(rng: np.random.Generator, scenario: str, num_arms: int, num: int, num_seeds: int) -> tuple[Floats, Floats]:
    """Dev and test scores, `_ANR`."""
    common_N, own_AN = rng.normal(size=(1, num, 1)), rng.normal(size=(num_arms, num, 1))
    true_ANR = 0.7 + 0.03 * common_N
    if scenario == "settings suit each arm differently":
        true_ANR = 0.7 + 0.02 * common_N + 0.02 * own_AN
    elif scenario == "4 of 10 settings fail to learn":
        true_ANR = np.where(rng.random((1, num, 1)) < 0.4, 0.2, 0.7 + 0.01 * common_N)
    elif scenario == "seeds suit each arm differently":
        true_ANR = true_ANR + rng.normal(0, RUN, (num_arms, 1, num_seeds))
    test_ANR = true_ANR + rng.normal(0, RUN, (num_arms, num, num_seeds))
    return test_ANR + rng.normal(0, DEV, test_ANR.shape), test_ANR


def claims_at_equal_budget(rng: np.random.Generator, scenario: str, lead: float = 0.0) -> list[bool]:
    """Whether each arm but the first is said to differ from it; the last one leads."""
    dev_ANR, test_ANR = scores(rng, scenario, NUM_ARMS, NUM_DRAWS, NUM_SEEDS)
    more_A11 = np.array([*[0.0] * (NUM_ARMS - 1), lead])[:, None, None]
    arms = compare([str(arm) for arm in range(NUM_ARMS)], dev_ANR + more_A11, test_ANR + more_A11, BUDGET)
    return [arm.differences[BUDGET].is_significant for arm in arms[1:]]


def claims_after_one_search_each(rng: np.random.Generator, scenario: str) -> list[bool]:
    """The same where each arm has settings from a search of its own, and these are compared over seeds."""
    by_seed = []
    for _ in range(NUM_ARMS):
        # One arm, whose seed 0 is that of its search. The runs after it have other seeds.
        dev_1NR, test_1NR = scores(rng, scenario, 1, NUM_DRAWS, 1 + SEEDS_AFTER_SEARCH)
        chosen = int(dev_1NR[0, :, 0].argmax())
        by_seed.append(dict(enumerate(test_1NR[0, chosen, 1:].tolist())))
    return [each.is_significant for each in holm_of([paired_difference(arm, by_seed[0]) for arm in by_seed[1:]])]


def false_claims(num_studies: int, scenario: str, seed: int = 0) -> dict[str, float]:
    """The shares of studies that find a difference, and that find an arm which leads by `LEAD`."""
    rng = np.random.default_rng(seed)
    return {
        "at equal budget": float(np.mean([any(claims_at_equal_budget(rng, scenario)) for _ in range(num_studies)])),
        "after one search each": float(
            np.mean([any(claims_after_one_search_each(rng, scenario)) for _ in range(num_studies)])
        ),
        "leading arm found": float(
            np.mean([claims_at_equal_budget(rng, scenario, LEAD)[-1] for _ in range(num_studies)])
        ),
    }


def coverage(num_studies: int, scenario: str, seed: int = 0) -> dict[str, float]:
    """The shares of studies whose interval of the score of one arm at `BUDGET` covers the expected one.

    The other interval is that of the percentile bootstrap over settings and seeds.
    """
    rng = np.random.default_rng(seed)
    dev_1NR, test_1NR = scores(rng, scenario, 1, 100_000, 1)
    expected = float(best_of_many(dev_1NR[0], test_1NR[0]))
    covered = by_bootstrap = 0
    for _ in range(num_studies):
        dev_ANR, test_ANR = scores(rng, scenario, 1, NUM_DRAWS, NUM_SEEDS)
        (arm,) = compare(["arm"], dev_ANR, test_ANR, BUDGET)
        covered += arm.scores[BUDGET - 1].low <= expected <= arm.scores[BUDGET - 1].high
        low, high = bootstrap(rng, dev_ANR[0], test_ANR[0])
        by_bootstrap += low <= expected <= high
    return {"covered": covered / num_studies, "covered by the bootstrap": by_bootstrap / num_studies}


def bootstrap(rng: np.random.Generator, dev_NR: Floats, test_NR: Floats) -> tuple[float, float]:
    """The percentiles of the estimate over resampled settings and seeds."""
    means = []
    for _ in range(NUM_RESAMPLES):
        chosen = np.ix_(rng.integers(0, NUM_DRAWS, NUM_DRAWS), rng.integers(0, NUM_SEEDS, NUM_SEEDS))
        means.append(best_of(dev_NR[chosen], test_NR[chosen], BUDGET).mean())
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def best_of_many(dev_N1: Floats, test_N1: Floats) -> float:
    """The mean over disjoint subsets of `BUDGET` settings of the test score of the best by dev."""
    dev_SB, test_SB = dev_N1.reshape(-1, BUDGET), test_N1.reshape(-1, BUDGET)
    return float(np.take_along_axis(test_SB, dev_SB.argmax(1)[:, None], 1).mean())


def equal_budget(num_studies: int) -> Iterator[dict[str, Any]]:
    """Five equal arms with 12 settings and 5 seeds, or with a search of 12 trials for each and 10 seeds after it."""
    for scenario in SCENARIOS:
        shares = false_claims(num_studies, scenario) | coverage(num_studies, scenario)
        yield {"scenario": scenario} | {name: f"{100 * share:.1f}" for name, share in shares.items()}
