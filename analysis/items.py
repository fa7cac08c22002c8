"""The counts of each test item as parts of the score: which score they give, and which cells share their items."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.new_data import ratio

Parts: TypeAlias = Callable[[NDArray[np.floating]], NDArray[np.floating]]
"""Of `counts_I3` (true positives, false positives, false negatives), `parts_I2`: what each item adds to both sides."""
ROUNDING: Final = 1e-6


def of_all_counts(counts: NDArray[np.floating]) -> NDArray[np.floating]:
    """Micro F1 of spans, labels or the positive class; of items that have one of several labels, accuracy."""
    tp, fp, fn = counts.T
    return np.stack([2 * tp, 2 * tp + fp + fn], -1)


def of_each_item(counts: NDArray[np.floating]) -> NDArray[np.floating]:
    """The mean F1 of the items, as SQuAD 1.1 has it: 0 where nothing is found."""
    f1 = ratio(of_all_counts(counts))
    return np.stack([f1, np.ones_like(f1)], -1)


def of_each_item_or_none(counts: NDArray[np.floating]) -> NDArray[np.floating]:
    """The mean F1 of the items, as SQuAD 2.0 has it: 1 where nothing is to be found and nothing is."""
    empty = counts.sum(-1) == 0
    parts = of_each_item(counts)
    parts[empty, 0] = 1
    return parts


SCORES: Final[tuple[Parts, ...]] = (of_all_counts, of_each_item_or_none, of_each_item)


@dataclass(frozen=True)
class Items:
    """What the test items of cells add to the score of their cell.

    Attributes:
        parts: `parts_I2` by the id of a cell; all of the same items in the same order.
        why_not: Why there are none.
    """

    parts: Mapping[str, NDArray[np.floating]]
    why_not: str = ""


def item_parts(items: Mapping[str, pd.DataFrame], scores: Mapping[str, float], prefix: str = "") -> Items:
    """The items of these cells, if their counts give the scores that are stored.

    Args:
        items: The counts of each item by the id of a cell.
        scores: What is stored of each cell; cells without a score are not asked for.
        prefix: Of the columns: `tuned_` for the counts at the tuned threshold.
    """
    columns = [f"{prefix}{name}" for name in ("tp", "fp", "fn")]
    known = {id_: items[id_] for id_ in scores if id_ in items and set(columns) <= set(items[id_])}
    if not known:
        return Items({}, "no cell has the counts of its test items")
    first = next(iter(known.values())).index
    if not all(each.index.equals(first) for each in known.values()):
        return Items({}, "the cells were not scored on the same test items")
    counts = {id_: each[columns].to_numpy(float) for id_, each in known.items()}
    for parts_of in SCORES:
        parts = {id_: parts_of(each) for id_, each in counts.items()}
        if all(abs(float(ratio(each.sum(0))) - scores[id_]) <= ROUNDING for id_, each in parts.items()):
            return Items(parts)
    return Items({}, "the score is none that the counts of single items give")
