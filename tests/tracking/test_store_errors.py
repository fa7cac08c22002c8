"""Errors of the store, and those of this program."""

from __future__ import annotations

import pytest

from dice_ray.tracking.entries import merge_points
from dice_ray.tracking.store import is_store_error


def test_python_errors_belong_to_the_module_that_raised_them() -> None:
    with pytest.raises(ValueError, match="invalid literal") as of_a_client:
        int("no number")
    assert is_store_error(of_a_client.value)
    with pytest.raises(AttributeError) as of_ours:
        merge_points([None])  # type: ignore[list-item]
    assert not is_store_error(of_ours.value)
