"""Labels in the names of metrics."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mlflow.utils.validation import _validate_metric

from dice_ray.metrics.names import LONGEST, label_of_metric, metric_name_part


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30))
@example("Shipping & returns")
@example("a/../b")
@example(":colon: x26")
@example("tuned")
@example("\n\u0301\U0001f600")
def test_a_label_is_read_back_from_a_name_that_mlflow_allows(label: str) -> None:
    """`f1_Shipping x26 returns` could not be read, nor told apart from the label `Shipping x26 returns`."""
    part = metric_name_part(label)
    _validate_metric(f"dev/best_f1_{part}", 0.5, 0, 0, "")
    assert len(part) > LONGEST - 20 or label_of_metric(part) == label
    assert part != "tuned", "f1_tuned is the F1 at the tuned threshold"


@pytest.mark.parametrize("letter", ["a", "&"])
def test_long_labels_are_cut_and_stay_different(letter: str) -> None:
    labels = [1000 * letter + end for end in ("x", "y")]
    parts = [metric_name_part(label) for label in labels]
    assert len(set(parts)) == 2
    for label, part in zip(labels, parts, strict=True):
        assert len(part) <= LONGEST
        assert label_of_metric(part) != label
