"""The level that importance reaches by chance, corrected over the parameters of a sweep, by simulation."""

from __future__ import annotations

import numpy as np

from analysis.importance import NUM_SHUFFLES, Shuffled, by_chance


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
