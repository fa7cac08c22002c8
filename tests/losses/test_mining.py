"""The items that mining keeps, computed by hand; regression tests for errors in the published code."""

from __future__ import annotations

import pytest
import torch

from dice_ray.losses import CrossEntropyConfig, DiceConfig, FocalLoss, SelfAdjustingDiceLoss
from dice_ray.losses.items import flatten_items
from dice_ray.losses.mining import MiningConfig, _select_items
from dice_ray.terms import TermFacts

SCORES = torch.tensor([2.0, -1.0, 3.0, 0.0, 1.0, -2.0])
TARGETS = torch.tensor([1, 0, 0, 0, 0, 1])


def kept_items(ratio: float, targets: torch.Tensor = TARGETS, mask: torch.Tensor | None = None) -> list[int]:
    return _select_items(flatten_items("sigmoid", SCORES, targets, mask), ratio)[:, 1].nonzero()[:, 0].tolist()


def test_the_hardest_negatives_are_those_most_probable_to_be_positive() -> None:
    assert kept_items(0.5) == [0, 2, 5]
    assert kept_items(1) == [0, 2, 4, 5]
    assert kept_items(1.2) == [0, 2, 3, 4, 5], "2.4 is rounded up"
    assert kept_items(0.01) == [0, 2, 5], "at least one"
    assert kept_items(9) == list(range(6))


def test_the_number_kept_is_that_of_the_decimal_ratio() -> None:
    items = flatten_items("sigmoid", torch.arange(300.0), (torch.arange(300) < 100).long(), None)
    assert _select_items(items, 0.07)[:, 1].sum() == 107


def test_masked_items_are_neither_kept_nor_counted() -> None:
    mask = torch.tensor([True, True, False, True, True, False])
    assert kept_items(1, mask=mask) == [0, 4]
    assert kept_items(1, mask=torch.arange(6) < 2) == [0, 1], "the one negative left, though its logit is below 0"


def test_without_positives_or_without_negatives_all_are_kept() -> None:
    assert kept_items(0.5, torch.zeros_like(TARGETS)) == list(range(6))
    assert kept_items(0.5, torch.ones_like(TARGETS)) == list(range(6))


def test_of_ties_the_earlier_item_is_kept() -> None:
    items = flatten_items("softmax", torch.zeros(4, 3), torch.tensor([1, 0, 0, 2]), None)
    assert _select_items(items, 1).int().tolist() == [[1, 1, 1], [1, 1, 0], [1, 0, 0], [1, 0, 1]]
    items = flatten_items("sigmoid", torch.tensor([9.0, 1, 5, 1, 1]), torch.tensor([1, 0, 0, 0, 0]), None)
    assert _select_items(items, 2)[:, 1].tolist() == [1, 1, 1, 0, 0], "the hardest, and the first of those that tie"


def test_each_of_several_classes_keeps_its_own_negatives() -> None:
    logits = torch.tensor([[5.0, 1, 0], [0, 5, 4], [0, 3, 5], [5, 0, 2]])
    items = flatten_items("softmax", logits, torch.tensor([0, 1, 2, 0]), None)
    assert _select_items(items, 1).int().tolist() == [[1, 0, 0], [1, 1, 1], [1, 1, 1], [1, 0, 0]]


def test_half_precision_ranks_as_double_does() -> None:
    """In bfloat16 the log probabilities of these classes are the same, and the first negatives would be kept."""
    logits = torch.tensor([[0.0, 1.0, 9.0], [0.0, 1.0078125, 9.0], [0.0, 1.015625, 9.0]]).bfloat16()
    targets = torch.tensor([2, 2, 2])
    logits, targets = torch.cat((logits, logits[:1])), torch.cat((targets, torch.tensor([1])))
    for dtype in (torch.bfloat16, torch.float32, torch.float64):
        kept = _select_items(flatten_items("softmax", logits.to(dtype), targets, None), 1)[:, 1]
        assert kept.tolist() == [False, False, True, True], dtype


def test_a_dropped_item_has_no_gradient() -> None:
    logits = SCORES.clone().requires_grad_()
    for loss in (SelfAdjustingDiceLoss(link="sigmoid"), FocalLoss(link="sigmoid")):
        (grad,) = torch.autograd.grad(MiningConfig(ratio=0.5).wrap(loss)(logits, TARGETS), logits)
        assert grad.nonzero()[:, 0].tolist() == [0, 2, 5]


def test_a_loss_without_negatives_of_a_class_is_refused() -> None:
    tags = TermFacts("tag", "softmax", ("O", "A", "B"), (8, 1, 1), 0)
    mining = MiningConfig(ratio=0.3)
    (problem,) = mining.problems(CrossEntropyConfig(), tags, "mining")
    assert str(problem).startswith("mining.ratio: must be 0 for cross_entropy on term 'tag' (softmax, 3 classes)")
    assert not mining.problems(DiceConfig(), tags, "mining")
    assert not MiningConfig().problems(CrossEntropyConfig(), tags, "mining")
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        MiningConfig(ratio=-1)
