"""Uncertainty beyond this test set, over seeds and test items: the items' counts as parts of the score, resampled."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.statistics.intervals import Difference, Interval, StandardError, interval_around
from analysis.statistics.looks import Looks
from dice_ray.metrics import catalogue
from dice_ray.tracking import schema

_NUM_RESAMPLES: Final = 1000


def _ratio(parts: NDArray[np.floating]) -> NDArray[np.floating]:
    """The score of `parts_...2` (numerator, denominator) summed over items; 0/0 is 0."""
    numerator, denominator = parts[..., 0], parts[..., 1]
    return np.asarray(np.where(denominator > 0, numerator / np.where(denominator > 0, denominator, 1), 0.0))


def over_seeds_and_items(
    parts: NDArray[np.floating],
    baseline: NDArray[np.floating],
    looks: Looks | None = None,
    *,
    bound: float = 1.0,
) -> Difference:
    """The mean difference with two sources of variance: other seeds, and other test items of the same kind.

    SE^2 = s_d^2/n + the variance of the mean difference over resampled items, the same items for both arms and all
    seeds (the idea of Sellam et al. 2022, "The MultiBERTs"); degrees of freedom by Satterthwaite. The interval is
    slightly too wide, since the interaction of seeds and items is in both terms. It is never narrower, and p never
    smaller, than on the test set itself; Satterthwaite's degrees of freedom alone would allow that with few seeds.

    Args:
        parts: `parts_SI2` of the arm: what each item adds to numerator and denominator of the score. Seeds and items
            are in the order of the baseline's. Items must be independent: items of one document are one item here.
        baseline: `parts_SI2` of the baseline.
        looks: As in `Difference`.
        bound: The largest possible difference.

    Returns:
        A difference with NaN bounds and p for fewer than two seeds or items, or where all items are the same. One that
        is the same with all seeds is tested over items alone.
    """
    assert parts.shape == baseline.shape, "the same seeds and items"
    num_seeds, num_items, _ = parts.shape
    differences_S = _ratio(parts.sum(1)) - _ratio(baseline.sum(1))
    mean = float(differences_S.mean())
    if num_seeds < 2 or num_items < 2:
        return Difference(Interval(mean, num=num_seeds), math.nan, looks=looks)
    of_seeds = float(differences_S.var(ddof=1)) / num_seeds
    # The bootstrap's variance of a mean over n items is (n - 1)/n of the unbiased one.
    of_items = num_items / (num_items - 1) * float(np.var(_resampled(np.stack([parts, baseline])), ddof=1))
    both = StandardError.of_sum((of_seeds, num_seeds - 1), (of_items, num_items - 1))
    # More variance can come with more degrees of freedom, and so with a narrower interval: hence the test over seeds
    # alone as well.
    return Difference.tested(mean, num_seeds, (both, StandardError(math.sqrt(of_seeds), num_seeds - 1)), bound, looks)


def over_items(parts_I2: NDArray[np.floating], limits: tuple[float, float]) -> Interval:
    """The score of one run with its interval over test items of the same kind; no bounds for fewer than two items.

    Args:
        parts_I2: What each item, or document, adds to numerator and denominator of the score.
        limits: The lowest and the highest possible score.
    """
    num_items, score = len(parts_I2), float(_ratio(parts_I2.sum(0)))
    if num_items < 2:
        return Interval(score, num=1)
    parts_1I2 = parts_I2[None]
    spread = np.std(_resampled(np.stack([parts_1I2, np.zeros_like(parts_1I2)])), ddof=1)
    error = StandardError(float(spread) * math.sqrt(num_items / (num_items - 1)), num_items - 1)
    return interval_around(score, (error,), 1, limits)


def _resampled(parts_2SI2: NDArray[np.floating]) -> NDArray[np.floating]:
    """The mean difference over seeds, for each of `_NUM_RESAMPLES` bootstrap samples of the items.

    Items with the same parts in both arms and all seeds are counted together and drawn by a multinomial. Most items are
    right everywhere, so that this is many times as fast as drawing single items.
    """
    _, num_seeds, num_items, _ = parts_2SI2.shape
    # One row an item: its numerator and denominator in both arms and all seeds.
    unique, num_U = np.unique(parts_2SI2.transpose(2, 0, 1, 3).reshape(num_items, -1), axis=0, return_counts=True)
    weights_BU = np.random.default_rng(0).multinomial(num_items, num_U / num_items, _NUM_RESAMPLES)
    sums = (weights_BU @ unique).reshape(_NUM_RESAMPLES, 2, num_seeds, 2)
    scores_B2S = _ratio(sums)
    return np.asarray((scores_B2S[:, 0] - scores_B2S[:, 1]).mean(-1))


_CountsToParts: TypeAlias = Callable[[NDArray[np.floating]], NDArray[np.floating]]
"""From `counts_I3` (true positives, false positives, false negatives) to `parts_I2`, what each item adds to the
numerator and denominator of the score."""


def _weighted(above: Sequence[float], below: Sequence[float], per_item: float = 0.0) -> _CountsToParts:
    """The sum of the counts with the weights `above`, over that with the weights `below` and a number for each item."""
    return lambda counts: np.stack([counts @ np.array(above), counts @ np.array(below) + per_item], -1)


_of_all_counts = _weighted((2, 0, 0), (2, 1, 1))
"""Micro F1 of spans, labels or the positive class; accuracy if each item has exactly one label."""


def _of_each_item(counts: NDArray[np.floating]) -> NDArray[np.floating]:
    """The mean F1 of the items as in SQuAD 1.1: 0 for an item without any count."""
    f1 = _ratio(_of_all_counts(counts))
    return np.stack([f1, np.ones_like(f1)], -1)


def _of_each_item_or_none(counts: NDArray[np.floating]) -> NDArray[np.floating]:
    """The mean F1 of the items as in SQuAD 2.0: 1 for an item without an answer and without a prediction."""
    empty = counts.sum(-1) == 0
    parts = _of_each_item(counts)
    parts[empty, 0] = 1
    return parts


def _of_metric(metric: str, costs: tuple[float, float] | None) -> tuple[_CountsToParts, ...]:
    """How counts give a score of this name, where that is known."""
    name = metric.rpartition("/")[2]
    beta, (of_fp, of_fn) = catalogue.beta(name), costs or (0.0, 0.0)
    forms = {
        "precision": _weighted((1, 0, 0), (1, 1, 0)),
        "recall": _weighted((1, 0, 0), (1, 0, 1)),
        "cost": _weighted((0, 1000 * of_fp, 1000 * of_fn), (0, 0, 0), 1.0),
    }
    if beta:
        forms[name] = _weighted((1 + beta**2, 0, 0), (1 + beta**2, 1, beta**2))
    return (forms[name],) if name in forms else ()


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


def item_parts(
    items: Mapping[str, pd.DataFrame],
    scores: Mapping[str, float],
    prefix: str = "",
    metric: str = "f1",
    costs: tuple[float, float] | None = None,
) -> ItemParts:
    """The items of these cells, or their documents, if the score computed from their counts equals the stored one.

    Args:
        items: The counts of each item by the id of a cell, and its document if that is stored.
        scores: The stored scores by the id of the cell, without those of cells that have none.
        prefix: The prefix of the count columns: `tuned_` for the counts with the decision fitted on dev.
        metric: The name of the score.
        costs: Of a false positive and of a false negative, where the score is a cost.
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
    documents = next((table[schema.DOCUMENT].to_numpy() for table in known.values() if schema.DOCUMENT in table), None)
    for parts_of in (*_of_metric(metric, costs), _of_all_counts, _of_each_item_or_none, _of_each_item):
        parts = {id_: parts_of(counts_I3) for id_, counts_I3 in counts.items()}
        # Up to rounding.
        if all(abs(float(_ratio(parts_I2.sum(0))) - scores[id_]) <= 1e-6 for id_, parts_I2 in parts.items()):
            if documents is not None:
                parts = {id_: pd.DataFrame(of).groupby(documents).sum().to_numpy() for id_, of in parts.items()}
            return ItemParts(parts)
    return ItemParts({}, "the counts of the test items do not give the stored score")
