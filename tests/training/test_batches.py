"""Steps: every row once an epoch, the same rows for any number of workers."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dice_ray.training.batches import _POOL, Sampling, Steps, micro_batches, num_padded, num_steps


@given(
    lengths=st.lists(st.integers(1, 50), min_size=1, max_size=120),
    batch_size=st.integers(1, 40),
    epochs=st.integers(1, 4),
    seed=st.integers(0, 5),
)
def test_every_row_is_seen_once_an_epoch(lengths: list[int], batch_size: int, epochs: int, seed: int) -> None:
    num_rows = len(lengths)
    steps = Steps(lengths, batch_size, seed)
    rows = [steps.rows(step) for step in range(-(-num_rows * epochs // batch_size))]
    assert {len(each) for each in rows} == {batch_size}
    seen = [row for each in rows for row in each]
    for epoch in range(epochs):
        assert sorted(seen[epoch * num_rows : (epoch + 1) * num_rows]) == list(range(num_rows))
    assert Steps(lengths, batch_size, seed).rows(len(rows) - 1) == rows[-1], "a step depends on no step before it"


def test_epochs_and_seeds_differ_in_order() -> None:
    steps, other = Steps([1] * 50, 50, seed=1), Steps([1] * 50, 50, seed=2)
    assert steps.rows(0) != steps.rows(1)
    assert steps.rows(0) != other.rows(0)


@given(
    weights=st.lists(st.sampled_from([1.0, 2.0, 2.5, 9.25]), min_size=1, max_size=60),
    batch_size=st.integers(1, 40),
    seed=st.integers(0, 5),
)
def test_a_pass_holds_each_row_as_often_as_its_weight(weights: list[float], batch_size: int, seed: int) -> None:
    steps = Steps([1] * len(weights), batch_size, seed, weights)
    size = sum(map(int, weights)) + round(sum(weight % 1 for weight in weights))
    seen = [row for step in range(-(-2 * size // batch_size)) for row in steps.rows(step)]
    for start in (0, size):
        counts = Counter(seen[start : start + size])
        assert all(counts[row] in (int(weight), int(weight) + bool(weight % 1)) for row, weight in enumerate(weights))
        assert counts.total() == size


def test_no_weights_are_equal_weights() -> None:
    lengths = [row % 7 + 1 for row in range(100)]
    plain, weighted = Steps(lengths, 8, 1), Steps(lengths, 8, 1, [1.0] * 100)
    assert [plain.rows(step) for step in range(30)] == [weighted.rows(step) for step in range(30)]
    assert plain.rows(0) == [23, 9, 79, 58, 86, 51, 37, 30], "the draws of earlier results"


@given(
    positives=st.lists(st.booleans(), min_size=2, max_size=60).filter(lambda rows: 0 < sum(rows) < len(rows)),
    batch_size=st.integers(2, 40),
    share=st.floats(0.01, 0.99),
    seed=st.integers(0, 5),
)
def test_each_step_holds_the_share_of_positives_and_each_class_is_drawn_in_passes(
    positives: list[bool], batch_size: int, share: float, seed: int
) -> None:
    """Finds steps whose share differs, as by independent draws, and a class of which a row is drawn twice in a pass."""
    steps = Sampling(len(positives), None, positives, share).steps([1] * len(positives), batch_size, seed)
    rows = [steps.rows(step) for step in range(12)]
    num = min(max(round(share * batch_size), 1), batch_size - 1)
    assert {(len(each), sum(positives[row] for row in each)) for each in rows} == {(batch_size, num)}
    for is_positive in (True, False):
        size = positives.count(is_positive)
        seen = [row for each in rows for row in each if positives[row] == is_positive]
        for start in range(0, len(seen) - size + 1, size):
            assert len(set(seen[start : start + size])) == size
    again = Sampling(len(positives), None, positives, share).steps([1] * len(positives), batch_size, seed)
    assert again.rows(11) == rows[11], "a step depends on no step before it, so a resumed run takes the same"


def test_a_single_row_is_no_share() -> None:
    """Finds a division by zero in a rehearsal, whose batch is that of one worker."""
    steps = Sampling(3, None, [True, False, False], 0.5).steps([1] * 3, 1, 1)
    assert sorted(steps.rows(step)[0] for step in range(2)) == [1, 2]


def test_weights_below_one_draw_other_rows_in_each_pass() -> None:
    """Finds negatives that are left out once for all."""
    steps = Sampling(10, [1.0] * 5 + [0.1] * 50).steps([1] * 55, 10, seed=1)
    drawn = [steps.rows(step) for step in range(20)]
    assert all(set(range(5)) < set(each) and len(set(each)) == 10 for each in drawn)
    assert len({row for each in drawn for row in each}) > 40


def test_the_log_odds_ratio_is_that_of_the_rows_drawn() -> None:
    rare = [True] + [False] * 9
    assert Sampling(10, None, rare).log_odds_ratio(4) == 0
    assert Sampling(10, [9.0] + [1.0] * 9, rare).log_odds_ratio(4) == pytest.approx(math.log(9))
    assert Sampling(10, None, rare, 0.3).log_odds_ratio(4) == pytest.approx(math.log(9 / 3)), "1 of 4"


def test_rows_of_similar_length_share_a_step_and_steps_are_shuffled() -> None:
    lengths = [row % 40 + 1 for row in range(10 * _POOL)]
    steps = Steps(lengths, 10, seed=3)
    longest = [max(lengths[row] for row in steps.rows(step)) for step in range(_POOL)]
    tokens = sum(sum(lengths[row] for row in steps.rows(step)) for step in range(_POOL))
    assert tokens / sum(10 * length for length in longest) > 0.9  # .54 where they are only shuffled
    assert longest != sorted(longest)
    assert longest != sorted(longest, reverse=True)


@given(
    lengths=st.lists(st.integers(1, 50), min_size=8, max_size=60),
    max_tokens=st.integers(1, 400),
    num_workers=st.integers(1, 8),
)
def test_a_step_is_cut_into_shares_of_micro_batches(lengths: list[int], max_tokens: int, num_workers: int) -> None:
    shares = micro_batches(range(len(lengths)), lengths, max_tokens, num_workers)
    every = [each for share in shares for each in share]
    assert Counter(row for each in every for row in each) == Counter(range(len(lengths)))
    assert all(num_padded(each, lengths) <= max_tokens or len(each) == 1 for each in every)
    sizes = [sum(map(len, share)) for share in shares]
    assert max(sizes) - min(sizes) <= 1
    for share in shares:
        in_order = [lengths[row] for each in share for row in each]
        assert in_order == sorted(in_order, reverse=True)
    assert micro_batches(range(len(lengths)), lengths, 10**9, 1)[0][0][0] == lengths.index(max(lengths))


def test_the_number_of_steps() -> None:
    assert num_steps(100, 1, 10) == 10
    assert num_steps(100, 0.5, 10) == 5
    assert num_steps(105, 2, 10) == 21
    assert num_steps(3, 1, 10) == 1
