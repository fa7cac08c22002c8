"""Labels in the names of metrics."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mlflow.utils.validation import _validate_metric

from dice_ray.metrics.names import LONGEST, metric_name_part


def label_of(part: str) -> str:
    """The label of a part that was not cut: where it can be read back, no two labels have the same part."""
    return re.sub(r":([^:]+):", lambda match: _character(match[1]), part)


def _character(name: str) -> str:
    return chr(int(name[1:], 16)) if re.fullmatch(r"x[0-9a-f]+", name) else unicodedata.lookup(name)


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
    assert len(part) > LONGEST - 20 or label_of(part) == label
    assert part != "tuned", "f1_tuned is the F1 at the tuned threshold"


@pytest.mark.parametrize("letter", ["a", "&"])
def test_long_labels_are_cut_and_stay_different(letter: str) -> None:
    labels = [1000 * letter + end for end in ("x", "y")]
    parts = [metric_name_part(label) for label in labels]
    assert len(set(parts)) == 2
    assert max(map(len, parts)) <= LONGEST
