"""Span scores against the algorithm of conlleval, and by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dice_ray.metrics.classification import Counts, ItemCounts
from dice_ray.metrics.spans import span_counts, span_item, span_scores, spans_of, sum_counts

TAGS = ["O", "B-A", "I-A", "B-B", "I-B"]


def conlleval(gold: list[str], predicted: list[str]) -> tuple[int, int, int]:
    """Correct, predicted and gold chunks, counted word by word as in the Perl script."""

    def starts(before: str, tag: str) -> bool:
        return tag[0] == "B" or (tag[0] == "I" and (before == "O" or before[2:] != tag[2:]))

    def ends(before: str, tag: str) -> bool:
        return before != "O" and (tag[0] in "BO" or before[2:] != tag[2:])

    right = found = wanted = 0
    inside = False
    before_gold = before_found = "O"
    for tag_gold, tag_found in [*zip(gold, predicted, strict=True), ("O", "O")]:
        if inside:
            end_gold, end_found = ends(before_gold, tag_gold), ends(before_found, tag_found)
            if end_gold and end_found and before_gold[2:] == before_found[2:]:
                inside = False
                right += 1
            elif end_gold != end_found or tag_gold[2:] != tag_found[2:]:
                inside = False
        start_gold, start_found = starts(before_gold, tag_gold), starts(before_found, tag_found)
        if start_gold and start_found and tag_gold[2:] == tag_found[2:]:
            inside = True
        wanted += start_gold
        found += start_found
        before_gold, before_found = tag_gold, tag_found
    return right, found, wanted


@given(st.lists(st.tuples(st.sampled_from(TAGS), st.sampled_from(TAGS)), max_size=12))
def test_counts_are_those_of_conlleval(pairs: list[tuple[str, str]]) -> None:
    gold, predicted = [first for first, _ in pairs], [second for _, second in pairs]
    item = span_item("1", span_counts(spans_of(gold), spans_of(predicted)))
    right, found, wanted = conlleval(gold, predicted)
    assert item == ItemCounts(right, found - right, wanted - right, "1")


def test_scores_by_hand_over_two_texts_and_nested_spans() -> None:
    first = span_counts({("A", 0, 2), ("A", 0, 5), ("B", 3, 4)}, {("A", 0, 2), ("B", 3, 5)})
    second = span_counts([("A", 0, 1)], [("A", 0, 1), ("C", 0, 1)])
    counts = sum_counts([first, second])
    assert counts == {"A": Counts(2, 0, 1), "B": Counts(0, 1, 1), "C": Counts(0, 1, 0)}
    assert span_scores(counts) == pytest.approx(
        {"f1": 0.5, "precision": 0.5, "recall": 0.5, "f1_A": 0.8, "f1_B": 0.0, "f1_C": 0.0}
    )


def test_nothing_wanted_and_nothing_found_scores_zero() -> None:
    assert span_scores({}) == {"f1": 0.0, "precision": 0.0, "recall": 0.0}


@pytest.mark.parametrize("type_", ["PRP$", "''", ",", ":", "/", "..", "geo-loc", "GPE.NAM", "名", "creative work"])
def test_every_type_makes_a_name_that_mlflow_takes(type_: str) -> None:
    from mlflow.utils.validation import _validate_metric_name

    (name,) = set(span_scores({type_: Counts(tp=1)})) - {"f1", "precision", "recall"}
    _validate_metric_name(f"dev/{name}")


def test_types_that_differ_in_signs_alone_keep_metrics_of_their_own() -> None:
    assert len(span_scores({",": Counts(tp=1), ":": Counts(fp=1), "(": Counts()})) == 6
