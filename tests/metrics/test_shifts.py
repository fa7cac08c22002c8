"""Shifts of three and more classes, by brute force and by hand."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dice_ray.metrics.classification import class_scores, confusion
from dice_ray.metrics.shifts import _MIN_ITEMS, fit_shifts, shifted

Items: TypeAlias = tuple[NDArray[np.float64], NDArray[np.int64]]

METRICS = ["macro_f1", "accuracy", "balanced_accuracy", "mcc"]


def value(items: Items, shifts_C: NDArray[np.float64], metric: str) -> float:
    probabilities_NC, labels_N = items
    return class_scores(confusion(labels_N, shifted(probabilities_NC, shifts_C), len(shifts_C)))[metric]


def one_parameter(items: Items, metric: str) -> float:
    """The best value of -tau log prior."""
    probabilities_NC, labels_N = items
    sizes_C = np.maximum(np.bincount(labels_N, minlength=probabilities_NC.shape[1]), 1)
    return max(value(items, -tau * np.log(sizes_C / sizes_C.sum()), metric) for tau in (0.0, 0.5, 1.0, 2.0, -0.5))


def imbalanced(num_items: int, num_classes: int, seed: int) -> Items:
    """A model that prefers the frequent classes by more than their share."""
    draw = np.random.default_rng(seed)
    prior_C = np.geomspace(1, 0.1, num_classes) / np.geomspace(1, 0.1, num_classes).sum()
    labels_N = draw.permutation(num_classes)[draw.choice(num_classes, num_items, p=prior_C)]
    logits_NC = draw.normal(size=(num_items, num_classes)) + 2 * (labels_N[:, None] == np.arange(num_classes))
    logits_NC += 2 * np.log(np.bincount(labels_N, minlength=num_classes) + 1)
    scaled_NC = np.exp(logits_NC - logits_NC.max(1, keepdims=True))
    return scaled_NC / scaled_NC.sum(1, keepdims=True), labels_N


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(3))
def test_shifts_are_near_the_best_of_a_fine_grid(seed: int, metric: str) -> None:
    """Finds an ascent that stops early, and changes that are added with the wrong sign."""
    items = imbalanced(400, 3, seed)
    shifts_C = fit_shifts(*items, metric)
    most_frequent = int(np.bincount(items[1]).argmax())
    assert shifts_C[most_frequent] == 0
    grid = np.arange(-2, 8, 0.1)
    others = [each for each in range(3) if each != most_frequent]
    best = 0.0
    for first in grid:
        for second in grid:
            tried_C = np.zeros(3)
            tried_C[others] = first, second
            best = max(best, value(items, tried_C, metric))
    found = value(items, shifts_C, metric)
    assert found > value(items, np.zeros(3), metric) + 0.02
    assert found >= best - 0.012


@settings(max_examples=150)
@given(st.integers(0, 2**32 - 1), st.sampled_from(METRICS), st.integers(3, 5), st.integers(0, 150), st.booleans())
def test_shifts_are_never_worse_than_those_of_one_parameter(
    seed: int, metric: str, num_classes: int, num_items: int, has_ties: bool
) -> None:
    """Classes that are absent, ties, probabilities of 0 and 1; finds a value that rounding takes back."""
    draw = np.random.default_rng(seed)
    probabilities_NC = draw.dirichlet([0.5] * num_classes, num_items)
    items = (
        probabilities_NC.round(1) if has_ties else probabilities_NC,
        draw.choice(draw.integers(0, num_classes, 9), num_items),
    )
    shifts_C, unshifted = fit_shifts(*items, metric), value(items, np.zeros(num_classes), metric)
    found = value(items, shifts_C, metric)
    assert found >= unshifted
    assert found > unshifted or not shifts_C.any()
    # Of ties that a shift produces rounding decides, of those without a shift the order of the classes.
    if not has_ties and len(np.unique(items[1])) > 1:
        assert found >= one_parameter(items, metric) - 1e-9


def test_a_class_with_few_items_has_no_shift_of_its_own() -> None:
    probabilities_NC, labels_N = imbalanced(400, 3, 0)
    sizes_C = np.bincount(labels_N)
    rarest = int(sizes_C.argmin())
    for kept, is_free in ((_MIN_ITEMS - 1, False), (_MIN_ITEMS, True)):
        chosen = np.sort(np.append(np.flatnonzero(labels_N != rarest), np.flatnonzero(labels_N == rarest)[:kept]))
        shifts_C = fit_shifts(probabilities_NC[chosen], labels_N[chosen], "macro_f1")
        log_ratios_C = np.log(np.bincount(labels_N[chosen]) / np.bincount(labels_N[chosen]).max())
        factors = np.delete(shifts_C, sizes_C.argmax()) / np.delete(log_ratios_C, sizes_C.argmax())
        assert (np.ptp(factors) > 1e-9) == is_free


def test_one_class_alone_and_no_items_change_nothing() -> None:
    probabilities_NC = np.array([[0.2, 0.3, 0.5], [0.0, 1.0, 0.0]])
    assert not fit_shifts(probabilities_NC, np.array([0, 0]), "accuracy").any()
    assert not fit_shifts(probabilities_NC[:0], np.array([], dtype=np.int64), "accuracy").any()
    assert shifted(probabilities_NC, np.array([0.0, 9.0, 0.0])).tolist() == [1, 1]
