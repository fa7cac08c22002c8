"""The level that importance reaches by chance, corrected over the parameters of a sweep, by simulation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from analysis.importance import NUM_SHUFFLES, Parameter, Shuffled, by_chance, importances
from tests.analysis.frames import sweep


def noise(rng: np.random.Generator, loss: str, freedom: list[float]) -> Shuffled:
    """The importances of parameters without effect are drawn as those of shuffled scores, on scales of their own."""
    drawn_SP = rng.chisquare(freedom, (1 + NUM_SHUFFLES, len(freedom)))
    names = [f"loss.{loss}.{number}" for number in range(len(freedom))]
    return Shuffled(loss, 20, dict(zip(names, drawn_SP[0].tolist(), strict=True)), drawn_SP[1:])


def test_five_percent_of_sweeps_of_noise_name_an_important_parameter() -> None:
    """By the quantile of each parameter alone, a third of sweeps with eight parameters name one."""
    rng, named, named_alone, num_sweeps = np.random.default_rng(0), 0, 0, 1000
    for _ in range(num_sweeps):
        sweep = [noise(rng, "dice", [1, 2, 5, 9]), noise(rng, "focal", [1, 1, 3, 20])]
        named += any(each.importance > each.by_chance for branch in by_chance(sweep) for each in branch.parameters)
        named_alone += any(
            importance > np.quantile(branch.shuffled_SP[:, number], 0.95)
            for branch in sweep
            for number, importance in enumerate(branch.importance.values())
        )
    assert 0.03 <= named / num_sweeps <= 0.07
    assert named_alone / num_sweeps > 0.25


def test_a_parameter_is_compared_with_its_own_chance() -> None:
    """Half of the largest importance of the sweep is far above chance for a parameter with few choices."""
    rng = np.random.default_rng(1)
    few, many = noise(rng, "dice", [1]), noise(rng, "focal", [100])
    of_few, of_many = (branch.parameters[0].by_chance for branch in by_chance([few, many]))
    assert 3 < of_few < 12
    assert 120 < of_many < 400


def test_without_a_loss_there_is_no_level() -> None:
    assert by_chance([]) == []


def of_patience(choices: Sequence[float | None]) -> tuple[Parameter, ...]:
    """The importance of a setting in a sweep, in which its first choice is better than the others."""
    searched = {"tags.loss": "focal", "tags.searched": "loss training.patience training.lr"}
    trials = [
        {"metrics.dev/f1": 0.5 + 0.1 * (number % len(choices) == 0) + 0.002 * (number * 7 % 11)}
        | {"params.training.patience": choices[number % len(choices)], "params.training.lr": 0.01 / (number + 1)}
        | searched
        for number in range(24)
    ]
    (branch,), _ = importances(sweep(trials).frame)
    return branch.parameters


@pytest.mark.parametrize("others", [(2.0, 3.0), (2.0,)])
def test_null_is_one_choice_of_a_setting(others: tuple[float, ...]) -> None:
    """The null of each trial was a choice of its own, and a setting of null and one value had no importance."""
    with_null, with_number = of_patience((None, *others)), of_patience((9.0, *others))
    assert {each.path for each in with_null} == {"training.patience", "training.lr"}
    assert with_null == with_number
