"""Steps: every row once an epoch, the same rows for any number of workers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dice_ray.training.batches import num_steps, step_rows


@given(num_rows=st.integers(1, 60), batch_size=st.integers(1, 40), epochs=st.integers(1, 4), seed=st.integers(0, 5))
def test_every_row_is_seen_once_an_epoch(num_rows: int, batch_size: int, epochs: int, seed: int) -> None:
    steps = -(-num_rows * epochs // batch_size)
    seen = [row for step in range(steps) for row in step_rows(step, num_rows, batch_size, seed)]
    assert len(seen) == steps * batch_size
    for epoch in range(epochs):
        assert sorted(seen[epoch * num_rows : (epoch + 1) * num_rows]) == list(range(num_rows))


def test_epochs_and_seeds_differ_in_order() -> None:
    first, second = (step_rows(step, 50, 50, seed=1) for step in (0, 1))
    assert first != second
    assert first != step_rows(0, 50, 50, seed=2)
    assert first == step_rows(0, 50, 50, seed=1)


def test_the_number_of_steps() -> None:
    assert num_steps(100, 1, 10) == 10
    assert num_steps(100, 0.5, 10) == 5
    assert num_steps(105, 2, 10) == 21
    assert num_steps(3, 1, 10) == 1
