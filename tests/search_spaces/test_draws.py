"""Draws from a search space: the same each time, and independent of how many follow."""

from __future__ import annotations

import subprocess
import sys

from search_spaces.draws import draws
from search_spaces.optimizer_tuning import optimizer_tuning


def test_draws_are_the_same_each_time_and_grow() -> None:
    """Other draws at the next call would make each resumed study another one."""
    three = draws(optimizer_tuning, 3)
    assert three == draws(optimizer_tuning, 3)
    assert list(three) == ["01", "02", "03"]
    assert list(draws(optimizer_tuning, 5).items())[:3] == list(three.items())
    assert draws(optimizer_tuning, 1, seed=1) != draws(optimizer_tuning, 1)
    assert len({values["training.lr"] for values in three.values()}) == 3


def test_draws_are_made_in_silence() -> None:
    """Optuna announces each of its studies, which would be read as the study that runs."""
    code = "from tests.search_spaces import test_draws as t; t.draws(t.optimizer_tuning, 1)"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert (made.stdout, made.stderr) == (b"", b"")
