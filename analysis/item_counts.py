"""The stored counts of test items or whole documents as contributions to the score, checked against stored scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.findings import DOCUMENT
from analysis.new_data import ratio

CountsToParts: TypeAlias = Callable[[NDArray[np.floating]], NDArray[np.floating]]
"""From `counts_I3` (true positives, false positives, false negatives) to `parts_I2`, what each item adds to the
numerator and denominator of the score."""
ROUNDING: Final = 1e-6
"""The difference to the stored score that is allowed as rounding error."""


def of_all_counts(counts: NDArray[np.floating]) -> NDArray[np.floating]:
    """Micro F1 of spans, labels or the positive class; accuracy if each item has exactly one label."""
    tp, fp, fn = counts.T
    return np.stack([2 * tp, 2 * tp + fp + fn], -1)


def of_each_item(counts: NDArray[np.floating]) -> NDArray[np.floating]:
    """The mean F1 of the items as in SQuAD 1.1: 0 for an item without any count."""
    f1 = ratio(of_all_counts(counts))
    return np.stack([f1, np.ones_like(f1)], -1)


def of_each_item_or_none(counts: NDArray[np.floating]) -> NDArray[np.floating]:
    """The mean F1 of the items as in SQuAD 2.0: 1 for an item without an answer and without a prediction."""
    empty = counts.sum(-1) == 0
    parts = of_each_item(counts)
    parts[empty, 0] = 1
    return parts


SCORES: Final[tuple[CountsToParts, ...]] = (of_all_counts, of_each_item_or_none, of_each_item)


@dataclass(frozen=True)
class ItemParts:
    """What the test items of cells add to the score of their cell.

    Items of one document are not independent: a model that fails on a document fails on many of its items. Where
    documents are known, the parts are therefore those of whole documents, which are then resampled instead of items.

    Attributes:
        parts: `parts_I2` by the id of the cell, all of the same items or documents in the same order; empty if not
            known.
        why_not: The reason why they are not known.
    """

    parts: Mapping[str, NDArray[np.floating]]
    why_not: str = ""


def item_parts(items: Mapping[str, pd.DataFrame], scores: Mapping[str, float], prefix: str = "") -> ItemParts:
    """The items of these cells, or their documents, if the score computed from their counts equals the stored one.

    Args:
        items: The counts of each item by the id of a cell, and its document if that is stored.
        scores: The stored scores by the id of the cell, without those of cells that have none.
        prefix: The prefix of the count columns: `tuned_` for the counts at the tuned threshold.
    """
    columns = [f"{prefix}{name}" for name in ("tp", "fp", "fn")]
    known = {id_: items[id_] for id_ in scores if id_ in items and set(columns) <= set(items[id_])}
    if not known:
        return ItemParts({}, "no cell has the counts of its test items")
    first = next(iter(known.values())).index
    if not all(table.index.equals(first) for table in known.values()):
        return ItemParts({}, "the cells were not scored on the same test items")
    counts = {id_: table[columns].to_numpy(float) for id_, table in known.items()}
    # Cells of an older version lack the documents of the same items.
    documents = next((table[DOCUMENT].to_numpy() for table in known.values() if DOCUMENT in table), None)
    for parts_of in SCORES:
        parts = {id_: parts_of(counts_I3) for id_, counts_I3 in counts.items()}
        if all(abs(float(ratio(parts_I2.sum(0))) - scores[id_]) <= ROUNDING for id_, parts_I2 in parts.items()):
            return ItemParts(parts if documents is None else {id_: _summed(of, documents) for id_, of in parts.items()})
    return ItemParts({}, "the counts of the test items do not give the stored score")


def _summed(parts_I2: NDArray[np.floating], documents: NDArray[np.object_]) -> NDArray[np.floating]:
    """The parts of each document."""
    names, members = np.unique(documents, return_inverse=True)
    parts_D2 = np.zeros((len(names), 2))
    np.add.at(parts_D2, members, parts_I2)
    return parts_D2
