"""Every published row lies within every shipped space that searches its loss."""

from __future__ import annotations

import pytest

from dice_ray.api import library
from dice_ray.tuning.space import Space, points
from search_spaces.published import PUBLISHED

ROWS = [(preset, number) for preset, rows in PUBLISHED.items() for number in range(len(rows))]


@pytest.mark.parametrize(("preset", "number"), ROWS)
@pytest.mark.parametrize("space", ["loss_tuning", "joint_tuning"])
def test_a_row_loses_only_what_the_space_does_not_search(preset: str, number: int, space: str) -> None:
    row = PUBLISHED[preset][number]
    ((params, left_out),) = points([row], Space(library.space_address(space)))
    assert params | left_out == row
    assert params["loss"] == row["loss"]
    loss = {path for path in row if path.startswith("loss")}
    never = {"training.epochs", "loss.self_adjusting_dice.classes", "mining.ratio"}
    assert loss - never <= params.keys()
    if row["loss"] == "self_adjusting_dice":
        assert "mining.ratio" in params
    if space == "joint_tuning":
        assert left_out.keys() <= never


def test_the_rows_of_the_authors_scripts_are_all_here() -> None:
    assert len(ROWS) == 21
