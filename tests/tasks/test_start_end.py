"""What rows keep for thresholds below the untuned one, and the pair that dev chooses."""

from __future__ import annotations

import numpy as np
import torch

from dice_ray.tasks.start_end import END_K1, LOWEST_THRESHOLD, START_K1, UNTUNED, fitted, kept


def test_the_untuned_pair_is_the_first_and_none_is_below_the_lowest() -> None:
    assert (START_K1[0, 0], END_K1[0, 0]) == (UNTUNED["start"], UNTUNED["end"])
    assert min(START_K1.min(), END_K1.min()) == LOWEST_THRESHOLD
    assert len({*zip(START_K1[:, 0], END_K1[:, 0], strict=True)}) == len(START_K1)


def test_a_row_keeps_what_is_predicted_and_the_sixteen_likeliest_of_the_rest() -> None:
    """Finds a row of a new head, which would keep nearly everything, and a prediction that is lost to the bound."""
    p_BX = torch.linspace(0.4, 0.6, 40, dtype=torch.float64).flip(0)[None]
    likely_BX, untuned_BX = p_BX > 0.41, p_BX > 0.5
    found = kept(likely_BX, untuned_BX, p_BX)[0].nonzero()[:, 0].tolist()
    assert found == list(range(20 + 16)), "twenty are predicted"
    assert not kept(likely_BX & False, untuned_BX & False, p_BX).any()


def test_the_pair_with_the_highest_f1_is_fitted() -> None:
    pair = int(np.flatnonzero((START_K1[:, 0] == 0.2) & (END_K1[:, 0] == 0.35))[0])
    wrong, right = (0, 1, 1), (1, 0, 0)
    counts = np.tile(np.array(wrong), (len(START_K1), 1))
    counts[pair] = right
    decision = fitted([counts] * 20, None)
    assert decision.tuned == {"start": 0.2, "end": 0.35}
    assert decision.is_used
    assert (decision.on_dev, decision.support) == (1.0, 20)
