"""How often rows are drawn: by hand, for each way to draw them."""

from __future__ import annotations

import pytest

from dice_ray.data.sampling import BalancedConfig, EachEpochConfig, FactorConfig, NoneConfig
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


def test_an_epoch_keeps_all_positives_and_a_share_of_the_negatives() -> None:
    """Finds positives that are left out, and epochs without a change: too few negatives, or no positives."""
    assert EachEpochConfig().weights(RARE) == [1, 0.25, 0.25, 0.25, 0.25]
    assert EachEpochConfig(negatives=3).weights(RARE) == [1, 0.75, 0.75, 0.75, 0.75]
    for config, rows in (
        (EachEpochConfig(negatives=4), RARE),
        (EachEpochConfig(), [True] * 3),
        (EachEpochConfig(), [False]),
    ):
        with pytest.raises(DataError, match=r"each_epoch must leave out negatives: . for each of . positives are"):
            config.weights(rows)


@pytest.mark.parametrize("negatives", [0.5, 1, 3, 8])
def test_the_control_has_epochs_of_the_same_size(negatives: float) -> None:
    """Finds a control with more steps than what it is compared with."""
    rare = [True] * 7 + [False] * 60
    dropped, control = (
        EachEpochConfig(negatives=negatives, drops=drops).weights(rare) for drops in ("negatives", "any")
    )
    assert sum(control) == pytest.approx(round(sum(dropped)))
    assert len(set(control)) == 1
