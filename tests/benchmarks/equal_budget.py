"""Simulated studies of losses of which none is better: how often a comparison finds a difference nevertheless.

A score is the effect of the setting, which may differ between the arms, and the noise of the run; the dev score has
noise of its own. All arms have the same distribution of effects, so that no search is better with one of them. Where
settings suit each arm differently, arms differ at any one setting, though none is better over all: a comparison at one
setting, given or shared, finds that, and says that it covers no other setting.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from analysis.budget import compare
from analysis.statistics.best_of_n import best_of, crossed_errors, one_seed_errors, pseudo_values
from analysis.statistics.intervals import Difference, holm_of, paired_difference

Floats: TypeAlias = NDArray[np.floating]

NUM_ARMS, NUM_DRAWS, NUM_SEEDS = 5, 12, 5
BUDGET = NUM_DRAWS // 3
NUM_SETTINGS = 30
"""Of a study with one seed for each."""
SEEDS_AFTER_SEARCH = 10
"""Of the comparison that follows one search for each arm."""
RUN, DEV = 0.01, 0.01
"""Standard deviations of a run's score, and of the difference of its dev score."""
NUM_RESAMPLES, NUM_SEARCHES = 200, 20_000
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


def of_one_seed_each(rng: np.random.Generator, scenario: str, num_arms: int, num: int) -> tuple[Floats, Floats]:
    """Scores of settings with another seed for each, `_AN1`."""
    every_ANR = scores(rng, scenario, num_arms, num, num)
    dev_AN1, test_AN1 = (np.diagonal(each_ANR, axis1=1, axis2=2)[:, :, None] for each_ANR in every_ANR)
    return dev_AN1, test_AN1


def claims_of_one_seed_each(rng: np.random.Generator, scenario: str) -> list[bool]:
    """The same of settings that are run with one seed each, at the best of 4."""
    dev_AN1, test_AN1 = of_one_seed_each(rng, scenario, NUM_ARMS, NUM_SETTINGS)
    arms = compare([str(arm) for arm in range(NUM_ARMS)], dev_AN1, test_AN1, BUDGET, is_crossed=False)
    return [arm.differences[BUDGET].is_significant for arm in arms[1:]]


def claims_as_given(rng: np.random.Generator, scenario: str) -> list[bool]:
    """The same where no arm was tuned: all have one setting, that no search has chosen."""
    _, test_ANR = scores(rng, scenario, NUM_ARMS, 1, SEEDS_AFTER_SEARCH)
    return _claims(test_ANR[:, 0])


def claims_with_shared_settings(rng: np.random.Generator, scenario: str) -> list[bool]:
    """The same where all arms have the settings that one search with the first arm found."""
    # Seed 0 is that of the search. The runs after it have other seeds.
    dev_ANR, test_ANR = scores(rng, scenario, NUM_ARMS, NUM_DRAWS, 1 + SEEDS_AFTER_SEARCH)
    return _claims(test_ANR[:, int(dev_ANR[0, :, 0].argmax()), 1:])


def claims_after_one_search_each(rng: np.random.Generator, scenario: str) -> list[bool]:
    """The same where each arm has settings from a search of its own, and these are compared over seeds."""
    chosen = []
    for _ in range(NUM_ARMS):
        dev_1NR, test_1NR = scores(rng, scenario, 1, NUM_DRAWS, 1 + SEEDS_AFTER_SEARCH)
        chosen.append(test_1NR[0, int(dev_1NR[0, :, 0].argmax()), 1:])
    return _claims(np.stack(chosen))


def _claims(scores_AR: Floats) -> list[bool]:
    """Whether each arm but the first is told apart from it, over seeds."""
    first, *others = (dict(enumerate(scores_R.tolist())) for scores_R in scores_AR)
    return [each.is_significant for each in holm_of([paired_difference(arm, first) for arm in others])]


DESIGNS: Final[dict[str, Callable[[np.random.Generator, str], list[bool]]]] = {
    "as given": claims_as_given,
    "shared settings": claims_with_shared_settings,
    "settings x seeds": claims_at_equal_budget,
    "one seed a setting": claims_of_one_seed_each,
    "after one search each": claims_after_one_search_each,
}


def false_claims(num_studies: int, scenario: str, design: str, seed: int = 0) -> float:
    """The share of studies of equal arms that tell one apart from the first."""
    rng = np.random.default_rng(seed)
    return float(np.mean([any(DESIGNS[design](rng, scenario)) for _ in range(num_studies)]))


def leading_arm_found(num_studies: int, scenario: str, seed: int = 0) -> float:
    """The share of studies at equal budget that find an arm which leads by `LEAD`."""
    rng = np.random.default_rng(seed)
    return float(np.mean([claims_at_equal_budget(rng, scenario, LEAD)[-1] for _ in range(num_studies)]))


