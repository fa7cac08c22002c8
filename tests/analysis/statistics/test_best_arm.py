"""Which arm is the best one, and whether it wins."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analysis.statistics.best_arm import ArmScores, best_arm


def test_an_arm_that_ran_on_easy_seeds_alone_is_not_best_by_that() -> None:
    scores = {
        "cross_entropy": [0.80, 0.81, 0.50, 0.10],
        "focal": [0.79, 0.80, math.nan, math.nan],
        "dice": [0.81, 0.82, 0.70, 0.60],
    }
    rows = {
        name: ArmScores(name, {s: v for s, v in enumerate(of) if not math.isnan(v)}, {}) for name, of in scores.items()
    }
    best = best_arm([*rows.values()])
    assert best is not None
    assert (best.name, best.runner_up) == ("dice", "focal")
    assert best.lead.interval.num == 2
    assert best_arm([rows["dice"]]) is None


def row(name: str, mean: float, *parts: range) -> ArmScores:
    """An arm that scores about the same on all of these seeds."""
    return ArmScores(
        name, {seed: mean + seed % 3 / 1000 + seed % 2 * mean / 500 for part in parts for seed in part}, {}
    )


def test_who_shares_too_few_seeds_is_no_winner() -> None:
    wins = best_arm([row("plain", 0.7, range(10)), row("dice", 0.8, range(10)), row("focal", 0.6, range(10))])
    assert wins is not None
    assert (wins.name, wins.wins) == ("dice", True)
    few = best_arm([row("plain", 0.7, range(10)), row("dice", 0.8, range(10)), row("focal", 0.6, range(8, 12))])
    assert few is not None
    assert (few.name, few.wins) == ("dice", False)


@pytest.mark.parametrize("num_best", [2, 6])
def test_arms_that_are_equally_good_seldom_win(num_best: int) -> None:
    """Of 500 studies of six arms, of which so many are the best, in at most 5 % one of these wins."""
    rng, winners = np.random.default_rng(4), 0
    for _ in range(500):
        means = [0.7] * num_best + [0.5] * (6 - num_best)
        scores = [dict(enumerate(rng.normal(mean, 0.02, 10).tolist())) for mean in means]
        best = best_arm([ArmScores(f"arm {number}", of_arm, {}) for number, of_arm in enumerate(scores)])
        assert best is not None
        winners += best.wins
    assert winners / 500 <= 0.062
