"""The records of a sweep's figures: the best so far, and importance by loss."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from analysis.figures.sweep import _BestSoFar, _Importance, best_so_far, importance
from analysis.sweep import LEAST_TRIALS, importances
from tests.analysis.frames import study, sweep


def trial(loss: str | None, score: float | None, **columns: Any) -> dict[str, Any]:
    return {"params.loss": loss, "metrics.dev/best_f1": score, "metrics.dev/constant_f1": 0.2, **columns}


def test_the_best_so_far_never_falls_and_a_trial_without_a_score_keeps_its_place() -> None:
    trials = [trial("dice", 0.3), trial("focal", None), trial("focal", 0.6, state="pruned"), trial("dice", 0.5)]
    (figure,) = best_so_far(sweep(trials))
    assert isinstance(figure, _BestSoFar)
    assert [each.number for each in figure.trials] == [1, 3, 4]
    assert figure.best == (0.3, 0.6, 0.6)
    assert [each.state for each in figure.trials] == ["done", "pruned", "done"]
    assert figure.constant == pytest.approx(0.2)
    assert [*best_so_far(sweep([trial("dice", None)]))] == []
    assert [*best_so_far(study([{"arm": "plain", "seed": 1}]))] == []


def searched(num: int) -> list[dict[str, Any]]:
    """Trials whose score only `gamma` decides: the nearer to .2, the better; `noise` does nothing."""
    draw = random.Random(1)
    trials = []
    for _ in range(num):
        gamma, noise = draw.random(), draw.random()
        values = {"params.loss.dice.gamma": gamma, "params.loss.dice.noise": noise, "params.loss.dice.same": 1.0}
        paths = "loss loss.dice.gamma loss.dice.noise loss.dice.same"
        trials.append(trial("dice", 1 - abs(gamma - 0.2), **values, **{"tags.searched": paths}))
    return trials


def test_what_decides_passes_chance_and_what_does_nothing_does_not() -> None:
    few = [
        trial("focal", 0.5, **{"params.loss.focal.gamma": gamma, "tags.searched": "loss loss.focal.gamma"})
        for gamma in (1, 2)
    ]
    (branch,), left_out = importances(sweep([*searched(60), *few]).frame)
    assert (branch.loss, branch.num_trials, left_out) == ("dice", 60, {"focal": 2})
    gamma, noise = branch.parameters
    assert (gamma.path, noise.path) == ("loss.dice.gamma", "loss.dice.noise")
    assert gamma.importance > 2 * gamma.by_chance
    assert noise.importance < noise.by_chance


def test_the_high_scores_are_the_good_ones() -> None:
    """The best quarter has one value alone; the worst has both, as all trials together."""
    values = ["x"] * 8 + ["y"] * 14 + ["x", "y"] * 4
    trials = [
        trial("dice", 0.9 - number / 100, **{"params.a": value, "tags.searched": "loss a"})
        for number, value in enumerate(values)
    ]
    ((best,),) = [branch.parameters for branch in importances(sweep(trials).frame)[0]]
    assert best.importance > best.by_chance
    turned = [each | {"metrics.dev/best_f1": 1 - each["metrics.dev/best_f1"]} for each in trials]
    ((worst,),) = [branch.parameters for branch in importances(sweep(turned).frame)[0]]
    assert worst.importance < worst.by_chance


def test_too_few_trials_say_nothing() -> None:
    assert importances(sweep(searched(LEAST_TRIALS - 1)).frame) == ([], {"dice": LEAST_TRIALS - 1})
    assert [*importance(sweep(searched(LEAST_TRIALS - 1)))] == []
    (figure,) = importance(sweep([*searched(LEAST_TRIALS), trial("focal", 0.4)]))
    assert isinstance(figure, _Importance)
    assert "Left out, with fewer than 20 scored trials: focal (1)." in figure.caption
    assert not any(math.isnan(each.importance) for each in figure.branches[0].parameters)
