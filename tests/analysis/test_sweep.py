"""The level that importance reaches by chance, corrected over the parameters of a sweep, by simulation."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.sweep import _NUM_SHUFFLES, _by_chance, _Parameter, _Scale, _scale_of, importances, settings_of
from tests.analysis.experiments import experiments
from tests.analysis.frames import sweep


def noise(rng: np.random.Generator, loss: str, freedom: list[float]) -> pd.DataFrame:
    """The importances of parameters without effect are drawn as those of shuffled scores, on scales of their own."""
    drawn_SP = rng.chisquare(freedom, (1 + _NUM_SHUFFLES, len(freedom)))
    names = [f"loss.{loss}.{number}" for number in range(len(freedom))]
    return pd.DataFrame(drawn_SP, columns=names)


def test_five_percent_of_sweeps_of_noise_name_an_important_parameter() -> None:
    """By the quantile of each parameter alone, a third of sweeps with eight parameters name one."""
    rng, named, named_alone, num_sweeps = np.random.default_rng(0), 0, 0, 1000
    for _ in range(num_sweeps):
        sweep = {"dice": noise(rng, "dice", [1, 2, 5, 9]), "focal": noise(rng, "focal", [1, 1, 3, 20])}
        named += any(each.importance > each.by_chance for found in _by_chance(sweep).values() for each in found)
        named_alone += any((each.iloc[0] > each.iloc[1:].quantile(0.95)).any() for each in sweep.values())
    assert 0.03 <= named / num_sweeps <= 0.07
    assert named_alone / num_sweeps > 0.25


def test_a_parameter_is_compared_with_its_own_chance() -> None:
    """Half of the largest importance of the sweep is far above chance for a parameter with few choices."""
    rng = np.random.default_rng(1)
    sweep = {"few": noise(rng, "dice", [1]), "many": noise(rng, "focal", [100])}
    of_few, of_many = (found[0].by_chance for found in _by_chance(sweep).values())
    assert 3 < of_few < 12
    assert 120 < of_many < 400


def test_without_a_loss_there_is_no_level() -> None:
    assert _by_chance({}) == {}


def of_patience(choices: Sequence[float | None]) -> tuple[_Parameter, ...]:
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


RANGES: dict[str, tuple[float, float, _Scale]] = {
    "dropout": (0.0, 0.3, "linear"),
    "weight decay": (0.0, 0.1, "linear"),
    "alpha": (0.1, 0.9, "linear"),
    "wide": (1.0, 100.0, "linear"),
    "lr": (5e-6, 2e-3, "log"),
    "smoothing": (1e-4, 10.0, "log"),
    "batch size": (8.0, 288.0, "log"),
}


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("num", [100, 400])
def test_the_scale_of_many_values_is_that_of_their_draw(name: str, num: int) -> None:
    """Finds a rule by the ratio of the ends alone, which takes many values drawn from 0 to 1 for a log scale."""
    low, high, scale = RANGES[name]
    for seed in range(20):
        draw = random.Random(seed)
        shares = [draw.random() for _ in range(num)]
        values = [low * (high / low) ** share if scale == "log" else low + share * (high - low) for share in shares]
        assert _scale_of(values) == scale


def test_few_numbers_are_choices_where_they_occur_again() -> None:
    """Finds three trials of a learning rate drawn as choices, and choices of numbers drawn on an axis."""
    assert _scale_of([16.0, 32.0, 16.0]) == _scale_of(["linear", "cosine"]) == _scale_of(["null", 0.5, 0.5]) == "choice"
    assert _scale_of([0.1, 0.2, 0.25]) == "linear"
    assert _scale_of([0.0, 1e-5, 1e-3]) == "linear", "a log scale has no 0"


def trial(searched: str, **params: Any) -> dict[str, Any]:
    return {"tags.searched": searched} | {f"params.{path.replace('_', '.')}": value for path, value in params.items()}


def test_a_setting_has_no_value_in_trials_that_did_not_search_it() -> None:
    """Finds the default of a setting taken for a searched value, and a searched `null` taken for none."""
    trials = [
        trial("loss a.x m.r", loss="b", loss_b_x=9.0, a_x=0.5, m_r=3.0, c="same"),
        trial("loss loss.b.x a.x m.r c", loss="b", loss_b_x=1.0, a_x=0.25, c="same"),
        trial("loss loss.b.x", loss="b", loss_b_x=2.0, a_x=0.75, m_r=3.0, c="same"),
    ]
    frame = sweep(trials).frame
    found = settings_of(frame[frame["kind"] == "trial"])
    assert [(setting.path, setting.values) for setting in found] == [
        ("loss.b.x", (None, 1.0, 2.0)),
        ("a.x", (0.5, 0.25, None)),
        ("m.r", (3.0, "null", None)),
    ]
    assert found[2].choices == (3.0, "null")


def test_a_search_for_several_objectives_has_no_importance() -> None:
    """Finds what decides a metric that need not have been searched for."""
    found = experiments()
    assert importances(found["sweep"].frame)[0]
    assert importances(found["objectives"].frame) == ([], {})


def test_null_among_many_numbers_is_no_choice() -> None:
    """Finds an axis with a tick for each number of a range, because one trial has none."""
    frame = sweep([trial("a.x", a_x=number / 7 if number else None) for number in range(9)]).frame
    (setting,) = settings_of(frame[frame["kind"] == "trial"])
    assert setting.scale == "linear"
    assert setting.values[0] is None