def coverage(num_studies: int, scenario: str, seed: int = 0) -> dict[str, float]:
    """The shares of studies whose interval of the score of one arm at `BUDGET` covers the expected one.

    Of settings by seeds, of one seed a setting, and of settings by seeds with the percentile bootstrap over both.
    """
    rng = np.random.default_rng(seed)
    searches = [scores(rng, scenario, 1, BUDGET, 1) for _ in range(NUM_SEARCHES)]
    of_seeds = [of_one_seed_each(rng, scenario, 1, BUDGET) for _ in range(NUM_SEARCHES)]
    crossed_score, score = (
        float(np.mean([test.flat[dev.argmax()] for dev, test in of])) for of in (searches, of_seeds)
    )
    covered = np.zeros(3)
    for _ in range(num_studies):
        dev_ANR, test_ANR = scores(rng, scenario, 1, NUM_DRAWS, NUM_SEEDS)
        (crossed,) = compare(["arm"], dev_ANR, test_ANR, BUDGET)
        (once,) = compare(["arm"], *of_one_seed_each(rng, scenario, 1, NUM_SETTINGS), BUDGET, is_crossed=False)
        of_crossed, of_once = (arm.scores[BUDGET - 1] for arm in (crossed, once))
        low, high = bootstrap(rng, dev_ANR[0], test_ANR[0])
        covered += [
            of_crossed.low <= crossed_score <= of_crossed.high,
            of_once.low <= score <= of_once.high,
            low <= crossed_score <= high,
        ]
    names = ("covered, settings x seeds", "covered, one seed a setting", "covered by the bootstrap")
    return dict(zip(names, (covered / num_studies).tolist(), strict=True))


def bootstrap(rng: np.random.Generator, dev_NR: Floats, test_NR: Floats) -> tuple[float, float]:
    """The percentiles of the estimate over resampled settings and seeds."""
    means = []
    for _ in range(NUM_RESAMPLES):
        chosen = np.ix_(rng.integers(0, NUM_DRAWS, NUM_DRAWS), rng.integers(0, NUM_SEEDS, NUM_SEEDS))
        means.append(best_of(dev_NR[chosen], test_NR[chosen], BUDGET).mean())
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def equal_budget(num_studies: int) -> Iterator[dict[str, Any]]:
    """Five equal arms with 12 settings and 5 seeds, 30 and one each, or over 10 seeds: as given, after searches."""
    for scenario in SCENARIOS:
        shares = {design: false_claims(num_studies, scenario, design) for design in DESIGNS}
        shares |= {"leading arm found": leading_arm_found(num_studies, scenario)} | coverage(num_studies, scenario)
        yield {"scenario": scenario} | {name: f"{100 * share:.1f}" for name, share in shares.items()}


RUNS: Final = ((12, 5), (24, 5), (20, 1), (30, 1), (60, 1))
"""Designs: the number of settings, and of the seeds that each is run with, another one for each setting if it is 1."""
LEADS: Final = (0.01, 0.02, 0.05)
SHIFTS: Final = {"suit all arms alike": 0.0, "mild interaction": 0.15, "strong interaction": 0.4}
"""How far the best settings of two arms lie apart, in sides of the square that settings are drawn from."""
DEPTH: Final = 0.03
"""The standard deviation of the effect of the settings."""


def landscapes(rng: np.random.Generator, shift: float, num: int, num_seeds: int) -> tuple[Floats, Floats]:
    """Dev and test scores, `_ANR`, of arms of which none is better over all settings.

    Settings are points of a square whose sides are joined, and the score falls with the squared distance from a point
    that is best for the arm: the effects of the settings are bounded and skewed, unlike those of `scores`.
    """
    best_A2 = rng.random(2) + shift * rng.normal(0, 1 / np.sqrt(2), (NUM_ARMS, 2))
    away_AN2 = (rng.random((num, 2)) - best_A2[:, None] + 0.5) % 1 - 0.5
    # The variance of the squared distance is 2 (1/80 - 1/144).
    effects_AN1 = -DEPTH * (away_AN2**2).sum(2, keepdims=True) / np.sqrt(2 * (1 / 80 - 1 / 144))
    test_ANR = 0.7 + effects_AN1 + rng.normal(0, RUN, (NUM_ARMS, num, num_seeds))
    return test_ANR + rng.normal(0, DEV, test_ANR.shape), test_ANR


def claims_by_lead(rng: np.random.Generator, shift: float, num: int, num_seeds: int) -> list[bool]:
    """Whether an arm is told apart from the first one where none leads, and whether one that leads is, by `LEADS`."""
    budget, errors_of = (num // 3, crossed_errors) if num_seeds > 1 else (4, one_seed_errors)
    dev_ANR, test_ANR = landscapes(rng, shift, num, num_seeds)
    first, *others = (pseudo_values(*each, budget) for each in zip(dev_ANR, test_ANR, strict=True))
    errors = [errors_of(other - first, budget) for other in others]
    means = np.array([float((other - first).mean()) for other in others])
    claims = []
    for lead in (0.0, *LEADS):
        # A lead that all settings share is added to each pseudo-value.
        led = means + np.array([*[0.0] * (len(means) - 1), lead])
        tested = holm_of([Difference.tested(d, num, e, math.inf) for d, e in zip(led.tolist(), errors, strict=True)])
        claims.append(tested[-1].is_ahead if lead else any(each.is_significant for each in tested))
    return claims


def of_designs(num_studies: int) -> Iterator[dict[str, Any]]:
    """False claims, and power for one arm of five that leads by 1, 2 and 5 points, at the best of 4 or of a third."""
    for num, num_seeds in RUNS:
        row: dict[str, Any] = {"design": f"{num} x {num_seeds}", "runs": NUM_ARMS * num * num_seeds}
        for name, shift in SHIFTS.items():
            rng = np.random.default_rng(0)
            claims = [claims_by_lead(rng, shift, num, num_seeds) for _ in range(num_studies)]
            false, *power = 100 * np.mean(claims, axis=0)
            row[name] = f"{false:.1f}; " + "/".join(f"{share:.0f}" for share in power)
        yield row


if __name__ == "__main__":
    import sys

    import pandas as pd

    for table in (of_designs, equal_budget):
        print(pd.DataFrame(table(int(sys.argv[1]))).to_string(index=False))
