"""Which arm is the best one, and whether it wins."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analysis.statistics.best_arm import TUNED, ArmScores, best_arm


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
    assert best.difference.interval.num == 2
    assert best_arm([ArmScores("focal", {7: 0.9, 8: 0.9}, {}), rows["dice"]]) is None


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
    apart = best_arm([row("plain", 0.7, range(10)), row("dice", 0.8, range(10)), row("easy", 0.9, range(10, 20))])
    assert apart is not None
    assert (apart.name, apart.runner_up, apart.wins) == ("dice", "plain", False)


def test_who_is_told_apart_below_another_is_no_winner() -> None:
    one, two, three = range(6), range(10, 16), range(20, 26)
    plain, dice, focal = row("plain", 0.8, one), row("dice", 0.7, one), row("focal", 0.6, two)
    circle = [
        ArmScores("plain", {**plain.scores, **row("", 0.6, three).scores}, {}),
        ArmScores("dice", {**dice.scores, **row("", 0.8, two).scores}, {}),
        ArmScores("focal", {**focal.scores, **row("", 0.7, three).scores}, {}),
    ]
    best = best_arm(circle)
    assert best is not None
    assert best.difference.interval.mean < 0
    assert not best.wins


@pytest.mark.parametrize(("num_best", "jitter"), [(2, None), (6, None), (2, 0.0), (6, 0.01)])
def test_arms_that_are_equally_good_seldom_win(num_best: int, jitter: float | None) -> None:
    """Of 500 studies of six arms, of which so many are the best: one of these must not win, read twice or once."""
    rng, winners = np.random.default_rng(4), 0
    for _ in range(500):
        means = [0.7] * num_best + [0.5] * (6 - num_best)
        scores = [dict(enumerate(rng.normal(mean, 0.02, 10).tolist())) for mean in means]
        table = [ArmScores(f"arm {number}", of_arm, {}) for number, of_arm in enumerate(scores)]
        if jitter is not None:
            table += [
                ArmScores(row.name + TUNED, {seed: rng.normal(score, jitter) for seed, score in row.scores.items()}, {})
                for row in table
            ]
        best = best_arm(table)
        assert best is not None
        winners += best.wins
    assert winners / 500 <= 0.062
