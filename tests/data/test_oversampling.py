"""Oversampling: how often each record is drawn."""

from __future__ import annotations

import pytest

from dice_ray.data.oversampling import BalancedConfig, FactorConfig, NoneConfig
from dice_ray.errors import DataError

RARE = [True, False, False, False, False]


def test_balanced_draws_both_classes_as_often_whichever_is_rarer() -> None:
    assert BalancedConfig().weights(RARE) == [4, 1, 1, 1, 1]
    assert BalancedConfig().weights([not one for one in RARE]) == [4, 1, 1, 1, 1]


def test_a_factor_is_that_of_positives() -> None:
    assert FactorConfig(times=2.5).weights(RARE) == [2.5, 1, 1, 1, 1]
    assert NoneConfig().weights(RARE) == [1] * 5


def test_nothing_is_balanced_without_positives() -> None:
    with pytest.raises(DataError, match="needs positives in the training split, got none in 3"):
        BalancedConfig().weights([False] * 3)
