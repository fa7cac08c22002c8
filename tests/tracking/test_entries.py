"""Points are merged into fewer entries without a change of what each run stores."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dice_ray.tracking.entries import NUM_METRICS, End, MetricPoint, Open, Points, RunEntry, Tags, merge_points

KEYS = st.sampled_from(["a", "b", "c"])


def points(key: str, count: int) -> Points:
    return Points(key, tuple(MetricPoint("dev/f1", 0.5, step, 0) for step in range(count)))


ENTRIES = st.one_of(
    st.builds(points, KEYS, st.sampled_from([1, 2, NUM_METRICS // 2, NUM_METRICS - 2, NUM_METRICS])),
    st.builds(Tags, KEYS, st.dictionaries(st.text(), st.text(), max_size=2)),
    st.builds(End, KEYS, st.just("FINISHED"), st.integers(0, 9)),
    st.builds(Open, KEYS, st.just("name"), st.just({}), st.just({}), st.none(), st.just(0)),
)


def of_run(entries: list[RunEntry], key: str) -> list[object]:
    """The entries of one run, point by point."""
    sequence: list[object] = []
    for entry in entries:
        if entry.key == key:
            sequence += entry.points if isinstance(entry, Points) else [entry]
    return sequence


@settings(max_examples=50)
@given(st.lists(ENTRIES, max_size=12))
def test_merging_keeps_the_sequence_of_each_run(entries: list[RunEntry]) -> None:
    merged = merge_points(entries)
    assert len(merged) <= len(entries)
    assert all(len(entry.points) <= NUM_METRICS for entry in merged if isinstance(entry, Points))
    for key in ("a", "b", "c"):
        assert of_run(merged, key) == of_run(entries, key)


def test_points_of_many_runs_make_one_call_a_run() -> None:
    merged = merge_points([points(key, 10) for _ in range(20) for key in ("a", "b")])
    assert [(entry.key, len(entry.points)) for entry in merged if isinstance(entry, Points)] == [
        ("a", 200),
        ("b", 200),
    ]
