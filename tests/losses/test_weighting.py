"""Class weights, and those that do not fit the training split."""

from __future__ import annotations

import math

import pytest
import torch
from pydantic import ValidationError

from dice_ray.errors import ConfigError
from dice_ray.losses import FocalConfig, WeightedCrossEntropyConfig
from dice_ray.losses.weighting import EffectiveNumberConfig, GivenWeightsConfig, InverseConfig, LgConfig
from dice_ray.terms import TermFacts

FACTS = TermFacts("tag", "softmax", ("O", "B-PER", "I-PER"), (90, 9, 1), 0)


def test_lg_is_the_papers() -> None:
    assert LgConfig().class_weights(FACTS) == pytest.approx([math.log10(100 / 90), math.log10(100 / 9), 2])


def test_the_strength_of_lg_is_the_power_of_the_ratio_of_the_weights() -> None:
    """Finds a search whose weights are mostly equal: 77 % of those of k between 1 and 1000 were."""
    assert LgConfig(strength=1).class_weights(FACTS) == LgConfig().class_weights(FACTS)
    whole = ratio(LgConfig())
    assert whole == pytest.approx(43.7, abs=0.1)
    for strength in (0.9, 0.5, 0.05):
        assert ratio(LgConfig(strength=strength)) == pytest.approx(whole**strength)
        assert ratio(LgConfig(k=2, strength=strength)) == pytest.approx(ratio(LgConfig(k=2)) ** strength)
    balanced = TermFacts("t", "softmax", ("a", "b"), (5, 5), 0)
    assert LgConfig(strength=0.5).class_weights(balanced) == LgConfig().class_weights(balanced)
    assert LgConfig(strength=0.5).range_of(FACTS) == "0.303 (O) to 2 (I-PER)"
    # From k 0 on doubling k went nowhere, for ever.
    even = TermFacts("t", "softmax", ("a", "b", "c"), (40, 30, 30), 0)
    for k in (0, -0.2):
        weakest, strongest = sorted(LgConfig(k=k, strength=0.5).class_weights(even))[::2]
        at_k = [math.log10(odds + k) for odds in (60 / 40, 70 / 30)]
        assert strongest / weakest == pytest.approx((at_k[1] / at_k[0]) ** 0.5)


def ratio(weighting: LgConfig) -> float:
    weights = weighting.class_weights(FACTS)
    return max(weights) / min(weights)


def test_the_range_of_a_multi_label_term_names_the_labels() -> None:
    facts = TermFacts("topic", "sigmoid", ("no", "yes"), (150, 50), 0, ("A", "B"), (40, 10))
    assert InverseConfig().range_of(facts) == "0.667 (no) to 2 (yes)"
    assert InverseConfig(labels="per_label").range_of(facts) == "0.556 (without B) to 5 (B)"


def test_the_other_weightings_by_hand() -> None:
    assert InverseConfig().class_weights(FACTS) == pytest.approx([100 / 270, 100 / 27, 100 / 3])
    assert GivenWeightsConfig(weights={"B-PER": 5}).class_weights(FACTS) == (1, 5, 1)
    weights = EffectiveNumberConfig(beta=0.5).class_weights(TermFacts("t", "softmax", ("a", "b", "c"), (1, 2, 3)))
    raw = [1, 0.5 / 0.75, 0.5 / 0.875]
    assert weights == pytest.approx([3 * weight / sum(raw) for weight in raw])


def test_a_k_that_is_too_small_names_the_class_and_the_least() -> None:
    config = WeightedCrossEntropyConfig(weighting=LgConfig(k=0.5))
    (problem,) = config.problems(FACTS, "loss.weighted_cross_entropy")
    assert problem.path == "loss.weighted_cross_entropy.weighting.lg.k"
    assert "at least 0.888889" in problem.must
    assert "'O'" in problem.must
    with pytest.raises(ConfigError, match="at least"):
        config.build(FACTS)
    assert LgConfig(k=0.8888889).class_weights(FACTS)[0] == pytest.approx(0, abs=1e-6)


def test_a_class_must_have_a_weight_above_0() -> None:
    balanced = TermFacts("label", "softmax", ("a", "b"), (5, 5), 0)
    for config in (LgConfig(k=0), GivenWeightsConfig(weights={"a": 0, "b": 0})):
        (problem,) = config.problems(balanced, "weighting")
        assert str(problem).startswith("weighting: must give a class of term 'label' a weight above 0")
    assert not GivenWeightsConfig(weights={"a": 0}).problems(balanced, "weighting")


def test_a_weight_of_an_unknown_class_names_the_nearest() -> None:
    (problem,) = GivenWeightsConfig(weights={"B-PRE": 2}).problems(FACTS, "weighting.given")
    assert (problem.got, problem.suggestion) == ("'B-PRE'", "B-PER")
    with pytest.raises(ValidationError):
        GivenWeightsConfig(weights={"O": -1})


def test_positions_have_no_class_weights() -> None:
    facts = TermFacts("start", "position", ("none", "answer"), (1, 9), 0)
    (problem,) = FocalConfig(weighting=InverseConfig()).problems(facts, "loss.focal")
    assert (problem.path, problem.got) == ("loss.focal.weighting", "inverse")
    assert "must be left out for term 'start'" in problem.must
    assert FocalConfig().problems(facts, "loss.focal") == []


def test_an_absent_class_counts_as_one_item_with_a_warning() -> None:
    facts = TermFacts("tag", "softmax", ("O", "A", "B"), (9, 1, 0), 0)
    with pytest.warns(UserWarning, match="has no B for term 'tag'"):
        weights = InverseConfig().class_weights(facts)
    assert weights == pytest.approx([11 / 27, 11 / 3, 11 / 3])


def test_the_sum_is_divided_by_items_not_by_weights() -> None:
    loss = WeightedCrossEntropyConfig(weighting=GivenWeightsConfig(weights={"B-PER": 5})).build(FACTS)
    logits, targets = torch.zeros(4, 3), torch.tensor([1, 1, 1, 1])
    assert loss(logits, targets).item() == pytest.approx(5 * math.log(3))
