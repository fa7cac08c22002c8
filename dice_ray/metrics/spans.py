"""Span scores as in conlleval: micro precision, recall and F1, over all types and per type.

A span is correct if its type, first and last word are. Spans of a text form a set, so nested spans need no special
case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dice_ray.metrics.classification import Counts, ItemCounts, f1_by_name

_Item = TypeVar("_Item")
Span: TypeAlias = tuple[str, int, int]
"""Type, index of the first word, index after the last word."""


def spans_of(tags: Sequence[str]) -> set[Span]:
    """The spans of IOB2 tags; an `I-` tag that does not continue a span of its type begins one.

    >>> sorted(spans_of(["B-PER", "I-PER", "I-LOC", "O", "B-LOC"]))
    [('LOC', 2, 3), ('LOC', 4, 5), ('PER', 0, 2)]
    """
    spans = set()
    first, open_type = 0, None
    for index, tag in enumerate([*tags, "O"]):
        type_ = None if tag == "O" else tag[2:]
        if open_type is not None and (tag[0] == "B" or type_ != open_type):
            spans.add((open_type, first, index))
        if type_ is not None and (tag[0] == "B" or type_ != open_type):
            first = index
        open_type = type_
    return spans


def span_counts(gold: Iterable[Span], predicted: Iterable[Span]) -> dict[str, Counts]:
    """The counts of one text per type; only types that occur are listed."""
    gold, predicted = set(gold), set(predicted)
    columns = (gold & predicted, predicted - gold, gold - predicted)
    tp, fp, fn = (Counter(type_ for type_, _, _ in spans) for spans in columns)
    return {type_: Counts(tp[type_], fp[type_], fn[type_]) for type_ in tp | fp | fn}


def sum_counts(parts: Iterable[Mapping[str, Counts]]) -> dict[str, Counts]:
    """The sums of the counts of several texts or workers, per type."""
    total: dict[str, Counts] = {}
    for part in parts:
        for type_, counts in part.items():
            total[type_] = total.get(type_, Counts()) + counts
    return total


def outcomes_of_choices(
    items: Sequence[_Item], chosen_KM: NDArray[np.bool_], outcome: Callable[[list[_Item]], Sequence[float]]
) -> NDArray[Any]:
    """`outcomes_KX`: the X numbers that the items lead to which each of several decisions chooses.

    Most decisions choose the same items, whose outcome is found once.
    """
    distinct, which_K = np.unique(chosen_KM, axis=0, return_inverse=True)
    return np.array([outcome(list(compress(items, chosen_M))) for chosen_M in distinct.tolist()])[which_K.ravel()]


def counts_of_choices(
    items: Sequence[_Item], chosen_KM: NDArray[np.bool_], spans: Callable[[list[_Item]], set[Span]], gold: set[Span]
) -> NDArray[np.int64]:
    """`counts_K3`: the true positives, false positives and false negatives of the spans that chosen items form."""

    def counts(chosen: list[_Item]) -> tuple[int, int, int]:
        found = spans(chosen)
        tp = len(found & gold)
        return tp, len(found) - tp, len(gold) - tp

    return outcomes_of_choices(items, chosen_KM, counts)


def span_item(id: str, counts: Mapping[str, Counts]) -> ItemCounts:
    """The counts of one text, totalled over types."""
    return sum(counts.values(), Counts()).of_record(id)


def span_scores(counts: Mapping[str, Counts]) -> dict[str, float]:
    """Micro precision, recall and F1, and the F1 of each type as `f1_TYPE`; 0 without spans."""
    return sum(counts.values(), Counts()).scores | f1_by_name(dict(sorted(counts.items())))
