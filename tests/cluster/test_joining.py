"""A machine that joins while trials end more often than an actor takes to start: docs/clusters.md says what it gets."""

from __future__ import annotations

import pytest

from tests.cluster.joining import seconds_to_first_trial


@pytest.mark.ray
@pytest.mark.slow
def test_a_machine_that_joins_gets_a_trial_however_often_trials_end() -> None:
    """Finds a new machine on which one actor after the other starts, and is dropped for one that is free elsewhere."""
    seconds, num_begun, num_starts = seconds_to_first_trial(10, 1, patience=90)
    assert seconds is not None, f"none, while {num_begun} trials began and {num_starts} actors started"
    assert num_starts == 1
