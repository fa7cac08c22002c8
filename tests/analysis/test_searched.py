"""What a sweep searched: which settings, their values by trial, and the scale of these."""

from __future__ import annotations

import random
from typing import Any

import pytest

from analysis.searched import Scale, scale_of, settings_of
from tests.analysis.frames import sweep

RANGES: dict[str, tuple[float, float, Scale]] = {
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
        assert scale_of(values) == scale


def test_few_numbers_are_choices_where_they_occur_again() -> None:
    """Finds three trials of a learning rate drawn as choices, and choices of numbers drawn on an axis."""
    assert scale_of([16.0, 32.0, 16.0]) == scale_of(["linear", "cosine"]) == scale_of(["null", 0.5, 0.5]) == "choice"
    assert scale_of([0.1, 0.2, 0.25]) == "linear"
    assert scale_of([0.0, 1e-5, 1e-3]) == "linear", "a log scale has no 0"


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


def test_null_among_many_numbers_is_no_choice() -> None:
    """Finds an axis with a tick for each number of a range, because one trial has none."""
    frame = sweep([trial("a.x", a_x=number / 7 if number else None) for number in range(9)]).frame
    (setting,) = settings_of(frame[frame["kind"] == "trial"])
    assert setting.scale == "linear"
    assert setting.values[0] is None
