"""Entries join into fewer calls, and come back from their lines."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dice_ray.tracking.entries import NUM_METRICS, End, Entry, Open, Point, Points, Tags, joined

KEYS = st.sampled_from(["a", "b", "c"])


def points(key: str, count: int) -> Points:
    return Points(key, tuple(Point("dev/f1", 0.5, step, 0) for step in range(count)))


ENTRIES = st.one_of(
    st.builds(points, KEYS, st.sampled_from([1, 2, NUM_METRICS // 2, NUM_METRICS - 2, NUM_METRICS])),
    st.builds(Tags, KEYS, st.dictionaries(st.text(), st.text(), max_size=2)),
    st.builds(End, KEYS, st.just("FINISHED"), st.integers(0, 9)),
    st.builds(Open, KEYS, st.just("name"), st.just({}), st.just({}), st.none(), st.just(0)),
)


def told(entries: list[Entry], key: str) -> list[object]:
    """What one run is told, point by point."""
    said: list[object] = []
    for entry in entries:
        if entry.key == key:
            said += entry.points if isinstance(entry, Points) else [entry]
    return said


@settings(max_examples=50, deadline=None)
@given(st.lists(ENTRIES, max_size=12))
def test_each_run_is_told_the_same_in_the_same_order(entries: list[Entry]) -> None:
    together = joined(entries)
    assert len(together) <= len(entries)
    assert all(len(entry.points) <= NUM_METRICS for entry in together if isinstance(entry, Points))
    for key in ("a", "b", "c"):
        assert told(together, key) == told(entries, key)


def test_points_of_many_runs_make_one_call_a_run() -> None:
    together = joined([points(key, 10) for _ in range(20) for key in ("a", "b")])
    assert [(entry.key, len(entry.points)) for entry in together if isinstance(entry, Points)] == [
        ("a", 200),
        ("b", 200),
    ]
