"""Calibration against scikit-learn and brute force, and the correction of the prior by simulation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn import metrics as reference
from sklearn.isotonic import IsotonicRegression

from dice_ray.metrics.calibration import Calibration, estimated_prior, fit_calibration, log_loss, with_prior
from dice_ray.metrics.classification import binary_scores

Floats: TypeAlias = NDArray[np.float64]
Kind: TypeAlias = Literal["temperature", "isotonic"]

EXTREME = [0.0, 1e-300, 1e-30, 1e-9, 0.3, 0.5, 0.7, 1 - 1e-9, 1 - 1e-16, 1.0]


def overconfident(
    num_items: int, num_classes: int, factor: float, seed: int, *, exclusive: bool
) -> tuple[Floats, NDArray[np.bool_]]:
    """Probabilities whose logits are `factor` times too large, and the classes of the items."""
    draw = np.random.default_rng(seed)
    logits_NC = draw.normal(size=(num_items, num_classes)) * 2
    if not exclusive:
        members_NC = draw.random(logits_NC.shape) < 1 / (1 + np.exp(-logits_NC))
        return 1 / (1 + np.exp(-factor * logits_NC)), members_NC
    labels_N = (logits_NC + draw.gumbel(size=logits_NC.shape)).argmax(1)
    scaled_NC = np.exp(factor * logits_NC)
    return scaled_NC / scaled_NC.sum(1, keepdims=True), labels_N[:, None] == np.arange(num_classes)


@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("num_classes", [2, 4])
@pytest.mark.parametrize("factor", [0.6, 1.0, 5.0])
def test_the_temperature_is_that_of_a_fine_grid_and_mends_the_logits(
    factor: float, num_classes: int, exclusive: bool
) -> None:
    """Finds a minimum that is none, and a temperature that multiplies the logits."""
    probabilities_NC, members_NC = overconfident(3000, num_classes, factor, 0, exclusive=exclusive)
    fitted = fit_calibration("temperature", probabilities_NC, members_NC, exclusive=exclusive).temperature
    grid = np.geomspace(0.2, 100, 2000)
    losses = [
        log_loss(Calibration(each).apply(probabilities_NC, exclusive=exclusive), members_NC, exclusive=exclusive)
        for each in grid
    ]
    assert fitted == pytest.approx(grid[int(np.argmin(losses))], rel=0.005)
    assert fitted == pytest.approx(factor, rel=0.1)


def test_the_log_loss_is_that_of_scikit_learn() -> None:
    probabilities_NC, members_NC = overconfident(50, 3, 1.0, 1, exclusive=True)
    probabilities_NC[0] = 0, 0, 1
    expected = reference.log_loss(members_NC.argmax(1), probabilities_NC)
    assert log_loss(probabilities_NC, members_NC, exclusive=True) == pytest.approx(expected)
    labels_NC, gold_NC = overconfident(50, 3, 1.0, 1, exclusive=False)
    of_labels = [reference.log_loss(gold_NC[:, each], labels_NC[:, each]) for each in range(3)]
    assert log_loss(labels_NC, gold_NC, exclusive=False) == pytest.approx(np.mean(of_labels))
    assert log_loss(np.empty((0, 3)), np.empty((0, 3), dtype=bool), exclusive=True) == 0


@settings(max_examples=100)
@given(st.lists(st.tuples(st.sampled_from([0.0, 0.2, 1.0]) | st.floats(0, 1), st.booleans()), min_size=1, max_size=40))
def test_isotonic_regression_is_that_of_scikit_learn(rows: Sequence[tuple[float, bool]]) -> None:
    """Finds ties that are not pooled, and points that are left out though the line bends there."""
    positive_N, gold_N = (np.array(column) for column in zip(*rows, strict=True))
    probabilities_NC, members_NC = np.stack([1 - positive_N, positive_N], 1), np.stack([~gold_N, gold_N], 1)
    calibration = fit_calibration("isotonic", probabilities_NC, members_NC, exclusive=True)
    asked_N = np.linspace(0, 1, 101)
    found_NC = calibration.apply(np.stack([1 - asked_N, asked_N], 1), exclusive=True)
    if gold_N.all() or not gold_N.any():
        assert calibration == Calibration()
        return
    margin = 1 / (len(rows) + 2)
    scikit = IsotonicRegression(y_min=margin, y_max=1 - margin, out_of_bounds="clip").fit(positive_N, gold_N)
    # It counts probabilities that differ by less than 1e-16 as equal.
    if np.diff(np.unique(positive_N)).min(initial=1) > 1e-12:
        np.testing.assert_allclose(found_NC[:, 1], scikit.predict(asked_N), atol=1e-9)
    np.testing.assert_allclose(found_NC.sum(1), 1)


@pytest.mark.parametrize("kind", ["temperature", "isotonic"])
@pytest.mark.parametrize(("num_classes", "exclusive"), [(2, True), (4, True), (3, False)])
def test_a_calibration_improves_what_it_was_not_fitted_on_and_is_stored(
    num_classes: int, exclusive: bool, kind: Kind
) -> None:
    calibration = fit_calibration(
        kind, *overconfident(3000, num_classes, 4, 0, exclusive=exclusive), exclusive=exclusive
    )
    probabilities_NC, members_NC = overconfident(3000, num_classes, 4, 1, exclusive=exclusive)
    calibrated_NC = calibration.apply(probabilities_NC, exclusive=exclusive)
    before, after = (log_loss(each, members_NC, exclusive=exclusive) for each in (probabilities_NC, calibrated_NC))
    assert after < 0.75 * before
    before, after = (
        binary_scores(each[:, 1], members_NC[:, 1].astype(int))["calibration_error"]
        for each in (probabilities_NC, calibrated_NC)
    )
    assert after < before / 2
    if exclusive:
        np.testing.assert_allclose(calibrated_NC.sum(1), 1)
    assert Calibration.of(json.loads(json.dumps(calibration.stored()))) == calibration


@pytest.mark.parametrize("kind", ["temperature", "isotonic"])
@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("is_right", [True, False])
def test_probabilities_of_0_and_1_are_calibrated(is_right: bool, exclusive: bool, kind: Kind) -> None:
    """Finds infinite logits: NaN, a loss without a minimum, a ranking that is turned around."""
    positive_N = np.array(EXTREME)
    gold_N = (positive_N > 0.4) == is_right
    probabilities_NC, members_NC = np.stack([1 - positive_N, positive_N], 1), np.stack([~gold_N, gold_N], 1)
    calibration = fit_calibration(kind, probabilities_NC, members_NC, exclusive=exclusive)
    found_NC = calibration.apply(probabilities_NC, exclusive=exclusive)
    assert np.isfinite(found_NC).all()
    assert (np.diff(found_NC[:, 1]) >= 0).all()
    if kind == "isotonic":
        assert 1 / 12 <= found_NC.min() <= found_NC.max() <= 11 / 12
    elif not is_right:
        assert (np.diff(Calibration(3.0).apply(probabilities_NC, exclusive=exclusive)[1:, 1]) > 0).sum() > 6


def test_a_temperature_keeps_apart_what_was_apart() -> None:
    """Finds a dev set without an error whose highest scores all become 1: no threshold lies between them."""
    logits_N = np.concatenate([np.linspace(-9, -7, 300), np.linspace(7, 9, 300)])
    positive_N = 1 / (1 + np.exp(-logits_N))
    probabilities_NC, gold_N = np.stack([1 - positive_N, positive_N], 1), logits_N > 0
    calibration = fit_calibration("temperature", probabilities_NC, np.stack([~gold_N, gold_N], 1), exclusive=True)
    assert calibration.temperature < 1
    assert len(np.unique(calibration.apply(probabilities_NC, exclusive=True)[:, 1])) == 600


def test_a_class_that_dev_lacks_stays_as_it_is() -> None:
    """Finds a label whose ranking is lost, because no item of dev has it."""
    probabilities_NC, members_NC = overconfident(200, 3, 4, 0, exclusive=False)
    members_NC[:, 1] = False
    calibration = fit_calibration("isotonic", probabilities_NC, members_NC, exclusive=False)
    changed_NC = calibration.apply(probabilities_NC, exclusive=False) != probabilities_NC
    assert changed_NC.any(0).tolist() == [True, False, True]
    for items in ([], [0]):
        nothing = fit_calibration("temperature", probabilities_NC[items], members_NC[items], exclusive=True)
        assert nothing == Calibration()
        assert nothing.apply(probabilities_NC, exclusive=True) is probabilities_NC


def test_no_temperature_is_chosen_where_all_are_equal() -> None:
    half_NC = np.full((4, 2), 0.5)
    fitted = fit_calibration("temperature", half_NC, np.eye(2, dtype=bool)[[0, 1, 1, 1]], exclusive=True)
    assert fitted == Calibration()


def gaussians(num_items: int, prior: float, distance: float, seed: int) -> tuple[Floats, NDArray[np.bool_]]:
    """Features of two classes with unit variance."""
    draw = np.random.default_rng(seed)
    gold_N = draw.random(num_items) < prior
    return draw.normal(np.where(gold_N, distance, 0.0)), gold_N


def posterior(features_N: Floats, prior: float, distance: float) -> Floats:
    return np.asarray(1 / (1 + np.exp(-(distance * features_N - distance**2 / 2 + np.log(prior / (1 - prior))))))


@pytest.mark.parametrize("distance", [1.0, 3.0])
@pytest.mark.parametrize(("before", "after"), [(0.3, 0.05), (0.05, 0.3), (0.2, 0.2)])
def test_a_shifted_prior_is_estimated_and_corrected(before: float, after: float, distance: float) -> None:
    """Finds odds that are multiplied the wrong way round, and an estimate that stops short of the maximum."""
    features_N, _ = gaussians(200_000, after, distance, 0)
    probabilities_N = posterior(features_N, before, distance)
    np.testing.assert_allclose(
        with_prior(probabilities_N, before, after), posterior(features_N, after, distance), atol=1e-12
    )
    estimate = estimated_prior(probabilities_N, before)
    assert estimate == pytest.approx(after, rel=0.05)
    share = before
    for _ in range(2000):  # EM as printed
        share = float(with_prior(probabilities_N[:2000], before, share).mean())
    assert estimated_prior(probabilities_N[:2000], before) == pytest.approx(share, abs=1e-6)


def test_a_prior_that_nothing_speaks_about_stays() -> None:
    assert estimated_prior(np.full(9, 0.25), 0.25) == 0.25
    assert estimated_prior(np.array([]), 0.25) == 0.25
    for certain in (0.0, 1.0):
        share = estimated_prior(np.full(9, certain), 0.25)
        assert 0 < abs(share - certain) < 1e-9
        assert with_prior(np.array([0.0, 1.0]), 0.25, share).tolist() == [0, 1]
