"""Class weights, and those that do not fit the training split."""

from __future__ import annotations

import math

import pytest
import torch
from pydantic import ValidationError

from dice_ray.errors import ConfigError
from dice_ray.losses import FocalConfig, WeightedCrossEntropyConfig
from dice_ray.losses.weighting import EffectiveNumberConfig, GivenWeightsConfig, InverseConfig, LgConfig, LgOddsConfig
from dice_ray.terms import TermFacts

FACTS = TermFacts("tag", "softmax", ("O", "B-PER", "I-PER"), (90, 9, 1), 0)


def test_lg_is_the_papers() -> None:
    assert LgConfig().class_weights(FACTS) == pytest.approx([math.log10(100 / 90), math.log10(100 / 9), 2])


def test_the_power_of_lg_odds_goes_from_the_papers_weights_to_nearly_equal_ones() -> None:
    """Finds a search whose weights are mostly equal: 77 % of those of `lg.k` between 1 and 1000 were."""
    strong, middle, weak = (LgOddsConfig(power=power) for power in (0, 0.5, 1))
    assert strong.class_weights(FACTS) == LgConfig().class_weights(FACTS)
    assert middle.class_weights(FACTS) == pytest.approx(LgConfig(k=99**0.5).class_weights(FACTS))
    ratios = [max(weights) / min(weights) for weights in (each.class_weights(FACTS) for each in (strong, middle, weak))]
    assert ratios == [pytest.approx(43.7, abs=0.1), pytest.approx(2.03, abs=0.01), pytest.approx(1.15, abs=0.01)]
    assert weak.range_of(FACTS) == "2 (O) to 2.3 (I-PER)"


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
